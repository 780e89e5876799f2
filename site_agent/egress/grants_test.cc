#include "site_agent/egress/grants.h"

#include <condition_variable>
#include <functional>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/mutex.h"
#include "site_agent/egress/testing.h"
#include "tests/support/example_approval.h"

namespace domicile::site_agent {
namespace {

using policy::ApprovalRole;
using policy::Reason;

WallTime At(std::string_view text) { return Must(ParseTime(text)); }

const WallTime kNow = At("2026-12-01T00:00:00Z");

contracts::GrantBody Wanted() {
  return {.federation = "demo",
          .site = Must(SiteId::Parse("charite")),
          .job = kJob,
          .plan = ExampleDigest(1),
          .trainer = ExampleDigest(2),
          .base_model = ExampleDigest(3),
          .dataset = kHeartData,
          .dataset_commitment = ExampleDigest(4),
          .effective_policy = ExampleDigest(5),
          .not_after = At("2026-12-30T00:00:00Z")};
}

// A site with an operator and a data protection officer; a stranger who is neither.
struct Office {
  test::TempFolder folder;
  crypto::NoteSigner operator_key = test::ExamplePerson("demo/site/charite/operator", 1);
  crypto::NoteSigner officer_key = test::ExamplePerson("demo/site/charite/dpo", 2);
  crypto::NoteSigner stranger = test::ExamplePerson("demo/site/pitie/operator", 3);
  AgentConfig config;

  Office() {
    config.grants = folder.File("grants");
    config.requests = folder.File("requests");
    config.approval.approvers = {test::ApproverOf(operator_key, ApprovalRole::kOperator),
                                 test::ApproverOf(officer_key, ApprovalRole::kDpo)};
    Must(CreateFolders(config.grants));
  }
  void Put(const std::string& name, const std::string& note) const {
    Must(WriteFileDurably(JoinPath(config.grants, name), AsBytes(note)));
  }
  std::string Sign(const crypto::NoteSigner& key,
                   const std::function<void(contracts::GrantBody&)>& change = {}) const {
    contracts::GrantBody body = Wanted();
    if (change) {
      change(body);
    }
    return test::GrantBy(key, body, kNow);
  }
  Reason Why(WallTime now = kNow) const {
    Reason why = Reason::kNone;
    return Must(FindGrant(config.grants, config.approval, Wanted(), now, why)) ? Reason::kNone
                                                                               : why;
  }
};

TEST_CASE("FindGrant: a grant of this site for this very job, with who signed it") {
  Office office;
  const std::string note = office.Sign(office.operator_key);
  office.Put("a.grant", note);
  Reason why = Reason::kNone;

  const auto found =
      Must(FindGrant(office.config.grants, office.config.approval, Wanted(), kNow, why));

  REQUIRE(found.has_value());
  CHECK(found->note == note);
  CHECK(found->body == Wanted());
  REQUIRE(found->approvals.size() == 1);
  CHECK(found->approvals[0].role == ApprovalRole::kOperator);
  CHECK(found->approvals[0].count == 1);
  CHECK(found->approvals[0].organisation == "data-office");
  CHECK(found->approvals[0].signed_at == kNow);
}

TEST_CASE("FindGrant: what does not cover the job, and why") {
  struct Case {
    const char* name;
    std::function<std::string(const Office&)> note;
    Reason want;
  };
  const auto changed = [](const std::function<void(contracts::GrantBody&)>& change) {
    return [change](const Office& o) { return o.Sign(o.operator_key, change); };
  };
  const Case cases[] = {
      {"signed by a stranger", [](const Office& o) { return o.Sign(o.stranger); },
       Reason::kGrantSignature},
      {"changed after signing",
       [](const Office& o) {
         std::string note = o.Sign(o.operator_key);
         note.replace(note.find("2026-12-30"), 10, "2027-12-30");
         return note;
       },
       Reason::kGrantSignature},
      {"no note at all", [](const Office&) { return std::string("yes, please"); },
       Reason::kGrantSignature},
      {"expired", changed([](auto& b) { b.not_after = At("2026-11-30T23:59:59Z"); }),
       Reason::kGrantExpired},
      {"borrowed from another plan", changed([](auto& b) { b.plan = ExampleDigest(9); }),
       Reason::kApprovalMissing},
      {"another trainer", changed([](auto& b) { b.trainer = ExampleDigest(9); }),
       Reason::kGrantTrainer},
      {"another first model", changed([](auto& b) { b.base_model = ExampleDigest(9); }),
       Reason::kGrantBaseModel},
      {"another version of the data",
       changed([](auto& b) { b.dataset_commitment = ExampleDigest(9); }), Reason::kGrantDataset},
      {"another policy", changed([](auto& b) { b.effective_policy = ExampleDigest(9); }),
       Reason::kGrantPolicy},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Office office;
    office.Put("a.grant", c.note(office));
    CHECK(office.Why() == c.want);
  }
}

TEST_CASE("FindGrant: borrowed from another site or job covers nothing") {
  Office site;
  site.Put("a.grant",
           site.Sign(site.operator_key, [](auto& b) { b.site = Must(SiteId::Parse("pitie")); }));
  CHECK(site.Why() != Reason::kNone);
  Office job;
  job.Put("a.grant",
          job.Sign(job.operator_key, [](auto& b) { b.job = Must(JobId::Parse("heart-2")); }));
  CHECK(job.Why() != Reason::kNone);
}

TEST_CASE("FindGrant: a grant runs out, and is gone when its file is") {
  Office office;
  CHECK(office.Why() == Reason::kApprovalMissing);
  office.Put("a.grant", office.Sign(office.operator_key));

  CHECK(office.Why() == Reason::kNone);
  CHECK(office.Why(At("2026-12-30T00:00:01Z")) == Reason::kGrantExpired);
  Must(RemoveFile(JoinPath(office.config.grants, "a.grant")));
  CHECK(office.Why() == Reason::kApprovalMissing);
}

TEST_CASE("FindGrant: a bad file beside it does not hide a good one") {
  Office office;
  office.Put("b.grant", office.Sign(office.operator_key));
  office.Put("a.grant", "junk");
  office.Put("aa.grant", std::string(100'000, 'x'));  // longer than a grant may be
  REQUIRE(symlink("nowhere", JoinPath(office.config.grants, "ab.grant").c_str()) == 0);

  CHECK(office.Why() == Reason::kNone);
}

TEST_CASE("FindGrant: only files that end in .grant are looked at") {
  Office office;
  office.Put("a.grant.tmp2", office.Sign(office.operator_key));

  CHECK(office.Why() == Reason::kApprovalMissing);
}

TEST_CASE("FindGrant: two approvals need two persons") {
  Office office;
  office.config.approval.persons = 2;
  office.Put("a.grant", office.Sign(office.operator_key));
  CHECK(office.Why() == Reason::kGrantSignature);

  const std::string one = office.Sign(office.operator_key);
  const std::string two = office.Sign(office.officer_key);
  office.Put("a.grant", one + two.substr(two.find("\n\n") + 2));
  Reason why = Reason::kNone;
  const auto found =
      Must(FindGrant(office.config.grants, office.config.approval, Wanted(), kNow, why));
  REQUIRE(found.has_value());
  CHECK(found->approvals.size() == 2);
}

TEST_CASE("FindGrant: only the approvers whom the site policy names as well") {
  Office office;
  office.Put("a.grant", office.Sign(office.operator_key));
  const std::vector<std::string> names = {office.officer_key.Verifier().name()};

  const contracts::ApprovalRules rules = office.config.approval.OnlyNamed(names);

  Reason why = Reason::kNone;
  CHECK_FALSE(Must(FindGrant(office.config.grants, rules, Wanted(), kNow, why)).has_value());
  CHECK(why == Reason::kGrantSignature);
  CHECK(office.config.approval.OnlyNamed({}) == office.config.approval);
}

TEST_CASE("FindDenials: the jobs that have a file of denial, whatever it says") {
  Office office;
  CHECK(Must(FindDenials(office.config.grants)).empty());
  office.Put("heart-1.deny", "");
  office.Put("heart-2.grant", "x");
  office.Put("No Job.deny", "x");

  CHECK(Must(FindDenials(office.config.grants)) == std::vector<JobId>{kJob});
}

TEST_CASE("WriteRequest: what is signed from it is a grant") {
  Office office;
  Must(WriteRequest(office.config, Wanted(), "{\"plan\":1}"));

  const std::string request =
      Must(ReadFile(JoinPath(office.config.requests, "heart-1.request"), 10'000));
  CHECK(Must(ReadFile(JoinPath(office.config.requests, "heart-1.plan.json"), 10'000)) ==
        "{\"plan\":1}");
  office.Put("a.grant", test::SignedAt(office.operator_key, request, kNow));
  CHECK(office.Why() == Reason::kNone);
}

TEST_CASE("FolderWatch: fires when a file is there, and ends when destroyed") {
  Office office;
  Mutex mutex;
  ConditionVariable changed;
  int times = 0;
  {
    const auto watch = Must(FolderWatch::Start(office.config.grants, [&] {
      const MutexLock lock(mutex);
      ++times;
      changed.notify_all();
    }));
    for (const int want : {1, 2}) {
      int before = 0;
      {
        const MutexLock lock(mutex);
        before = times;
      }
      office.Put(std::to_string(want) + ".grant", "x");
      const MutexLock lock(mutex);
      CHECK(changed.wait_for(mutex, std::chrono::seconds(20), [&] { return times > before; }));
    }
  }
  const int last = times;
  office.Put("after.grant", "x");
  CHECK(times == last);
}

TEST_CASE("FolderWatch: a folder that is not there is an error") {
  CHECK(FolderWatch::Start("/nowhere/at/all", [] {}).status().code() == StatusCode::kNotFound);
}

}  // namespace
}  // namespace domicile::site_agent

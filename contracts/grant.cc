#include "contracts/grant.h"

#include <algorithm>

#include "base/json.h"
#include "crypto/sha256.h"

namespace domicile::contracts {

namespace {

constexpr std::size_t kLongestText = 4'096;
constexpr std::size_t kLongestFederation = 255;
// Of the year 2200; WallTime counts nanoseconds and ends in 2262.
constexpr std::uint64_t kLatestSecond = 7'258'118'400;

// A SPIFFE trust domain.
bool IsFederation(std::string_view text) {
  return !text.empty() && text.size() <= kLongestFederation &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                  c == '_';
         });
}

template <typename Name>
Name ReadName(JsonReader& reader, std::string_view key) {
  StatusOr<Name> name = Name::Parse(reader.String(key));
  if (!name.ok()) {
    reader.Fail(key, "is wrong: " + std::string(Message(name.status())));
    return {};
  }
  return *std::move(name);
}

// Zero means "none" and is never the digest of anything.
Digest ReadDigest(JsonReader& reader, std::string_view key) {
  const StatusOr<Digest> digest = ParseDigest(reader.String(key));
  if (!digest.ok() || digest->IsZero()) {
    reader.Fail(key, "must be 64 lower-case hexadecimal digits, not all zero");
    return {};
  }
  return *digest;
}

bool IsForHere(const GrantBody& body, const GrantBody& wanted) {
  return body.federation == wanted.federation && body.site == wanted.site;
}

// Compares what was granted with what is to be done.
policy::Reason Compare(const GrantBody& body, const GrantBody& wanted) {
  if (!IsForHere(body, wanted) || body.dataset != wanted.dataset ||
      body.dataset_commitment != wanted.dataset_commitment) {
    return policy::Reason::kGrantDataset;
  }
  if (body.job != wanted.job || body.plan != wanted.plan) {
    return policy::Reason::kGrantPlan;
  }
  if (body.trainer != wanted.trainer) {
    return policy::Reason::kGrantTrainer;
  }
  if (body.base_model != wanted.base_model) {
    return policy::Reason::kGrantBaseModel;
  }
  if (body.effective_policy != wanted.effective_policy) {
    return policy::Reason::kGrantPolicy;
  }
  return policy::Reason::kNone;
}

struct Signatures {
  std::vector<GivenApproval> counted;
  std::size_t too_old = 0;
};

// Which signatures count now. One from the future does not: by it an approval could be kept fresh
// for as long as the signer liked.
Signatures Weigh(const crypto::OpenedNote& opened, const ApprovalRules& rules, WallTime now) {
  Signatures signatures;
  for (std::size_t i = 0; i < opened.signers.size(); ++i) {
    const auto approver = std::find_if(
        rules.approvers.begin(), rules.approvers.end(),
        [&](const Approver& candidate) { return candidate.key.name() == opened.signers[i]; });
    if (approver == rules.approvers.end() || opened.times[i] > kLatestSecond) {
      continue;
    }
    const WallTime signed_at{std::chrono::seconds(opened.times[i])};
    if (signed_at > now + kApprovalSkew) {
      continue;
    }
    if (rules.max_age && signed_at + *rules.max_age < now) {
      ++signatures.too_old;
      continue;
    }
    signatures.counted.push_back({.key = opened.signers[i],
                                  .role = approver->role,
                                  .organisation = approver->organisation,
                                  .signed_at = signed_at});
  }
  return signatures;
}

}  // namespace

std::string GrantText(const GrantBody& body) {
  Json json;
  json.Set("v", 1);
  json.Set("kind", "grant");
  json.Set("federation", body.federation);
  json.Set("site", body.site.text());
  json.Set("job", body.job.text());
  json.Set("plan", PrintHex(body.plan));
  json.Set("trainer", PrintHex(body.trainer));
  json.Set("base_model", PrintHex(body.base_model));
  json.Set("dataset", body.dataset.text());
  json.Set("dataset_commitment", PrintHex(body.dataset_commitment));
  json.Set("effective_policy", PrintHex(body.effective_policy));
  json.Set("not_after", PrintTime(body.not_after));
  return PrintJson(json) + "\n";
}

StatusOr<GrantBody> GrantBodyFromText(std::string_view text) {
  if (text.size() > kLongestText || !text.ends_with('\n')) {
    return Error(StatusCode::kInvalidArgument,
                 "grant: must be one line of at most 4096 bytes that ends in a newline");
  }
  StatusOr<Json> json = ParseCanonicalJson(text.substr(0, text.size() - 1));
  if (!json.ok()) {
    return Annotate(json.status(), "grant");
  }
  JsonReader reader(*json, "grant");
  reader.Int("v", 1, 1);
  if (reader.String("kind") != "grant") {
    reader.Fail("kind", "must be `grant`");
  }
  GrantBody body;
  body.federation = reader.String("federation");
  if (!IsFederation(body.federation)) {
    reader.Fail("federation", "must be a trust domain: a-z, 0-9, `.`, `-`, `_`");
  }
  body.site = ReadName<SiteId>(reader, "site");
  body.job = ReadName<JobId>(reader, "job");
  body.plan = ReadDigest(reader, "plan");
  body.trainer = ReadDigest(reader, "trainer");
  body.base_model = ReadDigest(reader, "base_model");
  body.dataset = ReadName<DatasetAlias>(reader, "dataset");
  body.dataset_commitment = ReadDigest(reader, "dataset_commitment");
  body.effective_policy = ReadDigest(reader, "effective_policy");
  const std::string not_after = reader.String("not_after");
  const StatusOr<WallTime> time = ParseTime(not_after);
  // One spelling: milliseconds, so that a text and its digest are one.
  if (!time.ok() || PrintTime(*time) != not_after) {
    reader.Fail("not_after", "must be a UTC time with milliseconds: 2026-12-30T00:00:00.000Z");
  } else {
    body.not_after = *time;
  }
  RETURN_IF_ERROR(reader.Finish());
  return body;
}

Digest GrantDigest(const GrantBody& body) { return crypto::Sha256(AsBytes(GrantText(body))); }

Digest SharedDigest(const GrantBody& body) {
  Json json;
  json.Set("v", 1);
  json.Set("kind", "request");
  json.Set("federation", body.federation);
  json.Set("job", body.job.text());
  json.Set("plan", PrintHex(body.plan));
  json.Set("base_model", PrintHex(body.base_model));
  return crypto::Sha256(AsBytes(PrintJson(json)));
}

GrantCheck VerifyGrant(std::string_view note, const ApprovalRules& rules, const GrantBody& wanted,
                       WallTime now) {
  GrantCheck check;
  const StatusOr<crypto::OpenedNote> opened = crypto::OpenNote(note, rules.Keys());
  // A threshold of nobody would make every text a grant.
  if (!opened.ok() || rules.persons == 0) {
    return check;
  }
  const Signatures signatures = Weigh(*opened, rules, now);
  if (signatures.counted.size() < rules.persons) {
    if (signatures.counted.size() + signatures.too_old >= rules.persons) {
      check.reason = policy::Reason::kApprovalExpired;
    }
    return check;
  }
  const StatusOr<GrantBody> body = GrantBodyFromText(opened->text);
  if (!body.ok()) {
    check.reason = policy::Reason::kMalformed;
    return check;
  }
  check.reason = now < body->not_after ? Compare(*body, wanted) : policy::Reason::kGrantExpired;
  if (check.reason == policy::Reason::kNone && !MeetNeeds(signatures.counted, rules.needs)) {
    check.reason = signatures.too_old > 0 ? policy::Reason::kApprovalExpired
                                          : policy::Reason::kApprovalMissing;
  }
  if (check.reason == policy::Reason::kNone) {
    check.body = *body;
    check.approvals = signatures.counted;
  }
  return check;
}

}  // namespace domicile::contracts

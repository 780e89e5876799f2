// A trainer that puts the text of an exception wherever its answer has room for one: nothing of it
// is on the wire, in either direction, whatever becomes of the answer.
#include <doctest/doctest.h>

#include "tests/cases/federation.h"
#include "tests/support/federation_processes.h"
#include "tests/support/tls_tape.h"

namespace domicile::test {
namespace {

using policy::Reason;

const std::string kText = "KeyError: 'SENTINEL-PATIENT-5540'";
constexpr std::string_view kCanary = "SENTINEL-PATIENT-5540";
const std::string kValues = R"({"shape":[2],"values":[1,0]})";

std::string Train(const std::string& delta, const std::string& more = "") {
  return R"([{"phase":"train","rows":10,"delta":{)" + delta + "}" + more + "}]";
}

// Whose answer is what, and what the aggregator gets to know of it.
struct Answer {
  CaseSite site;
  Reason reason;  // kNone: nothing is wrong with it
};
const Answer kAnswers[] = {
    {{"alpha", "DE", Train(R"("w":)" + kValues)}, Reason::kNone},
    {{"bravo", "FR", R"([{"phase":"train","fail":89,"extra":{"message":")" + kText + R"("}}])"},
     Reason::kTrainerFailed},
    {{"charlie", "NL", Train(R"("w":)" + kValues, R"(,"extra":{"note":")" + kText + R"("})")},
     Reason::kTrainerFailed},
    {{"delta", "AT", Train(R"("w":)" + kValues, R"(,"metadata":{"error":")" + kText + R"("})")},
     Reason::kTrainerFailed},
    {{"echo", "ES", Train(R"("w":)" + kValues + R"(,")" + kText + R"(":)" + kValues)},
     Reason::kTrainerFailed},
    {{"foxtrot", "IT", Train(R"("w":)" + kValues, R"(,"extra":{"phase":")" + kText + R"("})")},
     Reason::kTrainerFailed},
};

}  // namespace

TEST_CASE("Trainer texts: an exception's text is in no byte that leaves, whatever it comes in") {
  const TemporaryFolder folder;
  std::vector<CaseSite> sites;
  for (const Answer& answer : kAnswers) {
    sites.push_back(answer.site);
  }
  std::unique_ptr<CaseFederation> federation;
  {
    const TlsTap tap(folder.Path());
    federation = Must(CaseFederation::Start(sites));
  }

  const JobId job = Must(federation->Submit(JobFile({.rounds = 1, .quorum = 2})));
  Must(federation->Approve(job));
  const auto ended = Must(federation->WaitForEnd(job));

  for (const Answer& answer : kAnswers) {
    CAPTURE(answer.site.name);
    CHECK(policy::Code(ReasonAt(ended, answer.site.name)) == policy::Code(answer.reason));
  }
  federation.reset();  // so that every tape is at its end
  const std::vector<Tape> tapes = Must(ReadTapes(folder.Path()));
  CHECK(tapes.size() >= 2 * std::size(kAnswers));
  std::string all;
  for (const Tape& tape : tapes) {
    for (const std::string& bytes : {tape.sent, tape.received}) {
      all += bytes + Must(MessagesOf(bytes));
    }
  }
  CHECK(all.find("numbers") != std::string::npos);  // the alias: the tap hears
  for (const std::string& form : FormsOfText(kCanary)) {
    CHECK(all.find(form) == std::string::npos);
  }
}

}  // namespace domicile::test

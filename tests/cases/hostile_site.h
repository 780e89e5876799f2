// A member in the hands of somebody who wrote an agent of their own: the certificate and the log
// key are real, what it says is what the test wants it to say.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/log.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "contracts/identity.h"
#include "tests/cases/federation.h"
#include "wire/client.h"

namespace domicile::test {

// A submission as it is told; an agent tells it as the open phase says.
struct Submission {
  v1::PhaseId phase;
  v1::Epoch epoch;
  std::string base_model;  // raw digest
  std::uint64_t instance = 1;
  std::vector<float> delta;
  std::int64_t weight = 1;
  // Who decided, by the leaf that goes with it.
  std::string party;  // `site/NAME`
  std::string place;
};

// One thread at a time.
class HostileSite {
 public:
  // Over mutual TLS, as `site`; nothing is said yet.
  static StatusOr<std::unique_ptr<HostileSite>> Connect(const CaseFederation& federation,
                                                        const std::string& site);
  ~HostileSite();

  // Says hello with a policy statement and returns the answer: a welcome or a goodbye. `change` may
  // alter the hello first.
  StatusOr<v1::Directive> Greet(const std::string& statement,
                                const std::function<void(v1::Hello&)>& change = {});
  const std::string& Statement() const { return statement_; }  // its own

  // Accepts the first job that is offered.
  Status AcceptOffer();
  // The next opening of that round.
  StatusOr<v1::OpenPhase> WaitForRound(std::uint32_t round);

  // What an honest agent would send.
  Submission Honest(const v1::OpenPhase& open, const std::vector<float>& delta,
                    std::int64_t weight) const;
  struct Prepared {
    v1::UpdateHeader header;
    Bytes update;
  };
  // The update, the decision in the site's own log, and the header.
  StatusOr<Prepared> Prepare(const Submission& submission);
  StatusOr<wire::SubmitAnswer> Send(const Prepared& prepared);
  StatusOr<wire::SubmitAnswer> Submit(const Submission& submission);

  // Fetches a model.
  Status Fetch(const v1::BlobRef& model);

 private:
  class Inbox;
  HostileSite(contracts::Identity identity, std::string statement, Digest policy, Database db);
  StatusOr<v1::Directive> WaitFor(const std::function<bool(const v1::Directive&)>& test);

  const SystemClock clock_;
  SystemRandom random_;
  const contracts::Identity identity_;
  const std::string statement_;
  const Digest policy_;  // effective
  Database db_;
  std::optional<audit::Log> log_;
  std::string plan_;
  std::unique_ptr<Inbox> inbox_;
  std::unique_ptr<wire::FederationClient> client_;
  std::unique_ptr<wire::ControlStream> control_;  // last: it uses the others
};

}  // namespace domicile::test

// What became of the jobs whose grants this trainer has acted on: how far each has gone, and which
// were taken back. A grant is for one run: its rounds only go forward, so a grant replayed after
// the run can ask for its last phase again, with the same model, and for nothing else. A file in
// the trainer's state folder (docs/formats/trainer-config.md).
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/sqlite.h"
#include "base/status.h"
#include "contracts/plan.h"
#include "policy/reason.h"

namespace domicile::site_agent {

// One phase of a job, with the model it starts from.
struct GrantUse {
  JobId job;
  RoundNumber round = 0;
  contracts::PhaseKind phase = contracts::PhaseKind::kNone;
  Digest model;
};

// One thread at a time.
class UseStore {
 public:
  // `:memory:` for tests. Errors: as Database::Open and Migrate.
  static StatusOr<UseStore> Open(const std::string& path);

  // kNone if this use comes after the last one, or repeats it; kGrantUsed if it lies before it, or
  // repeats it with another model; kApprovalDenied if the job was taken back.
  StatusOr<policy::Reason> Check(const GrantUse& use);
  // Durable when it returns. For a use that Check has passed.
  Status Remember(const GrantUse& use);
  // The job was denied, or its approval taken back. For good.
  Status Deny(const JobId& job);

 private:
  explicit UseStore(Database database) : database_(std::move(database)) {}
  Database database_;
};

}  // namespace domicile::site_agent

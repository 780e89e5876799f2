// Train tasks of a site that trains on several hosts: the chief passes each on to the other
// workers, which verify it themselves (docs/formats/cluster.md).
#pragma once

#include <memory>
#include <stop_token>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "crypto/secret.h"
#include "models/strategy/worker_group.h"
#include "site_agent/cluster/description.h"
#include "site_agent/cluster/group.h"
#include "site_agent/cluster/sockets.h"
#include "site_agent/trainer/protocol.h"
#include "site_agent/trainer/server.h"

namespace domicile::site_agent {

// What a host needs to find the others; opened before the walls go up.
struct ClusterSeat {
  ClusterDescription description;
  ClusterSockets sockets;
  crypto::SecretBytes key;
};

// Reads cluster.toml, TF_CONFIG and the key, and opens the sockets. Errors: those of each; a key
// file that others can read, or that holds no key, is kInvalidArgument or kPermissionDenied.
StatusOr<ClusterSeat> TakeClusterSeat(const std::string& description_file, const Clock& clock);

// Of the commitments, for ClusterIdentity::data.
Digest DataDigest(std::vector<DatasetFact> datasets);

// What the work on one train task does with the other hosts. One thread at a time.
class ClusterTasks {
 public:
  virtual ~ClusterTasks() = default;
  // The group in which to train this task; all others are ready for it. Errors: kUnavailable,
  // naming the worker; kPermissionDenied (a worker refused, with its code); kCancelled.
  virtual StatusOr<models::WorkerGroup*> Begin(const TaskMessage& task, std::stop_token stop) = 0;
  // After the last step. Errors: kDataLoss where a worker has other tensors, kUnavailable.
  virtual Status End(const Digest& result) = 0;
  // How often a task whose group broke may begin again.
  virtual int Attempts() const = 0;
};

// Of rank 0. The seat and the clock must outlive it.
class ChiefTasks final : public ClusterTasks {
 public:
  ChiefTasks(ClusterSeat& seat, ClusterIdentity identity, const Clock& clock);
  StatusOr<models::WorkerGroup*> Begin(const TaskMessage& task, std::stop_token stop) override;
  Status End(const Digest& result) override;
  int Attempts() const override { return 3; }

 private:
  Status PassOn(const TaskMessage& task, const std::stop_token& stop);

  ClusterSeat& seat_;
  ClusterIdentity identity_;
  const Clock& clock_;
  std::unique_ptr<ClusterGroup> group_;  // null: to be joined anew
  bool in_task_ = false;
};

// Of every other rank. Serve runs one task after another with the handler, whose work must call
// Begin and End here.
class WorkerTasks final : public ClusterTasks {
 public:
  WorkerTasks(ClusterSeat& seat, ClusterIdentity identity, const Clock& clock);
  // Until `stop` (OK), or until the group breaks: kUnavailable, and the process has to start again.
  Status Serve(TaskHandler& handler, std::uint64_t max_payload, const std::stop_token& stop);

  StatusOr<models::WorkerGroup*> Begin(const TaskMessage& task, std::stop_token stop) override;
  Status End(const Digest& result) override;
  int Attempts() const override { return 1; }

 private:
  Status ServeOne(TaskHandler& handler, std::uint64_t max_payload, const std::stop_token& stop);

  ClusterSeat& seat_;
  ClusterIdentity identity_;
  const Clock& clock_;
  std::unique_ptr<ClusterGroup> group_;
};

}  // namespace domicile::site_agent

#include "site_agent/egress/model_taker.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "models/safetensors.h"
#include "site_agent/egress/model_intake.h"
#include "site_agent/egress/outbox.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint64_t kLargestSizeInLog = std::uint64_t{1} << 50U;

}  // namespace

using policy::Reason;

ModelTaker::ModelTaker(Books& books, const contracts::Plan& plan, audit::PhaseKey key,
                       Places places, Fetch fetch)
    : books_(books),
      plan_(plan),
      key_(std::move(key)),
      places_(std::move(places)),
      fetch_(std::move(fetch)) {}

std::variant<Bytes, Reason> ModelTaker::Take(const Digest& model, std::uint64_t size_bytes) {
  StatusOr<std::optional<JobRow>> found =
      books_.With([this](SiteStore& store) { return store.FindJob(key_.job); });
  if (!found.ok() || !*found) {
    return found.ok() ? Reason::kJobUnknown : StorageReason(found.status());
  }
  const JobRow& job = **found;
  if (model != (job.committed_model.IsZero() ? job.base_model : job.committed_model)) {
    return Refuse(model, size_bytes, Reason::kModelDigest);
  }
  if (model == job.last_model) {
    if (const StatusOr<std::string> kept = Read(model); kept.ok()) {
      return ToBytes(*kept);
    }
  }
  if (job.last_model.IsZero() && model != job.base_model) {
    // Joined late: the model is measured from the first one, one step for each verified round.
    std::variant<Bytes, Reason> base = TakeNew(job, job.base_model, job.base_model_bytes);
    if (std::holds_alternative<Reason>(base)) {
      return base;
    }
    return Take(model, size_bytes);
  }
  return TakeNew(job, model, size_bytes);
}

std::variant<Bytes, Reason> ModelTaker::TakeNew(const JobRow& job, const Digest& model,
                                                std::uint64_t size_bytes) {
  // The size is what the aggregator says: memory is taken only for what the plan can need.
  if (size_bytes > MaxModelBytes(plan_)) {
    return Refuse(model, size_bytes, Reason::kTooLarge);
  }
  std::variant<Bytes, Reason> fetched = fetch_(model, size_bytes);
  if (std::holds_alternative<Reason>(fetched)) {
    return fetched;
  }
  const Bytes& bytes = std::get<Bytes>(fetched);
  if (const Reason reason = Check(job, model, bytes); reason != Reason::kNone) {
    return Refuse(model, size_bytes, reason);
  }
  if (const Status kept = Keep(job, model, bytes); !kept.ok()) {
    LogError(std::string(Message(kept)));
    return StorageReason(kept);
  }
  return fetched;
}

Reason ModelTaker::Check(const JobRow& job, const Digest& model, ByteSpan bytes) {
  const StatusOr<std::vector<models::NamedTensor>> tensors = models::ParseSafetensors(bytes);
  if (!tensors.ok()) {
    return Reason::kModelShape;
  }
  IntakeState state{.last = {},
                    .train_commits = job.train_commits,
                    .statistics_committed = job.statistics_committed};
  if (model == job.base_model || model == job.last_model) {
    state.last = *tensors;  // the digest is the one the grant names, or of a model taken in before
  } else {
    const StatusOr<std::string> last = Read(job.last_model);
    StatusOr<std::vector<models::NamedTensor>> parsed =
        last.ok() ? models::ParseSafetensors(AsBytes(*last)) : last.status();
    if (!parsed.ok()) {
      return Reason::kModelDigest;  // nothing to measure from
    }
    state.last = *std::move(parsed);
  }
  return CheckModel(plan_, state, *tensors);
}

// The file, then the row that names it with the leaf, then the one before it goes: after a crash
// the next start removes what no row names.
Status ModelTaker::Keep(const JobRow& job, const Digest& model, ByteSpan bytes) {
  RETURN_IF_ERROR(books_.With([&](SiteStore& store) { return store.WriteModel(model, bytes); }));
  RETURN_IF_ERROR(books_
                      .Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
                        RETURN_IF_ERROR(store.SetTakenModel(job, model));
                        return ToEvent(audit::EventType::kModelIntake,
                                       audit::ModelTransfer{.key = key_,
                                                            .model = model,
                                                            .bytes = bytes.size(),
                                                            .kind = "model.final",
                                                            .from = places_.aggregator,
                                                            .to = places_.site,
                                                            .decision = {}});
                      })
                      .status());
  return job.last_model.IsZero() || job.last_model == model
             ? OkStatus()
             : books_.With([&](SiteStore& store) { return store.RemoveModel(job.last_model); });
}

Reason ModelTaker::Refuse(const Digest& model, std::uint64_t size_bytes, Reason reason) {
  const Status logged = books_
                            .Append(audit::EventBuilder(audit::EventType::kModelRefused)
                                        .Phase(key_)
                                        .Set("model", model)
                                        // What the aggregator said; a log holds no larger number.
                                        .Set("bytes", std::min(size_bytes, kLargestSizeInLog))
                                        .Set("reason", std::string(policy::Code(reason)))
                                        .Build())
                            .status();
  return logged.ok() ? reason : StorageReason(logged);
}

StatusOr<std::string> ModelTaker::Read(const Digest& model) {
  return books_.With([&](SiteStore& store) { return store.ReadModel(model); });
}

}  // namespace domicile::site_agent

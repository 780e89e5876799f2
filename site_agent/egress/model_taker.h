// Takes the model of a phase in: the right one by digest, fetched, checked (model_intake.h), kept
// on disk, since the next one is measured from it, and logged. What is refused is logged too.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>

#include "audit/records.h"
#include "base/bytes.h"
#include "contracts/plan.h"
#include "policy/reason.h"
#include "site_agent/egress/books.h"
#include "site_agent/egress/site_store.h"

namespace domicile::site_agent {

// One thread at a time. Borrows the books and the plan.
class ModelTaker {
 public:
  // The bytes of a model of this digest and size, or why there are none.
  using Fetch = std::function<std::variant<Bytes, policy::Reason>(const Digest&, std::uint64_t)>;
  struct Places {
    audit::PartyPlace aggregator;
    audit::PartyPlace site;
  };

  ModelTaker(Books& books, const contracts::Plan& plan, audit::PhaseKey key, Places places,
             Fetch fetch);

  // The model's bytes. Refused: kModelDigest (not the one that the last verified commit names, or
  // before any commit the grant's), kTooLarge (longer than the plan's model can be; nothing is
  // fetched), those of Fetch and of CheckModel, kDiskFull, kLogUnavailable. A site that missed
  // rounds takes one step for each commit that it has verified; one that joined late fetches the
  // first model too.
  std::variant<Bytes, policy::Reason> Take(const Digest& model, std::uint64_t size_bytes);

 private:
  std::variant<Bytes, policy::Reason> TakeNew(const JobRow& job, const Digest& model,
                                              std::uint64_t size_bytes);
  policy::Reason Check(const JobRow& job, const Digest& model, ByteSpan bytes);
  Status Keep(const JobRow& job, const Digest& model, ByteSpan bytes);
  policy::Reason Refuse(const Digest& model, std::uint64_t size_bytes, policy::Reason reason);
  StatusOr<std::string> Read(const Digest& model);

  Books& books_;
  const contracts::Plan& plan_;
  const audit::PhaseKey key_;
  const Places places_;
  const Fetch fetch_;
};

}  // namespace domicile::site_agent

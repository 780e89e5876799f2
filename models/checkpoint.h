// Training checkpoints: a strategy's state and the place in the data, in one file that is checked
// when it is read. Page of the format: docs/formats/checkpoint.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "models/data/pipeline.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

struct Checkpoint {
  TrainingState state{};
  PipelinePosition position{};
  // What retention compares; infinite: not measured. Not NaN.
  double loss = std::numeric_limits<double>::infinity();

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

// `subject` says what is trained: a checkpoint of something else is refused.
Bytes PrintCheckpoint(const Checkpoint& checkpoint, const Digest& subject);
// Errors: kDataLoss: the digest is not that of the bytes. kInvalidArgument: another subject, or
// not a checkpoint.
StatusOr<Checkpoint> ParseCheckpoint(ByteSpan file, const Digest& subject);

struct CheckpointRetention {
  std::size_t last = 2;  // at least 1
  bool best = true;      // also the one of the smallest loss
};

// The checkpoints of one training in a folder of their own. One thread at a time.
class CheckpointStore {
 public:
  // Makes the folder if need be, and removes what a crash left half written and what does not read
  // as a checkpoint of the subject: there is nothing to go on from in it. Errors: those of files.
  static StatusOr<CheckpointStore> Open(std::string folder, const Digest& subject,
                                        const CheckpointRetention& retention);

  // Durable when it returns; then older ones go, as retention says. A checkpoint of the same step
  // is replaced. Errors: those of WriteFileDurably; the earlier checkpoints are then untouched.
  Status Save(const Checkpoint& checkpoint);

  // Empty if there is none (Best: none with a measured loss). Errors: kDataLoss if a file has
  // changed since Open or Save; those of files.
  StatusOr<std::optional<Checkpoint>> Last() const;
  StatusOr<std::optional<Checkpoint>> Best() const;
  // Of one of Steps().
  StatusOr<Checkpoint> At(std::uint64_t step) const { return Read(step); }

  // Steps of the checkpoints there are, rising.
  std::vector<std::uint64_t> Steps() const;
  // Removes all: training has come to its end.
  Status Clear();

 private:
  struct Entry {
    std::uint64_t step = 0;
    double loss = 0;
  };

  CheckpointStore(std::string folder, const Digest& subject, const CheckpointRetention& retention)
      : folder_(std::move(folder)), subject_(subject), retention_(retention) {}

  std::string PathOf(std::uint64_t step) const;
  StatusOr<Checkpoint> Read(std::uint64_t step) const;
  void Note(const Checkpoint& checkpoint);
  Status Prune();
  // The smallest measured loss; null if there is none.
  const Entry* BestEntry() const;

  std::string folder_;
  Digest subject_;
  CheckpointRetention retention_;
  std::vector<Entry> entries_;  // by rising step
};

}  // namespace domicile::models

// Training checkpoints: a strategy's state and the place in the data, in one file that is checked
// when it is read. Page of the format: docs/formats/checkpoint.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "models/data/pipeline.h"
#include "models/strategy/strategy.h"

namespace domicile::models {

// Where early stopping stands.
struct StoppingState {
  // The step of the checkpoint with the smallest validation loss so far, which may be this one; 0:
  // none yet.
  std::uint64_t best = 0;
  // What an epoch must improve on, and epochs since the one that set it. Infinite: none yet.
  double reference = std::numeric_limits<double>::infinity();
  std::uint64_t waited = 0;

  friend bool operator==(const StoppingState&, const StoppingState&) = default;
};

struct Checkpoint {
  TrainingState state{};
  PipelinePosition position{};
  // Of the epoch that ends here; infinite: not measured. Not NaN.
  double loss = std::numeric_limits<double>::infinity();
  StoppingState stopping{};

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

// `subject` says what is trained: a checkpoint of something else is refused.
Bytes PrintCheckpoint(const Checkpoint& checkpoint, const Digest& subject);
// Errors: kDataLoss: the digest is not that of the bytes. kInvalidArgument: another subject, or
// not a checkpoint.
StatusOr<Checkpoint> ParseCheckpoint(ByteSpan file, const Digest& subject);

// The checkpoints of one training in a folder of their own. One thread at a time.
class CheckpointStore {
 public:
  // Makes the folder if need be, and removes what a crash left half written and what training
  // cannot go on from: what does not read as a checkpoint of the subject (with a warning in the
  // log), and what names a best that is not there. Keeps `last` >= 1, and those they name. Errors:
  // those of files.
  static StatusOr<CheckpointStore> Open(std::string folder, const Digest& subject,
                                        std::size_t last = 2);

  // Durable when it returns; then older ones go. A checkpoint of the same step is replaced. Errors:
  // kFailedPrecondition: it names a best that is not here; those of WriteFileDurably. The earlier
  // checkpoints are then untouched.
  Status Save(const Checkpoint& checkpoint);

  // Of one of Steps(). Errors: kDataLoss if the file has changed since Open or Save; those of
  // files.
  StatusOr<Checkpoint> At(std::uint64_t step) const { return Read(step); }

  // Steps of the checkpoints there are, rising.
  std::vector<std::uint64_t> Steps() const;
  // Removes all: training has come to its end.
  Status Clear();

 private:
  struct Entry {
    std::uint64_t step = 0;
    std::uint64_t best = 0;  // the step it names
  };

  CheckpointStore(std::string folder, const Digest& subject, std::size_t last)
      : folder_(std::move(folder)), subject_(subject), last_(last) {}

  std::string PathOf(std::uint64_t step) const;
  StatusOr<Checkpoint> Read(std::uint64_t step) const;
  void Note(const Checkpoint& checkpoint);
  bool Has(std::uint64_t step) const;
  Status Prune();

  std::string folder_;
  Digest subject_;
  std::size_t last_;
  std::vector<Entry> entries_;  // by rising step
};

}  // namespace domicile::models

// A cache of a stage's elements on disk, for what does not fit in memory and is dear to make.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/status.h"
#include "models/data/spill_file.h"
#include "models/data/stage.h"

namespace domicile::models {

template <typename T>
struct Codec {
  std::function<void(const T&, Bytes&)> print;  // appends
  std::function<T(ByteSpan)> parse;             // what print made
};

// Later epochs have the order of the first, from the file; what did not fit in it, or what a disk
// no longer gives, is made again by the stage below.
template <typename T>
class DiskCacheStage final : public Stage<T> {
 public:
  DiskCacheStage(StagePtr<T> below, SpillFile file, Codec<T> codec)
      : below_(std::move(below)), file_(std::move(file)), codec_(std::move(codec)) {}

  std::optional<T> Next() override {
    if (position_ < file_.NumRecords()) {
      if (file_.Read(position_, bytes_)) {
        ++position_;
        return codec_.parse(bytes_);
      }
      file_.Truncate(position_);
      growing_ = false;
    }
    if (position_ == size_) {
      return std::nullopt;
    }
    MoveBelow();
    std::optional<T> element = below_->Next();
    if (!element) {
      size_ = position_;
      return std::nullopt;
    }
    if (growing_ && position_ == file_.NumRecords()) {
      bytes_.clear();
      codec_.print(*element, bytes_);
      growing_ = file_.Append(bytes_);
    }
    ++position_;
    ++below_position_;
    return element;
  }

  void Restart(std::uint64_t /*epoch*/) override { position_ = 0; }

  std::size_t Skip(std::size_t count) override {
    const std::size_t held =
        std::min(count, file_.NumRecords() - std::min(position_, file_.NumRecords()));
    position_ += held;
    if (held == count || position_ == size_) {
      return held;
    }
    MoveBelow();
    const std::size_t more = below_->Skip(count - held);
    position_ += more;
    below_position_ += more;
    if (held + more < count) {
      size_ = position_;
    }
    return held + more;
  }

 private:
  static constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();

  // Brings the stage below to position_.
  void MoveBelow() {
    if (below_position_ == position_) {
      return;
    }
    if (below_position_ > position_) {
      below_->Restart(0);
      below_position_ = 0;
    }
    below_position_ += below_->Skip(position_ - below_position_);
    DOMICILE_CHECK(below_position_ == position_);  // it has given them before
  }

  StagePtr<T> below_;
  SpillFile file_;
  Codec<T> codec_;
  std::size_t position_ = 0;
  std::size_t below_position_ = 0;
  std::size_t size_ = kUnknown;  // of an epoch, once its end has been seen
  bool growing_ = true;
  Bytes bytes_;
};

// At most `max_bytes` in a file without a name in `folder`. Errors: those of SpillFile::Create.
template <typename T>
StatusOr<StagePtr<T>> CacheOnDisk(StagePtr<T> below, const std::string& folder,
                                  std::uint64_t max_bytes, Codec<T> codec) {
  ASSIGN_OR_RETURN(SpillFile file, SpillFile::Create(folder, max_bytes));
  return StagePtr<T>(
      std::make_unique<DiskCacheStage<T>>(std::move(below), std::move(file), std::move(codec)));
}

}  // namespace domicile::models

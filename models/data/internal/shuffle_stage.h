// A shuffle that can be put anywhere in an epoch without reading what it has given before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "models/data/stage.h"

namespace domicile::models::internal {

// Holds up to `window` elements and gives one of them by chance each time.
template <typename T>
class ShuffleStage final : public Stage<T> {
 public:
  ShuffleStage(StagePtr<T> below, std::uint64_t seed, std::size_t window)
      : below_(std::move(below)), seed_(seed), window_(window), random_(SeedOf(0)) {}
  std::optional<T> Next() override {
    started_ = true;
    while (!below_ended_ && held_.size() < window_) {
      std::optional<T> element = below_->Next();
      below_ended_ = !element;
      if (element) {
        held_.push_back(std::move(*element));
      }
    }
    return held_.empty() ? std::nullopt : std::optional(Draw(held_));
  }
  void Restart(std::uint64_t epoch) override {
    held_.clear();
    below_ended_ = false;
    started_ = false;
    epoch_ = epoch;
    random_ = SeededRandom(SeedOf(epoch));
    below_->Restart(epoch);
  }
  std::size_t Skip(std::size_t count) override {
    return started_ || count == 0 ? Stage<T>::Skip(count) : SkipFromStart(count);
  }

 private:
  // Neighbouring epochs must not give neighbouring states of the generator.
  std::uint64_t SeedOf(std::uint64_t epoch) const {
    SeededRandom mixer(seed_);
    return mixer.Next64() ^ SeededRandom(epoch).Next64();
  }

  template <typename U>
  U Draw(std::vector<U>& from) {
    std::swap(from[random_.Below(from.size())], from.back());
    U drawn = std::move(from.back());
    from.pop_back();
    return drawn;
  }

  // Draws positions in place of elements, and then reads only the elements that are left.
  std::size_t SkipFromStart(std::size_t count) {
    // What Next would have read: the window is full before each draw.
    const std::size_t wanted = count > SIZE_MAX - window_ ? SIZE_MAX : count - 1 + window_;
    const std::size_t read = below_->Skip(wanted);
    below_->Restart(epoch_);
    started_ = true;
    below_ended_ = read < wanted;
    std::vector<std::size_t> positions;
    std::size_t next = 0;
    std::size_t skipped = 0;
    for (; skipped < count; ++skipped) {
      while (next < read && positions.size() < window_) {
        positions.push_back(next++);
      }
      if (positions.empty()) {
        break;
      }
      Draw(positions);
    }
    Read(positions, next);
    return skipped;
  }
  // Leaves the stage below after its first `passed` elements.
  void Read(const std::vector<std::size_t>& positions, std::size_t passed) {
    std::vector<std::size_t> order(positions.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&positions](std::size_t a, std::size_t b) { return positions[a] < positions[b]; });
    std::vector<std::optional<T>> elements(positions.size());
    std::size_t at = 0;
    for (const std::size_t slot : order) {
      below_->Skip(positions[slot] - at);
      elements[slot] = below_->Next();
      at = positions[slot] + 1;
    }
    below_->Skip(passed - at);
    for (std::optional<T>& element : elements) {
      DOMICILE_CHECK(element.has_value());  // it was there when it was counted
      held_.push_back(std::move(*element));
    }
  }

  StagePtr<T> below_;
  std::uint64_t seed_;
  std::size_t window_;
  std::uint64_t epoch_ = 0;
  bool started_ = false;
  SeededRandom random_;
  std::vector<T> held_;
  bool below_ended_ = false;
};

}  // namespace domicile::models::internal

#include "models/checkpoint.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "crypto/sha256.h"
#include "models/safetensors.h"

namespace domicile::models {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kDigestBytes = 32;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{32} << 30U;
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::size_t kStepDigits = 12;

std::vector<std::int64_t> Words(const Digest& digest) {
  std::vector<std::int64_t> words(4);
  std::memcpy(words.data(), digest.bytes.data(), kDigestBytes);
  return words;
}

NamedTensor Number(std::string name, std::uint64_t value) {
  return {.name = std::move(name),
          .type = DataType::kInt64,
          .integers = {static_cast<std::int64_t>(value)}};
}

NamedTensor DigestTensor(std::string name, const Digest& digest) {
  return {
      .name = std::move(name), .shape = {4}, .type = DataType::kInt64, .integers = Words(digest)};
}

NamedTensor Vector(std::string name, const std::vector<float>& values) {
  return {.name = std::move(name), .shape = {values.size()}, .values = values};
}

Status Refuse(const std::string& what) {
  return Error(StatusCode::kInvalidArgument, "checkpoint: " + what);
}

// Takes tensors in the order of the format; the first that does not fit is remembered.
class Reader {
 public:
  explicit Reader(std::vector<NamedTensor> tensors) : tensors_(std::move(tensors)) {}

  std::uint64_t Count(std::string_view name) {
    const std::int64_t value = Word(name);
    if (value < 0) {
      Fail(name, "must not be below 0");
    }
    return static_cast<std::uint64_t>(value);
  }
  double Real(std::string_view name) { return std::bit_cast<double>(Word(name)); }
  double NumberOf(std::string_view name) {
    const double value = Real(name);
    if (std::isnan(value)) {
      Fail(name, "must be a number");
    }
    return value;
  }
  std::int64_t Word(std::string_view name) {
    NamedTensor* const tensor = Take(name, DataType::kInt64, 0);
    return tensor == nullptr ? 0 : tensor->integers.at(0);
  }
  std::vector<std::int64_t> Four(std::string_view name) {
    NamedTensor* const tensor = Take(name, DataType::kInt64, 1);
    if (tensor != nullptr && tensor->integers.size() != 4) {
      Fail(name, "must have 4 words");
    }
    return tensor == nullptr ? std::vector<std::int64_t>() : std::move(tensor->integers);
  }
  std::vector<float> Floats(std::string_view name) {
    NamedTensor* const tensor = Take(name, DataType::kFloat32, 1);
    return tensor == nullptr ? std::vector<float>() : std::move(tensor->values);
  }
  bool IsNext(std::string_view name) const {
    return at_ < tensors_.size() && tensors_[at_].name == name;
  }
  Status Finish() {
    if (at_ != tensors_.size()) {
      Fail(tensors_[at_].name, "is not part of the format");
    }
    return status_;
  }
  void Fail(std::string_view name, std::string_view what) {
    if (status_.ok()) {
      status_ = Refuse("`" + std::string(name) + "` " + std::string(what));
    }
  }

 private:
  NamedTensor* Take(std::string_view name, DataType type, std::size_t rank) {
    if (!status_.ok()) {
      return nullptr;
    }
    if (!IsNext(name) || tensors_[at_].type != type || tensors_[at_].shape.size() != rank) {
      Fail(name, "is missing, or not where and as the format has it");
      return nullptr;
    }
    return &tensors_[at_++];
  }

  std::vector<NamedTensor> tensors_;
  std::size_t at_ = 0;
  Status status_ = OkStatus();
};

std::optional<std::uint64_t> StepOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
      name.size() != kPrefix.size() + kStepDigits + kSuffix.size()) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(kPrefix.size(), kStepDigits);
  std::uint64_t step = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), step);
  return error == std::errc() && end == digits.end() ? std::optional(step) : std::nullopt;
}

}  // namespace

Bytes PrintCheckpoint(const Checkpoint& checkpoint, const Digest& subject) {
  const TrainingState& state = checkpoint.state;
  std::vector<NamedTensor> tensors = {
      Number("version", kVersion),
      DigestTensor("subject", subject),
      Number("step", state.step),
      Number("epoch", checkpoint.position.epoch),
      Number("elements", checkpoint.position.elements),
      Number("loss", std::bit_cast<std::uint64_t>(checkpoint.loss)),
      Number("best", checkpoint.stopping.best),
      Number("reference", std::bit_cast<std::uint64_t>(checkpoint.stopping.reference)),
      Number("waited", checkpoint.stopping.waited),
      Number("loss_scale", std::bit_cast<std::uint64_t>(state.loss_scale.scale)),
      Number("good_steps", state.loss_scale.good_steps),
      Number("optimizer.steps", state.optimizer.num_steps),
      Vector("optimizer.first", state.optimizer.first),
  };
  if (!state.optimizer.second.empty()) {
    tensors.push_back(Vector("optimizer.second", state.optimizer.second));
  }
  tensors.push_back(Vector("parameters", state.parameters));
  tensors.push_back(DigestTensor("digest", Digest{}));
  Bytes file = PrintSafetensors(tensors);
  const Digest digest = crypto::Sha256(ByteSpan(file).first(file.size() - kDigestBytes));
  std::copy(digest.bytes.begin(), digest.bytes.end(), file.end() - kDigestBytes);
  return file;
}

StatusOr<Checkpoint> ParseCheckpoint(ByteSpan file, const Digest& subject) {
  if (file.size() <= kDigestBytes ||
      !std::equal(file.end() - kDigestBytes, file.end(),
                  crypto::Sha256(file.first(file.size() - kDigestBytes)).bytes.begin())) {
    return Error(StatusCode::kDataLoss,
                 "checkpoint: its digest is not that of its bytes; it has been damaged");
  }
  ASSIGN_OR_RETURN(std::vector<NamedTensor> tensors,
                   ParseSafetensors(file, {.max_data_bytes = kMaxFileBytes}));
  RETURN_IF_ERROR(Annotate(CheckFinite(tensors), "checkpoint"));
  Reader reader(std::move(tensors));
  if (reader.Word("version") != kVersion) {
    reader.Fail("version", "must be 1");
  }
  if (reader.Four("subject") != Words(subject)) {
    reader.Fail("subject", "is that of another training");
  }
  Checkpoint checkpoint;
  TrainingState& state = checkpoint.state;
  state.step = reader.Count("step");
  checkpoint.position.epoch = reader.Count("epoch");
  checkpoint.position.elements = reader.Count("elements");
  checkpoint.loss = reader.NumberOf("loss");
  checkpoint.stopping.best = reader.Count("best");
  if (checkpoint.stopping.best > state.step) {
    reader.Fail("best", "must not be beyond `step`");
  }
  checkpoint.stopping.reference = reader.NumberOf("reference");
  checkpoint.stopping.waited = reader.Count("waited");
  state.loss_scale.scale = reader.Real("loss_scale");
  if (!CheckSpec(LossScaleSpec{.initial = state.loss_scale.scale}).ok()) {
    reader.Fail("loss_scale", "must be from 2^-24 to 2^64");
  }
  state.loss_scale.good_steps = reader.Count("good_steps");
  state.optimizer.num_steps = reader.Count("optimizer.steps");
  state.optimizer.first = reader.Floats("optimizer.first");
  if (reader.IsNext("optimizer.second")) {
    state.optimizer.second = reader.Floats("optimizer.second");
  }
  state.parameters = reader.Floats("parameters");
  reader.Four("digest");
  RETURN_IF_ERROR(reader.Finish());
  return checkpoint;
}

std::string CheckpointStore::PathOf(std::uint64_t step) const {
  std::string digits = std::to_string(step);
  digits.insert(0, kStepDigits - std::min(kStepDigits, digits.size()), '0');
  return JoinPath(folder_, std::string(kPrefix) + digits + std::string(kSuffix));
}

StatusOr<CheckpointStore> CheckpointStore::Open(std::string folder, const Digest& subject,
                                                std::size_t last) {
  DOMICILE_CHECK(last >= 1);
  RETURN_IF_ERROR(CreateFolders(folder));
  RETURN_IF_ERROR(RemoveTemporaries(folder));
  CheckpointStore store(std::move(folder), subject, last);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFiles(store.folder_));
  for (const std::string& name : names) {
    const std::optional<std::uint64_t> step = StepOf(name);
    if (!step) {
      continue;  // not ours
    }
    const StatusOr<Checkpoint> checkpoint = store.Read(*step);
    if (checkpoint.ok() && checkpoint->state.step == *step) {
      store.Note(*checkpoint);
      continue;
    }
    // That of another training is what an earlier task left, and nobody's loss.
    if (!checkpoint.ok() && checkpoint.status().code() != StatusCode::kInvalidArgument) {
      LogWarning("`" + name + "` is ignored: " + std::string(Message(checkpoint.status())));
    }
    RETURN_IF_ERROR(RemoveFile(store.PathOf(*step)));
  }
  // What is named names itself, so that one pass finds all.
  std::vector<Entry> whole;
  for (const Entry& entry : store.entries_) {
    if (entry.best == 0 || store.Has(entry.best)) {
      whole.push_back(entry);
      continue;
    }
    LogWarning("the checkpoint of step " + std::to_string(entry.step) +
               " is ignored: that of the best epoch, step " + std::to_string(entry.best) +
               ", is not there");
    RETURN_IF_ERROR(RemoveFile(store.PathOf(entry.step)));
  }
  store.entries_ = std::move(whole);
  return store;
}

StatusOr<Checkpoint> CheckpointStore::Read(std::uint64_t step) const {
  ASSIGN_OR_RETURN(const std::string file, ReadFile(PathOf(step), kMaxFileBytes));
  return ParseCheckpoint(AsBytes(file), subject_);
}

void CheckpointStore::Note(const Checkpoint& checkpoint) {
  const std::uint64_t step = checkpoint.state.step;
  std::erase_if(entries_, [step](const Entry& entry) { return entry.step == step; });
  const auto later = std::find_if(entries_.begin(), entries_.end(),
                                  [step](const Entry& entry) { return entry.step > step; });
  entries_.insert(later, {.step = step, .best = checkpoint.stopping.best});
}

bool CheckpointStore::Has(std::uint64_t step) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [step](const Entry& entry) { return entry.step == step; });
}

Status CheckpointStore::Save(const Checkpoint& checkpoint) {
  const std::uint64_t best = checkpoint.stopping.best;
  if (best != 0 && best != checkpoint.state.step && !Has(best)) {
    return Error(StatusCode::kFailedPrecondition,
                 "that of the best epoch, step " + std::to_string(best) + ", was not kept");
  }
  RETURN_IF_ERROR(
      WriteFileDurably(PathOf(checkpoint.state.step), PrintCheckpoint(checkpoint, subject_)));
  Note(checkpoint);
  return Prune();
}

Status CheckpointStore::Prune() {
  // INVARIANT: with every one of the last, what it names is there: whichever of them is found to be
  // damaged later, the one before is still good for all of its past.
  std::set<std::uint64_t> named;
  const std::size_t first = entries_.size() - std::min(entries_.size(), last_);
  for (std::size_t i = first; i < entries_.size(); ++i) {
    named.insert(entries_[i].best);
  }
  std::vector<std::uint64_t> old;
  for (std::size_t i = 0; i < first; ++i) {
    if (!named.contains(entries_[i].step)) {
      old.push_back(entries_[i].step);
    }
  }
  for (const std::uint64_t step : old) {
    RETURN_IF_ERROR(RemoveFile(PathOf(step)));
    std::erase_if(entries_, [step](const Entry& entry) { return entry.step == step; });
  }
  return OkStatus();
}

std::vector<std::uint64_t> CheckpointStore::Steps() const {
  std::vector<std::uint64_t> steps;
  for (const Entry& entry : entries_) {
    steps.push_back(entry.step);
  }
  return steps;
}

Status CheckpointStore::Clear() {
  while (!entries_.empty()) {
    RETURN_IF_ERROR(RemoveFile(PathOf(entries_.back().step)));
    entries_.pop_back();
  }
  return OkStatus();
}

}  // namespace domicile::models

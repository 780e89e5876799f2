#include "models/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/file.h"
#include "crypto/sha256.h"
#include "models/safetensors.h"

namespace domicile::models {
namespace {

const Digest kSubject = crypto::Sha256(AsBytes("a plan, a round"));

Checkpoint Sample(std::uint64_t step = 12, double loss = 0.75) {
  return {.state = {.step = step,
                    .parameters = {1, -2.5F, 3},
                    .optimizer = {.num_steps = 11, .first = {0.5F, 0.25F}, .second = {1, 2}},
                    .loss_scale = {.scale = 1024, .good_steps = 7}},
          .position = {.epoch = 3, .elements = 5},
          .loss = loss,
          .stopping = {.best = 8, .reference = 0.5, .waited = 2}};
}

// Without one of the best epoch elsewhere.
Checkpoint Alone(std::uint64_t step) {
  Checkpoint checkpoint = Sample(step);
  checkpoint.stopping.best = 0;
  return checkpoint;
}

// Of an early-stopping plan.
Checkpoint Naming(std::uint64_t step, std::uint64_t best) {
  Checkpoint checkpoint = Sample(step);
  checkpoint.stopping.best = best;
  return checkpoint;
}

std::string TestFolder(const char* name) {
  const char* const parent = std::getenv("TMPDIR");
  const std::string folder =
      JoinPath(parent == nullptr ? "/tmp" : parent,
               std::string("domicile_checkpoint_") + name + "_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  return folder;
}

// With the digest of what the bytes have become.
Bytes WithDigest(Bytes file) {
  const Digest digest = crypto::Sha256(ByteSpan(file).first(file.size() - 32));
  std::copy(digest.bytes.begin(), digest.bytes.end(), file.end() - 32);
  return file;
}

Bytes Changed(const std::function<void(std::vector<NamedTensor>&)>& change) {
  std::vector<NamedTensor> tensors = ParseSafetensors(PrintCheckpoint(Sample(), kSubject)).value();
  change(tensors);
  return WithDigest(PrintSafetensors(tensors));
}

NamedTensor& Find(std::vector<NamedTensor>& tensors, std::string_view name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [name](const NamedTensor& tensor) { return tensor.name == name; });
}

TEST_CASE("Checkpoint: reads what was written, with one moment or two") {
  const Checkpoint two = Sample();
  CHECK(ParseCheckpoint(PrintCheckpoint(two, kSubject), kSubject).value() == two);
  Checkpoint one = Sample();
  one.state.optimizer.second.clear();
  one.loss = std::numeric_limits<double>::infinity();
  CHECK(ParseCheckpoint(PrintCheckpoint(one, kSubject), kSubject).value() == one);
  CHECK(PrintCheckpoint(two, kSubject) == PrintCheckpoint(two, kSubject));
}

TEST_CASE("Checkpoint: the names and their order are those of the format") {
  const auto tensors = ParseSafetensors(PrintCheckpoint(Sample(), kSubject)).value();
  std::vector<std::string> names;
  for (const NamedTensor& tensor : tensors) {
    names.push_back(tensor.name);
  }
  CHECK(names == std::vector<std::string>{"version", "subject", "step", "epoch", "elements", "loss",
                                          "best", "reference", "waited", "loss_scale", "good_steps",
                                          "optimizer.steps", "optimizer.first", "optimizer.second",
                                          "parameters", "digest"});
}

TEST_CASE("Checkpoint: any changed, missing or added byte is damage") {
  const Bytes file = PrintCheckpoint(Sample(), kSubject);
  for (std::size_t at = 0; at < file.size(); ++at) {
    Bytes changed = file;
    changed[at] ^= 0x10U;
    REQUIRE(ParseCheckpoint(changed, kSubject).status().code() == StatusCode::kDataLoss);
    REQUIRE(ParseCheckpoint(ByteSpan(file).first(at), kSubject).status().code() ==
            StatusCode::kDataLoss);
  }
  Bytes longer = file;
  longer.push_back(0);
  CHECK(ParseCheckpoint(longer, kSubject).status().code() == StatusCode::kDataLoss);
}

TEST_CASE("Checkpoint: a file whose digest is right must still be one") {
  const struct {
    const char* name;
    Bytes file;
    const char* says;
  } cases[] = {
      {"version", Changed([](auto& t) { Find(t, "version").integers[0] = 2; }), "`version`"},
      {"step below 0", Changed([](auto& t) { Find(t, "step").integers[0] = -1; }), "`step`"},
      {"not a number", Changed([](auto& t) { Find(t, "parameters").values[1] = std::nanf(""); }),
       "parameters"},
      {"moment infinite", Changed([](auto& t) { Find(t, "optimizer.first").values[0] = INFINITY; }),
       "optimizer.first"},
      {"loss NaN", Changed([](auto& t) { Find(t, "loss").integers[0] = -1; }), "`loss`"},
      {"best to come", Changed([](auto& t) { Find(t, "best").integers[0] = 13; }), "`best`"},
      {"reference NaN", Changed([](auto& t) { Find(t, "reference").integers[0] = -1; }),
       "`reference`"},
      {"waited below 0", Changed([](auto& t) { Find(t, "waited").integers[0] = -1; }), "`waited`"},
      {"no scale", Changed([](auto& t) { Find(t, "loss_scale").integers[0] = 0; }), "`loss_scale`"},
      {"missing", Changed([](auto& t) { t.erase(t.begin() + 3); }), "`epoch`"},
      {"order", Changed([](auto& t) { std::swap(t[2], t[3]); }), "`step`"},
      {"more", Changed([](auto& t) {
         t.insert(t.end() - 1, {.name = "more", .shape = {1}, .values = {1}});
       }),
       "`digest`"},
      {"other type",
       Changed([](auto& t) { Find(t, "step") = {.name = "step", .shape = {}, .values = {1}}; }),
       "`step`"},
      {"three words", Changed([](auto& t) {
         Find(t, "subject").integers.pop_back();
         Find(t, "subject").shape = {3};
       }),
       "`subject`"},
      {"not safetensors", WithDigest(Bytes(100, 7)), "safetensors"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const Status status = ParseCheckpoint(c.file, kSubject).status();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CAPTURE(Message(status));
    CHECK(Message(status).find(c.says) != std::string_view::npos);
  }
  CHECK(ParseCheckpoint(Changed([](auto&) {}), kSubject).ok());  // control
  CHECK(ParseCheckpoint(PrintCheckpoint(Sample(), kSubject), Digest{}).status().code() ==
        StatusCode::kInvalidArgument);
}

using Steps = std::vector<std::uint64_t>;

TEST_CASE("CheckpointStore: keeps the last ones and those they name, also over a restart") {
  const std::string folder = TestFolder("retention");
  {
    CheckpointStore store = CheckpointStore::Open(folder, kSubject).value();
    CHECK(store.Steps().empty());
    for (const auto& [step, best] : {std::pair(10, 10), {20, 20}, {30, 20}, {40, 20}, {50, 20}}) {
      REQUIRE(store.Save(Naming(step, best)).ok());
    }
    CHECK(store.Steps() == Steps{20, 40, 50});
  }
  CheckpointStore store = CheckpointStore::Open(folder, kSubject).value();
  CHECK(store.Steps() == Steps{20, 40, 50});
  CHECK(store.At(50).value() == Naming(50, 20));
  // The one before the last still has all that it names.
  REQUIRE(store.Save(Naming(60, 60)).ok());
  CHECK(store.Steps() == Steps{20, 50, 60});
  REQUIRE(store.Save(Naming(70, 60)).ok());
  CHECK(store.Steps() == Steps{60, 70});
  REQUIRE(store.Save(Alone(70)).ok());  // the same step again
  CHECK(store.At(70).value() == Alone(70));
  CHECK(store.Steps() == Steps{60, 70});
  REQUIRE(store.Clear().ok());
  CHECK(ListFiles(folder).value().empty());
  std::filesystem::remove_all(folder);
}

TEST_CASE("CheckpointStore: where none is named the last ones are all") {
  const std::string folder = TestFolder("unmeasured");
  CheckpointStore store = CheckpointStore::Open(folder, kSubject, 1).value();
  for (std::uint64_t step = 1; step < 5; ++step) {
    REQUIRE(store.Save(Alone(step)).ok());
  }
  CHECK(store.Steps() == Steps{4});
  std::filesystem::remove_all(folder);
}

TEST_CASE("CheckpointStore: one that names a best that is not there serves nobody") {
  const std::string folder = TestFolder("named");
  const auto open = [&folder] { return CheckpointStore::Open(folder, kSubject).value(); };
  CheckpointStore store = open();
  const Status refused = store.Save(Naming(20, 10));
  CHECK(refused.code() == StatusCode::kFailedPrecondition);
  CHECK(Message(refused) == "that of the best epoch, step 10, was not kept");
  REQUIRE(store.Save(Naming(10, 10)).ok());
  REQUIRE(store.Save(Naming(20, 10)).ok());
  REQUIRE(store.Save(Naming(30, 30)).ok());
  REQUIRE(store.Steps() == Steps{10, 20, 30});

  REQUIRE(RemoveFile(JoinPath(folder, "step-000000000010.safetensors")).ok());

  CHECK(open().Steps() == Steps{30});
  CHECK(ListFiles(folder).value() == std::vector<std::string>{"step-000000000030.safetensors"});
  std::filesystem::remove_all(folder);
}

TEST_CASE("CheckpointStore: what is damaged, half written or of another training is not used") {
  const std::string folder = TestFolder("damaged");
  {
    CheckpointStore store = CheckpointStore::Open(folder, kSubject, 9).value();
    for (std::uint64_t step = 1; step <= 4; ++step) {
      REQUIRE(store.Save(Alone(step)).ok());
    }
  }
  Bytes damaged = PrintCheckpoint(Alone(4), kSubject);
  damaged[damaged.size() / 2] ^= 1U;
  REQUIRE(WriteFileDurably(JoinPath(folder, "step-000000000004.safetensors"), damaged).ok());
  REQUIRE(WriteFileDurably(JoinPath(folder, "step-000000000003.safetensors"),
                           PrintCheckpoint(Alone(3), Digest{}))
              .ok());
  REQUIRE(WriteFileDurably(JoinPath(folder, "step-000000000005.safetensors"),
                           PrintCheckpoint(Alone(1), kSubject))
              .ok());
  REQUIRE(WriteFileDurably(JoinPath(folder, "half.tmp"), damaged).ok());
  REQUIRE(WriteFileDurably(JoinPath(folder, "notes.txt"), damaged).ok());

  CheckpointStore store = CheckpointStore::Open(folder, kSubject, 9).value();

  CHECK(store.Steps() == std::vector<std::uint64_t>{1, 2});
  CHECK(store.At(2).value() == Alone(2));
  CHECK(ListFiles(folder).value() == std::vector<std::string>{"notes.txt",
                                                              "step-000000000001.safetensors",
                                                              "step-000000000002.safetensors"});
  // Damaged after it was opened.
  REQUIRE(WriteFileDurably(JoinPath(folder, "step-000000000002.safetensors"), damaged).ok());
  CHECK(store.At(2).status().code() == StatusCode::kDataLoss);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace domicile::models

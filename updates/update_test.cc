#include "updates/update.h"

#include <array>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace domicile::updates {
namespace {

Digest Fill(std::uint8_t byte) {
  Digest digest;
  digest.bytes.fill(byte);
  return digest;
}

struct Sample {
  UpdateManifest manifest;
  std::vector<Bytes> payloads;

  StatusOr<Bytes> Encode() const {
    const std::vector<ByteSpan> spans(payloads.begin(), payloads.end());
    return EncodeUpdate(manifest, spans);
  }
};

Sample TrainSample() {
  Sample sample;
  sample.manifest = {.job = *JobId::Parse("heart-1"),
                     .plan = Fill(1),
                     .round = 3,
                     .phase = UpdatePhase::kTrain,
                     .base_model = Fill(2),
                     .policy = Fill(3),
                     .weight = 202,
                     .sections = {{Section::kDelta, Encoding::kF32, 3, 32},
                                  {Section::kMetrics, Encoding::kI64, 3, 0}}};
  sample.payloads = {EncodeF32(std::array<float, 3>{0.5F, -0.25F, 0}),
                     EncodeI64(std::array<std::int64_t, 3>{202, 202, 139000000})};
  return sample;
}

TEST_CASE("Update: what is encoded is parsed, without a copy, and encodes to the same bytes") {
  const Sample sample = TrainSample();
  const Bytes bytes = *sample.Encode();

  const auto update = ParseUpdate(bytes);

  REQUIRE(update.ok());
  CHECK(update->manifest == sample.manifest);
  REQUIRE(update->sections.size() == 2);
  CHECK(std::equal(sample.payloads[0].begin(), sample.payloads[0].end(),
                   update->sections[0].bytes.begin(), update->sections[0].bytes.end()));
  const SectionView* const metrics = update->Find(Section::kMetrics);
  REQUIRE(metrics != nullptr);
  CHECK(metrics->bytes.data() >= bytes.data());
  CHECK((metrics->bytes.data() - bytes.data()) % 8 == 0);
  CHECK(update->Find(Section::kHistogram) == nullptr);
  CHECK(*UpdateSize(sample.manifest) == bytes.size());
  const std::vector<ByteSpan> spans = {update->sections[0].bytes, update->sections[1].bytes};
  CHECK(*EncodeUpdate(update->manifest, spans) == bytes);
}

TEST_CASE("Update: the bytes are those of the page") {
  const Bytes bytes = *TrainSample().Encode();
  const std::string manifest =
      R"({"base_model":")" + PrintHex(Fill(2)) + R"(","job":"heart-1","phase":"train","plan":")" +
      PrintHex(Fill(1)) + R"(","policy":")" + PrintHex(Fill(3)) +
      R"(","round":3,"sections":[{"count":3,"encoding":"f32","name":"delta","scale_bits":32},)"
      R"({"count":3,"encoding":"i64","name":"metrics","scale_bits":0}],"v":1,"weight":202})";
  Bytes want = {'D', 'O', 'M', 'U', 'P', 'D', 0, 1};
  AppendU32(want, static_cast<std::uint32_t>(manifest.size()));
  want.insert(want.end(), manifest.begin(), manifest.end());
  want.resize((want.size() + 7) / 8 * 8, 0);
  for (const std::uint32_t bits : {0x3F000000U, 0xBE800000U, 0U, 0U}) {  // three floats, padding
    AppendU32(want, bits);
  }
  for (const std::uint64_t number : {202U, 202U, 139000000U}) {
    AppendU64(want, number);
  }
  CHECK(bytes == want);
}

TEST_CASE("Update: a manifest that the page does not allow is not encoded") {
  struct Case {
    const char* name;
    std::function<void(Sample&)> change;
  };
  const Case cases[] = {
      {"no job", [](Sample& s) { s.manifest.job = {}; }},
      {"round 0", [](Sample& s) { s.manifest.round = 0; }},
      {"no phase", [](Sample& s) { s.manifest.phase = UpdatePhase::kNone; }},
      {"no plan", [](Sample& s) { s.manifest.plan = {}; }},
      {"no base model", [](Sample& s) { s.manifest.base_model = {}; }},
      {"no policy", [](Sample& s) { s.manifest.policy = {}; }},
      {"negative weight", [](Sample& s) { s.manifest.weight = -1; }},
      {"weight beyond 32 bits", [](Sample& s) { s.manifest.weight = std::int64_t{1} << 32U; }},
      {"no sections",
       [](Sample& s) {
         s.manifest.sections.clear();
         s.payloads.clear();
       }},
      {"sections out of order",
       [](Sample& s) {
         std::swap(s.manifest.sections[0], s.manifest.sections[1]);
         std::swap(s.payloads[0], s.payloads[1]);
       }},
      {"a section twice", [](Sample& s) { s.manifest.sections[1].section = Section::kDelta; }},
      {"an unknown section",
       [](Sample& s) { s.manifest.sections[1].section = static_cast<Section>(9); }},
      {"an unknown encoding",
       [](Sample& s) { s.manifest.sections[1].encoding = static_cast<Encoding>(3); }},
      {"no numbers",
       [](Sample& s) {
         s.manifest.sections[1].count = 0;
         s.payloads[1].clear();
       }},
      {"too many numbers",
       [](Sample& s) { s.manifest.sections[1].count = (std::uint64_t{1} << 40U) + 1; }},
      {"too fine a grid", [](Sample& s) { s.manifest.sections[0].scale_bits = 121; }},
      {"a short payload", [](Sample& s) { s.payloads[0].pop_back(); }},
      {"a missing payload", [](Sample& s) { s.payloads.pop_back(); }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    Sample sample = TrainSample();
    c.change(sample);
    CHECK(sample.Encode().status().code() == StatusCode::kInvalidArgument);
  }
}

// The sample's bytes with one text of the manifest replaced by another.
Bytes WithManifest(const std::string& from, const std::string& to) {
  const Bytes bytes = *TrainSample().Encode();
  const std::size_t old_size = ReadU32(ByteSpan(bytes).subspan(8));
  std::string manifest(AsText(ByteSpan(bytes).subspan(12, old_size)));
  const std::size_t at = manifest.find(from);
  REQUIRE(at != std::string::npos);
  manifest.replace(at, from.size(), to);
  Bytes changed(bytes.begin(), bytes.begin() + 8);
  AppendU32(changed, static_cast<std::uint32_t>(manifest.size()));
  changed.insert(changed.end(), manifest.begin(), manifest.end());
  changed.resize((changed.size() + 7) / 8 * 8, 0);
  const std::size_t body = (12 + old_size + 7) / 8 * 8;
  changed.insert(changed.end(), bytes.begin() + static_cast<std::ptrdiff_t>(body), bytes.end());
  return changed;
}

TEST_CASE("Update: a manifest that was changed is refused") {
  REQUIRE(ParseUpdate(WithManifest("heart-1", "heart-2")).ok());  // the control
  struct Case {
    const char* from;
    const char* to;
  };
  const Case cases[] = {
      {R"("v":1)", R"("v":2)"},
      {R"("round":3)", R"("round":0)"},
      {R"("round":3)", R"("round":4294967296)"},
      {R"("round":3)", R"("round": 3)"},
      {R"("weight":202)", R"("weight":-1)"},
      {R"("weight":202)", R"("note":"x","weight":202)"},
      {R"("phase":"train")", R"("phase":"Train")"},
      {R"("phase":"train",)", ""},
      {R"("name":"delta")", R"("name":"deltas")"},
      {R"("name":"delta")", R"("name":"metrics")"},
      {R"("encoding":"f32")", R"("encoding":"bf16")"},
      {R"("count":3)", R"("count":4611686018427387905)"},
      {R"("count":3)", R"("count":1099511627776)"},
      {R"("count":3)", R"("count":5)"},
      {R"("scale_bits":32)", R"("scale_bits":121)"},
      {R"("job":"heart-1")", R"("job":"../x")"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.to);
    const auto update = ParseUpdate(WithManifest(c.from, c.to));
    CHECK(update.status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Update: every cut, every byte of padding and anything behind the end is refused") {
  Bytes bytes = *TrainSample().Encode();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE_FALSE(ParseUpdate(cut).ok());
  }
  const std::size_t manifest_end = 12 + ReadU32(ByteSpan(bytes).subspan(8));
  const std::size_t body = (manifest_end + 7) / 8 * 8;
  REQUIRE(body > manifest_end);
  std::vector<std::size_t> padding;
  for (std::size_t i = manifest_end; i < body; ++i) {
    padding.push_back(i);
  }
  for (std::size_t i = body + 12; i < body + 16; ++i) {  // behind three floats
    padding.push_back(i);
  }
  for (const std::size_t i : padding) {
    CAPTURE(i);
    bytes[i] = 1;
    CHECK(Message(ParseUpdate(bytes).status()) ==
          "padding at byte " + std::to_string(i) + " of the update is not zero");
    bytes[i] = 0;
  }
  REQUIRE(ParseUpdate(bytes).ok());
  for (const std::size_t i : {std::size_t{0}, std::size_t{7}}) {  // magic and version
    bytes[i] ^= 1;
    CHECK_FALSE(ParseUpdate(bytes).ok());
    bytes[i] ^= 1;
  }
  bytes.resize(bytes.size() + 8, 0);
  CHECK_FALSE(ParseUpdate(bytes).ok());
}

TEST_CASE("Update: a manifest length beyond the limit is refused before it is read") {
  Bytes bytes = *TrainSample().Encode();
  for (const std::uint8_t high : {std::uint8_t{0xFF}, std::uint8_t{0x80}}) {
    bytes[11] = high;
    CHECK_FALSE(ParseUpdate(bytes).ok());
  }
}

TEST_CASE("Update: capacity is numbers times the bits of their grids") {
  const Sample sample = TrainSample();
  const SectionGrid grids[] = {
      {Section::kDelta, *GridPlan::Create(32, std::int64_t{1} << 32U, 1000, 10)},
      {Section::kMetrics, *GridPlan::Create(0, 127, 1, 10)}};
  CHECK(*CapacityBits(sample.manifest, grids) == 3 * 34 + 3 * 8);
  CHECK_FALSE(CapacityBits(sample.manifest, std::span(grids).first(1)).ok());
  const SectionGrid other[] = {{Section::kDelta, *GridPlan::Create(31, 100, 1, 1)}, grids[1]};
  CHECK_FALSE(CapacityBits(sample.manifest, other).ok());
}

TEST_CASE("Update: names of sections and phases match both ways") {
  for (const Section section :
       {Section::kDelta, Section::kMetrics, Section::kStatistics, Section::kHistogram}) {
    CHECK(SectionFromName(SectionName(section)) == section);
  }
  for (const UpdatePhase phase :
       {UpdatePhase::kStatistics, UpdatePhase::kTrain, UpdatePhase::kEvaluate}) {
    CHECK(UpdatePhaseFromName(UpdatePhaseName(phase)) == phase);
  }
  CHECK_FALSE(SectionFromName("").has_value());
  CHECK_FALSE(UpdatePhaseFromName("none").has_value());
}

}  // namespace
}  // namespace domicile::updates

// One tensor of 6 000 000 bytes, above the 4 MiB at which this transport stops by default: it goes
// up and comes down with nothing set; a limit that is set is said before anybody trains.
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <numeric>

#include <doctest/doctest.h>

#include "base/file.h"
#include "crypto/sha256.h"
#include "tests/cases/federation.h"

namespace domicile::test {
namespace {

constexpr std::uint64_t kNumbers = 1'500'000;
// Of the little-endian float32 of (a + 3b) / 4, computed elsewhere.
constexpr std::string_view kMeanSha256 =
    "86639188ccbc0f4618fbcca86a8fc6f9b8933055ef85978ff7e6f48e76c9b42a";
constexpr double kMeanSum = 749246.1796875;

Bytes LittleEndian(const std::vector<float>& values) {
  Bytes bytes;
  bytes.reserve(values.size() * 4);
  for (const float value : values) {
    AppendU32(bytes, std::bit_cast<std::uint32_t>(value));
  }
  return bytes;
}

// ((i * factor) % 1024) / 1024: exact in float32, and so is (a + 3b) / 4.
Bytes Values(std::uint64_t factor) {
  std::vector<float> values(kNumbers);
  for (std::uint64_t i = 0; i < kNumbers; ++i) {
    values[i] = static_cast<float>((i * factor) % 1024U) / 1024.0F;
  }
  return LittleEndian(values);
}

// The files of the two kinds of sites, for as long as the object lives.
class Updates {
 public:
  Updates() {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
    const Bytes a = Values(1);
    const Bytes b = Values(7);
    REQUIRE(PrintHex(crypto::Sha256(a)).starts_with("e7ce4e3e0feaf88f"));
    REQUIRE(PrintHex(crypto::Sha256(b)).starts_with("98a864853c6c0825"));
    Must(WriteFileDurably(folder_ + "/a.f32", a));
    Must(WriteFileDurably(folder_ + "/b.f32", b));
  }
  ~Updates() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;

  std::string Script(const std::string& file, int rows) const {
    return R"([{"phase":"train","rows":)" + std::to_string(rows) +
           R"(,"weights":{"w":{"shape":[1500000],"file":")" + folder_ + "/" + file + R"("}}}])";
  }

 private:
  std::string folder_ = "/tmp/domicile-large-XXXXXX";
};

// The grid has every multiple of 2^-12: what two rounds of these updates need.
CaseJob LargeJob() {
  return {.numbers = kNumbers, .rounds = 2, .quorum = 3, .clip_l2 = "1024.0", .scale_bits = 12};
}

}  // namespace

TEST_CASE("Large model: a tensor of 6 MB goes up and down with default settings, exactly") {
  const Updates updates;
  // a once and b three times, in four tens of rows over three sites.
  auto federation = Must(CaseFederation::Start({{"alpha", "DE", updates.Script("a.f32", 10)},
                                                {"bravo", "FR", updates.Script("b.f32", 20)},
                                                {"charlie", "NL", updates.Script("b.f32", 10)}}));
  const JobId job = Must(federation->Submit(JobFile(LargeJob())));
  Must(federation->Approve(job));
  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  for (const std::uint32_t round : {1U, 2U}) {
    CAPTURE(round);
    const std::vector<float> model = Must(federation->Model(job, round));
    REQUIRE(model.size() == kNumbers);
    CHECK(std::accumulate(model.begin(), model.end(), 0.0) == kMeanSum);
    CHECK(PrintHex(crypto::Sha256(LittleEndian(model))) == kMeanSha256);
  }
}

TEST_CASE("Large model: what passes a limit is refused when it is submitted, with all that helps") {
  auto federation = Must(CaseFederation::Start({{"alpha", "DE", ""}}, "update_bytes = 1048576"));

  const StatusOr<JobId> refused = federation->Submit(JobFile(LargeJob()));
  // As long as it may be: 1 MiB of an update is 262 144 numbers and what goes with them.
  const StatusOr<JobId> accepted = federation->Submit(JobFile({.numbers = 200'000}));

  REQUIRE(!refused.ok());
  CHECK(refused.status().code() == StatusCode::kInvalidArgument);
  const std::string why(Message(refused.status()));
  CAPTURE(why);
  CHECK(why.find(" 600") != std::string::npos);  // the size needed: 6 000 000 and the rest
  CHECK(why.find("1048576") != std::string::npos);
  CHECK(why.find("`limits.update_bytes`") != std::string::npos);
  CHECK(why.find("aggregator") != std::string::npos);
  CHECK(accepted.ok());
  CHECK(Must(federation->Admin().ListJobs()).jobs_size() == 1);
  CHECK(Count(Must(federation->Leaves("aggregator")), audit::EventType::kJobSubmitted) == 1);
}

}  // namespace domicile::test

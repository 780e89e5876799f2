// A trainer that trains nothing: behind the same walls as the real one and over the same socket, it
// answers each task with a small seeded delta, so that what a round costs by itself can be seen.
//
// usage: domicile-bench-trainer SOCKET PARAMETERS SEED      serves until SIGTERM or SIGINT
//
// It holds no data, so it verifies no grant; the agent still demands one for its digest.
#include <cmath>
#include <cstdio>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "crypto/sha256.h"
#include "crypto/tree_digest.h"
#include "models/safetensors.h"
#include "site_agent/sandbox/canary.h"
#include "site_agent/sandbox/lockdown.h"
#include "site_agent/trainer/frame_socket.h"
#include "site_agent/trainer/server.h"

namespace domicile {
namespace {

constexpr std::uint64_t kRows = 1000;
constexpr unsigned kSocketMode = 0600;
constexpr double kNorm = 0.5;  // below the clip norm of the bench's job

class BenchHandler final : public site_agent::TaskHandler {
 public:
  BenchHandler(site_agent::HelloMessage hello, std::uint64_t parameters, std::uint64_t seed)
      : hello_(std::move(hello)), delta_(DeltaFile(parameters, seed)) {}

  site_agent::HelloMessage Hello() const override { return hello_; }

  std::optional<site_agent::FailedMessage> Admit(const site_agent::TaskMessage& task,
                                                 std::uint64_t /*payload_bytes*/) override {
    return task.phase == contracts::PhaseKind::kTrain ? std::nullopt
                                                      : std::optional(site_agent::FailedMessage{});
  }

  std::variant<site_agent::ResultMessage, site_agent::FailedMessage> Run(
      const site_agent::TaskMessage& task, const site_agent::ProgressSink& /*progress*/,
      std::stop_token /*stop*/) override {
    site_agent::ResultMessage result;
    result.phase = task.phase;
    result.rows = kRows;
    result.examples = kRows;
    result.loss_sum_micro = 1;
    result.tensors = delta_;
    return result;
  }

 private:
  static Bytes DeltaFile(std::uint64_t parameters, std::uint64_t seed) {
    SeededRandom random(seed);
    models::NamedTensor tensor{.name = "bench.weight", .shape = {parameters}};
    const auto size = static_cast<float>(kNorm / std::sqrt(static_cast<double>(parameters)));
    tensor.values.resize(parameters);
    for (float& value : tensor.values) {
      value = (random.Next64() & 1U) == 0 ? size : -size;
    }
    return models::PrintSafetensors(std::span(&tensor, 1));
  }

  const site_agent::HelloMessage hello_;
  const Bytes delta_;
};

StatusOr<site_agent::HelloMessage> LockAndGreet(std::uint64_t seed) {
  site_agent::HelloMessage hello;
  hello.versions = {site_agent::kTrainerProtocol};
  ASSIGN_OR_RETURN(const crypto::FileDigest program, crypto::FileSha256("/proc/self/exe"));
  hello.trainer = program.digest;
  ASSIGN_OR_RETURN(DatasetAlias alias, DatasetAlias::Parse("bench"));
  hello.datasets.push_back(
      {.alias = std::move(alias),
       .commitment = crypto::Sha256(AsBytes("bench " + std::to_string(seed)))});
  ASSIGN_OR_RETURN(const site_agent::SandboxReport sandbox,
                   site_agent::Apply(site_agent::TrainerLockdown({})));
  const std::vector<std::string> shut = {"/etc/passwd"};
  const site_agent::CanaryReport canary = site_agent::TrainerCanary(shut);
  RETURN_IF_ERROR(site_agent::RequireShut(canary));
  hello.sandbox = sandbox.layers;
  hello.landlock_abi = sandbox.landlock_abi;
  hello.canary = static_cast<std::uint32_t>(canary.tried.size());
  return hello;
}

Status Serve(const std::string& path, std::uint64_t parameters, std::uint64_t seed) {
  ASSIGN_OR_RETURN(const FileHandle listener, site_agent::ListenUnix(path, kSocketMode));
  ASSIGN_OR_RETURN(site_agent::HelloMessage hello, LockAndGreet(seed));
  BenchHandler handler(std::move(hello), parameters, seed);
  return site_agent::ServeTrainerUntilStopped(listener, handler, {}, [&path] {
    std::printf("ready: unix:%s\n", path.c_str());
    std::fflush(stdout);
  });
}

}  // namespace
}  // namespace domicile

int main(int argc, char** argv) {
  const auto parameters = domicile::ParseUint64(argc == 4 ? argv[2] : "");
  const auto seed = domicile::ParseUint64(argc == 4 ? argv[3] : "");
  if (!parameters.ok() || *parameters == 0 || !seed.ok()) {
    std::fprintf(stderr, "usage: %s SOCKET PARAMETERS SEED\n", argv[0]);
    return 2;
  }
  const domicile::Status served = domicile::Serve(argv[1], *parameters, *seed);
  if (!served.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[0], domicile::ToString(served).c_str());
    return 3;
  }
  return 0;
}

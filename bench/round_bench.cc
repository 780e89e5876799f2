// What a whole round costs: real programs on loopback, over mTLS, with real keys, policies, grants
// and logs; only the training is left out. Set beside the floor that this machine puts under it.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "audit/event.h"
#include "audit/leaves.h"
#include "audit/records.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "bench/federation.h"
#include "bench/floor.h"
#include "bench/processes.h"
#include "cli/connect.h"

namespace domicile::bench {
namespace {

struct Options {
  RoundShape shape;
  bool json = false;
  bool keep = false;
};

// CPU time of the programs at one instant.
struct CpuAt {
  double aggregator = 0;
  double agents = 0;
  double trainers = 0;
  double All() const { return aggregator + agents + trainers; }
};

struct Measured {
  double seconds_per_round = 0;
  double slowest_round = 0;
  CpuAt cpu_per_round;
  double aggregator_peak_mib = 0;
  double site_peak_mib = 0;
  double trainer_peak_mib = 0;
  Floor floor;
  unsigned cores = 1;
};

StatusOr<CpuAt> ReadCpu(const BenchFederation& federation) {
  CpuAt cpu;
  ASSIGN_OR_RETURN(cpu.aggregator, CpuSecondsOf(federation.Aggregator()));
  for (const pid_t agent : federation.Agents()) {
    ASSIGN_OR_RETURN(const double seconds, CpuSecondsOf(agent));
    cpu.agents += seconds;
  }
  for (const pid_t trainer : federation.Trainers()) {
    ASSIGN_OR_RETURN(const double seconds, CpuSecondsOf(trainer));
    cpu.trainers += seconds;
  }
  return cpu;
}

StatusOr<double> LargestPeak(const std::vector<pid_t>& pids) {
  double largest = 0;
  for (const pid_t pid : pids) {
    ASSIGN_OR_RETURN(const double peak, PeakMibOf(pid));
    largest = std::max(largest, peak);
  }
  return largest;
}

// The time between one commit and the next, in seconds, from the aggregator's own log.
StatusOr<std::vector<double>> RoundTimes(const std::string& log) {
  std::vector<std::uint64_t> commits_us;
  RETURN_IF_ERROR(audit::ForEachLeaf(log, [&](const audit::Leaf& leaf) {
    if (leaf.event.type() == audit::EventType::kPhaseCommitted) {
      commits_us.push_back(leaf.frame.mono_us);
    }
    return OkStatus();
  }));
  std::vector<double> times;
  for (std::size_t i = 1; i < commits_us.size(); ++i) {
    times.push_back(static_cast<double>(commits_us[i] - commits_us[i - 1]) * 1e-6);
  }
  return times;
}

struct Watched {
  v1::JobSummary summary;          // at the end
  CpuAt first;                     // when the first round, which warms up, was committed
  CpuAt last;                      // when the last one was
  std::uint32_t first_rounds = 0;  // committed when `first` was read
};

// Follows the job to its end and approves it where a site waits.
StatusOr<Watched> Watch(wire::AdminClient& client, const std::string& job,
                        BenchFederation& federation) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  Watched watched;
  Status failed;
  const auto on_event = [&](const v1::WatchJobResponse& event) {
    watched.summary = event.summary();
    const std::uint32_t done = watched.summary.rounds_committed();
    // A site that left would be waited for until the deadline of the phase.
    for (const v1::SiteState& site : event.sites()) {
      if (!site.connected() && watched.summary.state() == v1::JOB_STATE_RUNNING) {
        failed = Error(StatusCode::kUnavailable, "site `" + site.site() + "` is not connected");
        return false;
      }
    }
    const bool is_first = done >= 1 && watched.first_rounds == 0;
    const bool is_last = done == watched.summary.rounds_planned() && watched.last.All() == 0;
    if (watched.summary.state() == v1::JOB_STATE_WAITING) {
      failed = federation.Approve();
    } else if (is_first || is_last) {
      const StatusOr<CpuAt> now = ReadCpu(federation);
      failed = now.status();
      if (now.ok()) {
        watched.first_rounds = is_first ? done : watched.first_rounds;
        (is_first ? watched.first : watched.last) = *now;
      }
    }
    if (terminal) {
      std::fprintf(stderr, "\r\x1b[Kround %u/%u", done, watched.summary.rounds_planned());
    }
    return failed.ok();
  };
  RETURN_IF_ERROR(
      client.WatchJob(job, on_event, {.timeout = std::chrono::minutes(30), .stop = {}}));
  RETURN_IF_ERROR(failed);
  if (terminal) {
    std::fprintf(stderr, "\r\x1b[K");
  }
  return watched;
}

Status RunJob(BenchFederation& federation, const RoundShape& shape, const Clock& clock,
              Measured& measured) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<wire::AdminClient> client,
      cli::ConnectAsOperator(
          {.aggregator = federation.Address(), .identity = federation.OperatorIdentity()}, clock));
  ASSIGN_OR_RETURN(const std::string job_file,
                   ReadFile(federation.JobFile(), std::uint64_t{1} << 20U));
  v1::SubmitJobRequest request;
  request.set_job_file(job_file);
  request.set_file_name("job.toml");
  ASSIGN_OR_RETURN(const v1::SubmitJobResponse submitted, client->SubmitJob(request));
  ASSIGN_OR_RETURN(const Watched watched, Watch(*client, submitted.job(), federation));
  if (watched.summary.state() != v1::JOB_STATE_DONE || watched.first_rounds > shape.rounds) {
    return Error(StatusCode::kUnavailable, "the job did not run to its end");
  }
  const double rounds = shape.rounds + 1 - watched.first_rounds;
  const CpuAt& first = watched.first;
  const CpuAt& last = watched.last;
  measured.cpu_per_round = {.aggregator = (last.aggregator - first.aggregator) / rounds,
                            .agents = (last.agents - first.agents) / rounds,
                            .trainers = (last.trainers - first.trainers) / rounds};
  ASSIGN_OR_RETURN(measured.aggregator_peak_mib, PeakMibOf(federation.Aggregator()));
  ASSIGN_OR_RETURN(measured.site_peak_mib, LargestPeak(federation.Agents()));
  ASSIGN_OR_RETURN(measured.trainer_peak_mib, LargestPeak(federation.Trainers()));
  return OkStatus();
}

StatusOr<Measured> Measure(const std::string& folder, const std::string& programs,
                           const RoundShape& shape) {
  const SystemClock clock;
  SystemRandom random;
  Measured measured;
  ASSIGN_OR_RETURN(BenchFederation federation,
                   BenchFederation::Create(folder, programs, shape, clock, random));
  RETURN_IF_ERROR(federation.Start());
  RETURN_IF_ERROR(RunJob(federation, shape, clock, measured));
  federation.Stop();
  ASSIGN_OR_RETURN(std::vector<double> times, RoundTimes(federation.AggregatorLog()));
  if (times.size() != shape.rounds) {
    return Error(StatusCode::kInternal, "the log has " + std::to_string(times.size() + 1) +
                                            " commits, not " + std::to_string(shape.rounds + 1));
  }
  std::sort(times.begin(), times.end());
  measured.seconds_per_round = times[times.size() / 2];
  measured.slowest_round = times.back();
  measured.cores = std::max(std::thread::hardware_concurrency(), 1U);
  ASSIGN_OR_RETURN(const ByteCosts costs, MeasureByteCosts());
  ASSIGN_OR_RETURN(const double file, MeasureFileWrite(folder, 4 * shape.parameters));
  measured.floor = FloorOfRound(costs, file, shape.parameters, shape.sites, measured.cores);
  return measured;
}

std::string Rounded(double value, int digits) {
  const double scale = std::pow(10, digits);
  return PrintDouble(std::round(value * scale) / scale);
}

// Figures as JSON numbers, which base/json.h does not have: nothing here is signed or hashed.
void PrintJsonFacts(const RoundShape& shape, const Measured& m) {
  std::printf(
      "{\"parameters\":%llu,\"sites\":%u,\"rounds\":%u,\"cores\":%u,"
      "\"seconds_per_round\":%s,\"slowest_round_seconds\":%s,\"floor_seconds\":%s,"
      "\"ratio_to_floor\":%s,\"cpu_seconds_per_round\":%s,\"aggregator_cpu_seconds_per_round\":%s,"
      "\"agents_cpu_seconds_per_round\":%s,\"trainers_cpu_seconds_per_round\":%s,"
      "\"floor_cpu_seconds\":%s,\"cpu_ratio_to_floor\":%s,\"floor_file_seconds\":%s,"
      "\"wire_bytes_per_round\":%llu,\"aggregator_peak_mb\":%s,\"site_peak_mb\":%s,"
      "\"trainer_peak_mb\":%s}\n",
      static_cast<unsigned long long>(shape.parameters), shape.sites, shape.rounds, m.cores,
      Rounded(m.seconds_per_round, 6).c_str(), Rounded(m.slowest_round, 6).c_str(),
      Rounded(m.floor.seconds, 6).c_str(),
      Rounded(m.seconds_per_round / m.floor.seconds, 2).c_str(),
      Rounded(m.cpu_per_round.All(), 4).c_str(), Rounded(m.cpu_per_round.aggregator, 4).c_str(),
      Rounded(m.cpu_per_round.agents, 4).c_str(), Rounded(m.cpu_per_round.trainers, 4).c_str(),
      Rounded(m.floor.cpu_seconds, 6).c_str(),
      Rounded(m.cpu_per_round.All() / m.floor.cpu_seconds, 2).c_str(),
      Rounded(m.floor.file_seconds, 6).c_str(), static_cast<unsigned long long>(m.floor.wire_bytes),
      Rounded(m.aggregator_peak_mib, 1).c_str(), Rounded(m.site_peak_mib, 1).c_str(),
      Rounded(m.trainer_peak_mib, 1).c_str());
}

void PrintTable(const RoundShape& shape, const Measured& m) {
  std::printf("%llu parameters, %u sites, %u rounds after one to warm up, %u cores\n\n",
              static_cast<unsigned long long>(shape.parameters), shape.sites, shape.rounds,
              m.cores);
  std::printf("                          a round       floor   times the floor\n");
  std::printf("  seconds (median)   %12.5f %11.5f %17.1f\n", m.seconds_per_round, m.floor.seconds,
              m.seconds_per_round / m.floor.seconds);
  std::printf("  CPU seconds        %12.5f %11.5f %17.1f\n", m.cpu_per_round.All(),
              m.floor.cpu_seconds, m.cpu_per_round.All() / m.floor.cpu_seconds);
  std::printf(
      "    aggregator       %12.5f\n    agents, together %12.5f\n"
      "    trainers         %12.5f\n\n",
      m.cpu_per_round.aggregator, m.cpu_per_round.agents, m.cpu_per_round.trainers);
  std::printf("  largest memory, MiB: aggregator %.0f, an agent %.0f, a trainer %.0f\n",
              m.aggregator_peak_mib, m.site_peak_mib, m.trainer_peak_mib);
  std::printf("  on the wire, MB: %.1f\n", static_cast<double>(m.floor.wire_bytes) * 1e-6);
  std::printf(
      "\nThe floor: the bytes of a round sealed, copied over TCP, opened and hashed, spread over "
      "all\ncores without a gap, and the model file written and synced; measured in this run.\n");
}

StatusOr<std::string> FolderOfThisProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return ErrnoError(error.value(), "finding this program");
  }
  return self.parent_path().string();
}

int Run(const Options& options) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string folder = (parent / "domicile-bench-XXXXXX").string();
  const StatusOr<std::string> programs = FolderOfThisProgram();
  if (error || !programs.ok() || mkdtemp(folder.data()) == nullptr) {
    std::fprintf(stderr, "domicile: cannot make a folder for the bench\n");
    return 3;
  }
  const StatusOr<Measured> measured = Measure(folder, *programs, options.shape);
  if (!measured.ok()) {
    std::fprintf(stderr, "domicile: %s\ndomicile: what the programs said is kept in %s\n",
                 std::string(Message(measured.status())).c_str(), folder.c_str());
    return 3;
  }
  if (options.json) {
    PrintJsonFacts(options.shape, *measured);
  } else {
    PrintTable(options.shape, *measured);
  }
  if (options.keep) {
    std::fprintf(stderr, "everything is kept in %s\n", folder.c_str());
  } else {
    std::filesystem::remove_all(folder, error);  // one that cannot be removed does no harm
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app{
      "What a round costs: real programs on loopback, without training.\n\n"
      "Example: domicile bench round --params 1000000 --sites 4 --rounds 5"};
  Options options;
  app.add_option("--params", options.shape.parameters, "float32 numbers of the model")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{200'000'000}))
      ->capture_default_str();
  app.add_option("--sites", options.shape.sites, "3 is the least a policy accepts")
      ->check(CLI::Range(3, 16))
      ->capture_default_str();
  app.add_option("--rounds", options.shape.rounds, "after the one that warms up")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--json", options.json, "print the figures as JSON");
  app.add_flag("--keep", options.keep, "keep the federation's folder, and say where");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  return Run(options);
}

}  // namespace
}  // namespace domicile::bench

// A measurement that throws has failed, and says so by ending.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) { return domicile::bench::Main(argc, argv); }

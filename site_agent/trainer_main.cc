// domicile-trainer: the program that holds a site's data. Only wires.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/random.h"
#include "crypto/tree_digest.h"
#include "models/cpu_check.h"
#include "models/cuda_plugin.h"
#include "site_agent/datasets/check_data.h"
#include "site_agent/datasets/snapshot.h"
#include "site_agent/sandbox/canary.h"
#include "site_agent/sandbox/lockdown.h"
#include "site_agent/sandbox/output_file.h"
#include "site_agent/trainer/cluster_tasks.h"
#include "site_agent/trainer/config.h"
#include "site_agent/trainer/foreign.h"
#include "site_agent/trainer/frame_socket.h"
#include "site_agent/trainer/local.h"
#include "site_agent/trainer/program.h"
#include "site_agent/trainer/program_launcher.h"
#include "site_agent/trainer/server.h"
#include "site_agent/trainer/service.h"

namespace domicile::site_agent {
namespace {

constexpr int kDone = 0;
constexpr int kNotSo = 1;  // what was asked is not so: the data does not fit
constexpr int kWrongUse = 2;
constexpr int kUnable = 3;

int Fail(const Status& status, int exit_code) {
  std::fprintf(stderr, "domicile-trainer: %s\n", std::string(Message(status)).c_str());
  return exit_code;
}

// What must be known before the walls go up.
struct Prepared {
  TrainerConfig config;
  std::vector<contracts::DatasetDescription> descriptions;
  std::optional<ClusterSeat> seat;  // of one of several hosts
  FileHandle listener;              // closed where another host is the chief
  FileHandle output;                // what standard output was

  bool IsWorker() const { return seat && !seat->description.IsChief(); }
  TrainerStart start;
  std::unique_ptr<ForeignTrainer> foreign;  // null: no `[program]`
};

// While this process may still start another, and has no data.
Status PrepareForeign(Prepared& prepared) {
  const TrainerConfig& config = prepared.config;
  const ProgramFolder folder(config.state);
  ASSIGN_OR_RETURN(
      PreparedProgram program,
      PrepareProgram(*config.program, folder, prepared.start.trainer, prepared.descriptions));
  ASSIGN_OR_RETURN(ProgramLauncher launcher,
                   ProgramLauncher::Start(program.spec, std::move(program.executable)));
  prepared.start.trainer = program.digest;
  std::vector<DatasetAlias> datasets;
  for (const contracts::DatasetDescription& description : prepared.descriptions) {
    datasets.push_back(description.alias);
  }
  prepared.foreign = std::make_unique<ForeignTrainer>(folder, std::move(launcher),
                                                      std::move(datasets), config.model_bytes);
  return OkStatus();
}

StatusOr<Prepared> PrepareAndLock(TrainerConfig config,
                                  std::vector<contracts::DatasetDescription> descriptions) {
  Prepared prepared;
  prepared.config = std::move(config);
  prepared.descriptions = std::move(descriptions);
  const TrainerConfig& read = prepared.config;
  RETURN_IF_ERROR(CreateFolders(read.state));
  ASSIGN_OR_RETURN(const crypto::FileDigest program, crypto::FileSha256("/proc/self/exe"));
  prepared.start.trainer = program.digest;
  if (read.program) {
    RETURN_IF_ERROR(PrepareForeign(prepared));
  }
  if (read.cluster) {
    static const SystemClock kClock;
    ASSIGN_OR_RETURN(prepared.seat, TakeClusterSeat(*read.cluster, kClock));
  }
  if (!prepared.IsWorker()) {
    ASSIGN_OR_RETURN(prepared.listener, ListenUnix(read.socket, read.socket_mode));
  }
  if (read.output) {
    ASSIGN_OR_RETURN(prepared.output, RedirectOutput(*read.output, read.output_bytes));
  } else {
    prepared.output = FileHandle(dup(STDOUT_FILENO));
  }
  prepared.start.network = read.network;
  const bool has_loopback = read.network == policy::SandboxNetwork::kLoopback;
  if (read.gpu) {  // while its libraries can be read
    RETURN_IF_ERROR(models::LoadCudaPlugin(read.gpu->library).status());
  }
  const std::vector<PathRule> paths = TrainerPaths(read, prepared.descriptions);
  ASSIGN_OR_RETURN(prepared.start.sandbox,
                   Apply(has_loopback ? TrainerLoopbackLockdown(paths) : TrainerLockdown(paths)));
  const std::vector<std::string> shut = {"/etc/passwd"};
  const CanaryReport canary = has_loopback ? TrainerLoopbackCanary(shut) : TrainerCanary(shut);
  RETURN_IF_ERROR(RequireShut(canary));
  prepared.start.canary = static_cast<std::uint32_t>(canary.tried.size());
  if (read.gpu) {  // behind the walls: a driver starts threads, and must work there
    RETURN_IF_ERROR(models::NumCudaDevices(read.gpu->library).status());
  }
  return prepared;
}

void SayReady(Prepared& prepared, const std::string& what) {
  const std::string ready = "ready: " + what + "\n";
  if (write(prepared.output.descriptor(), ready.data(), ready.size()) < 0) {
    LogWarning("nobody reads standard output");
  }
  prepared.output = FileHandle();  // nothing about data can go there from now on
}

Status ServeAgent(Prepared& prepared, TrainerService& service) {
  ServeOptions options;
  options.max_payload = prepared.config.model_bytes;
  return ServeTrainerUntilStopped(prepared.listener, service, options, [&prepared] {
    SayReady(prepared, "unix:" + prepared.config.socket);
  });
}

Status Serve(Prepared& prepared, TrainerService& service, const Clock& clock) {
  if (!prepared.seat) {
    return ServeAgent(prepared, service);
  }
  ClusterSeat& seat = *prepared.seat;
  const ClusterIdentity identity = {prepared.config.federation, prepared.config.site,
                                    prepared.start.trainer, DataDigest(service.Hello().datasets)};
  if (seat.description.IsChief()) {
    ChiefTasks tasks(seat, identity, clock);
    service.SetCluster(&tasks);
    return ServeAgent(prepared, service);
  }
  WorkerTasks tasks(seat, identity, clock);
  service.SetCluster(&tasks);
  return ServeUntilStopped(
      [&](const std::stop_token& stop) {
        return tasks.Serve(service, prepared.config.model_bytes, stop);
      },
      [&prepared, &seat] {
        SayReady(prepared, "worker " + std::to_string(seat.description.rank) + " of " +
                               std::to_string(seat.description.workers.size()));
      });
}

// Errors up to the lock concern configuration and host, never data: they also go where standard
// error was before it was redirected, or a person would see an exit code and nothing else.
StatusOr<Prepared> PrepareOrSay(TrainerConfig config,
                                std::vector<contracts::DatasetDescription> descriptions) {
  const bool redirected = config.output.has_value();
  const FileHandle terminal(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  StatusOr<Prepared> prepared = PrepareAndLock(std::move(config), std::move(descriptions));
  if (!prepared.ok() && redirected) {
    dprintf(terminal.descriptor(), "domicile-trainer: %s\n",
            std::string(Message(prepared.status())).c_str());
  }
  return prepared;
}

int RunService(const std::string& config_file) {
  StatusOr<TrainerConfig> config = ReadTrainerConfig(config_file);
  if (!config.ok()) {
    return Fail(config.status(), kWrongUse);
  }
  StatusOr<std::vector<contracts::DatasetDescription>> descriptions = ReadDescriptions(*config);
  if (!descriptions.ok()) {
    return Fail(descriptions.status(), kWrongUse);
  }
  StatusOr<Prepared> prepared = PrepareOrSay(*std::move(config), *std::move(descriptions));
  if (!prepared.ok()) {
    return Fail(prepared.status(), kUnable);
  }
  StartLog("trainer");
  SystemClock clock;
  SystemRandom random;
  StatusOr<std::unique_ptr<TrainerService>> service =
      TrainerService::Open(prepared->config, prepared->descriptions, prepared->start, clock, random,
                           std::move(prepared->foreign));
  if (!service.ok()) {
    if (prepared->config.output) {
      dprintf(prepared->output.descriptor(), "failed: see `%s`\n",
              prepared->config.output->c_str());
    }
    return Fail(service.status(), kUnable);
  }
  const Status served = Serve(*prepared, **service, clock);
  return served.ok() ? kDone : Fail(served, kUnable);
}

int RunLocalOnce(const LocalRequest& request) {
  const StatusOr<Json> result = RunLocal(request);
  if (!result.ok()) {
    return Fail(result.status(), kWrongUse);
  }
  std::printf("%s\n", PrintJson(*result).c_str());
  return kDone;
}

int RunCheck(const CheckRequest& request, bool json) {
  const StatusOr<CheckReport> report = CheckData(request);
  if (!report.ok()) {
    return Fail(report.status(), kWrongUse);
  }
  std::printf("%s", json ? (PrintJson(report->json) + "\n").c_str() : report->text.c_str());
  return report->fits ? kDone : kNotSo;
}

// Of the file that the description names, unless another is given.
int RunSnapshot(const std::string& description_file, const std::string& file, bool json) {
  const StatusOr<contracts::DatasetDescription> description = ReadDescription(description_file);
  if (!description.ok()) {
    return Fail(description.status(), kWrongUse);
  }
  const StatusOr<Snapshot> snapshot =
      TakeSnapshot(*description, file.empty() ? description->files.front() : file);
  if (!snapshot.ok()) {
    const bool is_wrong = snapshot.status().code() == StatusCode::kInvalidArgument;
    return Fail(snapshot.status(), is_wrong ? kWrongUse : kUnable);
  }
  Json report;
  report.Set("v", 1);
  report.Set("file", snapshot->file);
  report.Set("sha256", PrintHex(snapshot->digest));
  report.Set("records", snapshot->records);
  report.Set("columns", snapshot->columns);
  const std::string text = snapshot->file + ": " + std::to_string(snapshot->records) +
                           " records of " + std::to_string(snapshot->columns) +
                           " columns, SHA-256 " + PrintHex(snapshot->digest);
  std::printf("%s\n", json ? PrintJson(report).c_str() : text.c_str());
  return kDone;
}

// What was asked for on the command line.
struct Arguments {
  std::string config_file;
  bool local = false;
  bool json = false;
  LocalRequest local_request;
  std::string model_file;
  std::string plan_file;
  CheckRequest check;
  std::string snapshot;
  std::string snapshot_file;
};

void Declare(CLI::App& app, Arguments& arguments) {
  LocalRequest& request = arguments.local_request;
  auto* config =
      app.add_option("--config", arguments.config_file, "trainer.toml; serves until SIGTERM");
  auto* local =
      app.add_flag("--local", arguments.local,
                   "compare local, central and federated models, for one who may see all data");
  auto* check = app.add_option("--check-data", arguments.check.description,
                               "dataset description: what is in it, and with --plan how it fits");
  auto* snapshot = app.add_option("--snapshot", arguments.snapshot,
                                  "dataset description of source `postgresql`: freeze its query");
  app.add_option("--plan", arguments.plan_file, "job file or plan, of --local and --check-data");
  app.add_option("--dataset", request.datasets, "dataset description, or NAME=FILE; repeatable")
      ->needs(local);
  app.add_option("--model", arguments.model_file, "federated model (safetensors)")->needs(local);
  app.add_option("--threads", request.threads, "threads of --local")
      ->needs(local)
      ->check(CLI::Range(1, 1024));
  app.add_option("--vocabulary", arguments.check.vocabularies,
                 "vocabulary file of a job with texts, of --local and --check-data; repeatable")
      ->excludes(config);
  app.add_option("--pretrained", request.pretrained,
                 "model file (safetensors) that the plan may name; repeatable")
      ->needs(local);
  app.add_flag("--show-values", arguments.check.show_values, "faults quote the cell")->needs(check);
  app.add_option("-o,--output", arguments.snapshot_file,
                 "where the snapshot goes; default: the file that the description names")
      ->needs(snapshot);
  app.add_flag("--json", arguments.json, "print JSON (--local prints nothing else)")
      ->excludes(config);
  for (auto* const one : {local, check, snapshot}) {
    for (auto* const other : {static_cast<CLI::Option*>(config), local, check, snapshot}) {
      if (one != other) {
        one->excludes(other);
      }
    }
  }
}

int Run(Arguments& arguments) {
  if (!arguments.config_file.empty()) {
    return RunService(arguments.config_file);
  }
  if (!arguments.snapshot.empty()) {
    return RunSnapshot(arguments.snapshot, arguments.snapshot_file, arguments.json);
  }
  if (!arguments.check.description.empty()) {
    if (!arguments.plan_file.empty()) {
      arguments.check.plan = arguments.plan_file;
    }
    return RunCheck(arguments.check, arguments.json);
  }
  LocalRequest& request = arguments.local_request;
  request.plan_file = arguments.plan_file;
  request.vocabularies = arguments.check.vocabularies;
  if (!arguments.local || request.plan_file.empty() || request.datasets.empty()) {
    return Fail(Error(StatusCode::kInvalidArgument,
                      "give `--config FILE`, `--local --plan FILE --dataset FILE`, "
                      "`--check-data FILE` or `--snapshot FILE`; see --help"),
                kWrongUse);
  }
  if (!arguments.model_file.empty()) {
    request.model_file = arguments.model_file;
  }
  return RunLocalOnce(request);
}

int Main(int argc, char** argv) {
  CLI::App app{
      "Trains on a site's data for its agent, behind walls it puts up itself.\n\n"
      "Example: domicile-trainer --config trainer.toml\n"
      "Example: domicile-trainer --check-data dataset.toml --plan job.toml"};
  Arguments arguments;
  Declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kWrongUse;
  }
  if (const Status cpu = models::CheckCpu(); !cpu.ok()) {
    return Fail(cpu, kUnable);
  }
  return Run(arguments);
}

}  // namespace
}  // namespace domicile::site_agent

int main(int argc, char** argv) { return domicile::site_agent::Main(argc, argv); }

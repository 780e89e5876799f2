// `domicile demo`: a whole federation on this machine, on real data.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iomanip>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/demo/demo_case.h"
#include "cli/demo/federation.h"
#include "cli/demo/progress.h"
#include "cli/demo/report.h"
#include "cli/watch_job.h"
#include "policy/reason.h"

namespace domicile::cli {

namespace {

struct DemoOptions {
  std::string example = "heart";
  std::string split;
  CaseOptions of_case;
  std::string dir;
  bool keep = false;
};

// Beside the installed programs, or in the source tree they were built from.
StatusOr<std::string> FindExamples(const std::string& programs) {
  for (const std::string& folder : {JoinPath(programs, "../share/domicile/examples"),
                                    std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples"}) {
    if (FileExists(JoinPath(folder, "heart/job.toml"))) {
      return folder;
    }
  }
  return Error(StatusCode::kNotFound,
               "the files of the examples are not here: build from a checkout, or install "
               "share/domicile/examples");
}

StatusOr<std::string> FolderOfThisProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return ErrnoError(error.value(), "finding this program");
  }
  return self.parent_path().string();
}

// The folder the demo works in, and whether it goes when the demo ends.
struct Workplace {
  std::string folder;
  bool keep = false;
};

StatusOr<Workplace> MakeWorkplace(const DemoOptions& options) {
  if (!options.dir.empty()) {
    std::error_code error;
    if (FileExists(options.dir) && !std::filesystem::is_empty(options.dir, error)) {
      return Error(StatusCode::kInvalidArgument,
                   "`" + options.dir +
                       "` is not empty: every demo is a new federation with new ledgers; name a "
                       "folder that is not there yet");
    }
    std::string absolute = std::filesystem::absolute(options.dir, error).string();
    RETURN_IF_ERROR(CreateFolders(absolute));
    return Workplace{.folder = absolute, .keep = true};
  }
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string pattern = (parent / "domicile-demo-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    return ErrnoError(errno, "making a folder for the demo");
  }
  return Workplace{.folder = pattern, .keep = options.keep};
}

std::string ReasonCode(std::uint32_t number) {
  const std::optional<policy::Reason> reason = policy::ReasonFromNumber(number);
  return reason ? std::string(policy::Code(*reason)) : "unknown";
}

// Follows the job to its end; signs, as each site's operator, what waits for approval.
StatusOr<v1::JobState> FollowJob(wire::AdminClient& client, DemoFederation& federation,
                                 const std::string& job, Progress& progress, Context& context) {
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  Status failed = OkStatus();
  const auto on_event = [&](const v1::WatchJobResponse& event) {
    state = event.summary().state();
    for (const v1::SiteState& site : event.sites()) {
      if (site.answer() == v1::ANSWER_DECLINE) {
        // Every example needs all of its sites: without one the job would wait for ever.
        failed = Error(
            StatusCode::kFailedPrecondition,
            "site `" + Visible(site.site()) + "` declined the job: " + ReasonCode(site.reason()));
        return false;
      }
      if (site.answer() != v1::ANSWER_HOLD) {
        continue;
      }
      for (const DemoSite& known : federation.Case().sites) {
        if (known.name == site.site()) {
          const StatusOr<bool> approved = federation.Approve(known);
          failed = approved.status();
        }
      }
    }
    progress.Show(event);
    return failed.ok();
  };
  RETURN_IF_ERROR(WatchToTheEnd(client, job, on_event,
                                {.total = std::chrono::minutes(60), .wait = {}}, context.clock,
                                context.err));
  RETURN_IF_ERROR(failed);
  progress.Finish();
  return state;
}

StatusOr<Exit> RunFederation(DemoFederation& federation, Context& context) {
  const auto began = std::chrono::steady_clock::now();
  context.out << "Starting " << federation.Case().opening << " ...\n" << std::flush;
  RETURN_IF_ERROR(federation.Start());
  ASSIGN_OR_RETURN(const std::unique_ptr<wire::AdminClient> client,
                   ConnectAsOperator({.aggregator = federation.Address(),
                                      .identity = federation.OperatorIdentity()},
                                     context.clock));
  ASSIGN_OR_RETURN(const std::string job_file,
                   ReadFile(federation.JobFile(), std::uint64_t{1} << 20U));
  v1::SubmitJobRequest request;
  request.set_job_file(job_file);
  request.set_file_name(federation.JobFile());
  ASSIGN_OR_RETURN(const v1::SubmitJobResponse submitted, client->SubmitJob(request));
  Progress progress(context.out, context.out_is_terminal);
  ASSIGN_OR_RETURN(const v1::JobState state,
                   FollowJob(*client, federation, submitted.job(), progress, context));
  ASSIGN_OR_RETURN(const v1::ShowJobResponse shown, client->ShowJob(submitted.job()));
  if (state != v1::JOB_STATE_DONE) {
    context.err << "domicile: the job did not finish: " << ReasonCode(shown.summary().reason())
                << "\n";
    return Exit::kNotSo;
  }
  RETURN_IF_ERROR(FetchFinalModel(*client, submitted.job(), federation.Path("operator")));
  federation.Stop();

  RETURN_IF_ERROR(PrintModels(federation, shown, context.out));
  RETURN_IF_ERROR(PrintTransfers(federation, context.out));
  ASSIGN_OR_RETURN(const bool proven, PrintProofs(federation, context.out));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  context.out << "\nThe whole demonstration took " << std::fixed << std::setprecision(1)
              << took.count() << " s.\n";
  return proven ? Exit::kDone : Exit::kNotSo;
}

Status Misplaced(std::string_view option, std::string_view example) {
  return Error(StatusCode::kInvalidArgument,
               "`" + std::string(option) + "` belongs to `--case " + std::string(example) + "`");
}

StatusOr<DemoCase> MakeCase(const DemoOptions& options, const std::string& programs) {
  CaseOptions of_case = options.of_case;
  ASSIGN_OR_RETURN(of_case.examples, FindExamples(programs));
  static const std::map<std::string_view, Split> splits = {
      {"iid", Split::kIid}, {"dirichlet", Split::kDirichlet}, {"two-classes", Split::kTwoClasses}};
  if (!options.split.empty()) {
    const auto found = splits.find(options.split);
    if (found == splits.end()) {
      return Error(StatusCode::kInvalidArgument,
                   "there is no split `" + Visible(options.split) +
                       "`; there are `iid`, `dirichlet` and `two-classes`");
    }
    of_case.split = found->second;
  }
  if (of_case.split != Split::kNone && options.example != "fashion") {
    return Misplaced("--split", "fashion");
  }
  if (of_case.adapters && options.example != "reuters") {
    return Misplaced("--adapters", "reuters");
  }
  if (options.example == "fashion") {
    return FashionCase(of_case);
  }
  if (options.example == "reuters") {
    return ReutersCase(of_case);
  }
  if (options.example != "heart") {
    return Error(StatusCode::kInvalidArgument, "there is no case `" + Visible(options.example) +
                                                   "`; there are `heart`, `fashion` and `reuters`");
  }
  return of_case.rows == 0 ? HeartCase(of_case)
                           : StatusOr<DemoCase>(Misplaced("--rows", "fashion` or `--case reuters"));
}

StatusOr<Exit> Demo(const DemoOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const std::string programs, FolderOfThisProgram());
  ASSIGN_OR_RETURN(DemoCase demo_case, MakeCase(options, programs));
  ASSIGN_OR_RETURN(const Workplace place, MakeWorkplace(options));
  const auto run = [&]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(DemoFederation federation,
                     DemoFederation::Create(place.folder, std::move(demo_case), programs,
                                            context.clock, context.random));
    StatusOr<Exit> exit = RunFederation(federation, context);
    federation.Stop();
    return exit;
  };
  StatusOr<Exit> exit = run();
  if (place.keep) {
    context.out << "Everything is kept in " << place.folder << "\n";
  } else if (exit.ok()) {
    std::error_code ignored;  // a temporary folder that cannot be removed does no harm
    std::filesystem::remove_all(place.folder, ignored);
  } else {
    context.err << "domicile: what the programs said is kept in " << place.folder << "\n";
  }
  return exit;
}

}  // namespace

void AddDemo(CLI::App& program, Context& context) {
  auto options = std::make_shared<DemoOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddCommand(program, "demo", "Run a whole federation on this machine, on real data",
                 "domicile demo --dir /tmp/hearts");
  command->add_option("--case", options->example,
                      "which example: `heart` (four hospitals, the default), `fashion` (pictures), "
                      "`reuters` (texts)");
  command->add_option("--rounds", options->of_case.rounds, "rounds of training; default: the job's")
      ->check(CLI::Range(1, 100));
  command
      ->add_option("--rows", options->of_case.rows,
                   "fashion, reuters: training rows of all sites together")
      ->check(CLI::Range(100, 40'000));
  command->add_option("--split", options->split,
                      "fashion: `iid` (default), `dirichlet` or `two-classes` a site");
  command->add_flag("--adapters", options->of_case.adapters,
                    "reuters: train adapters of the encoder, not its head alone");
  command->add_option("--dir", options->dir,
                      "work in this folder, absent or empty; implies --keep");
  command->add_flag("--keep", options->keep, "keep everything, and say where");
  OnRun(*command, context, [options, &context]() { return Demo(*options, context); });
}

}  // namespace domicile::cli

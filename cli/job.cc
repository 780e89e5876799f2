// `domicile job submit | list | show | watch | cancel | model`: an operator and the aggregator.
#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <memory>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/connect.h"
#include "cli/watch_job.h"
#include "policy/reason.h"

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestJobFile = std::uint64_t{1} << 20U;

struct JobOptions {
  ConnectOptions connect;
  std::string file;
  std::string job;
  std::string out;
  std::uint32_t round = 0;
  bool json = false;
};

std::string Hex(const std::string& raw) { return PrintHex(AsBytes(raw)); }

std::string_view StateWord(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_WAITING:
      return "waiting";
    case v1::JOB_STATE_RUNNING:
      return "running";
    case v1::JOB_STATE_DONE:
      return "done";
    case v1::JOB_STATE_FAILED:
      return "failed";
    case v1::JOB_STATE_CANCELLED:
      return "cancelled";
    default:
      return "unknown";
  }
}

std::string_view AnswerWord(v1::Answer answer) {
  switch (answer) {
    case v1::ANSWER_ACCEPT:
      return "accepted";
    case v1::ANSWER_DECLINE:
      return "declined";
    case v1::ANSWER_HOLD:
      return "holds";
    default:
      return "no answer";
  }
}

std::string_view PhaseWord(v1::PhaseKind phase) {
  switch (phase) {
    case v1::PHASE_KIND_STATISTICS:
      return "statistics";
    case v1::PHASE_KIND_TRAIN:
      return "train";
    case v1::PHASE_KIND_EVALUATE:
      return "evaluate";
    default:
      return "none";
  }
}

std::string_view ReasonCode(std::uint32_t number) {
  const std::optional<policy::Reason> reason = policy::ReasonFromNumber(number);
  return reason && *reason != policy::Reason::kNone ? policy::Code(*reason) : "";
}

Json SummaryFacts(const v1::JobSummary& summary) {
  Json facts;
  facts.Set("job", summary.job());
  facts.Set("name", summary.name());
  facts.Set("state", std::string(StateWord(summary.state())));
  facts.Set("rounds_planned", summary.rounds_planned());
  facts.Set("rounds_committed", summary.rounds_committed());
  facts.Set("submitted_unix_seconds", summary.submitted_unix_seconds());
  if (const std::string_view reason = ReasonCode(summary.reason()); !reason.empty()) {
    facts.Set("reason", reason);
  }
  return facts;
}

Json SiteFacts(const v1::SiteState& site) {
  Json facts;
  facts.Set("site", site.site());
  facts.Set("jurisdiction", site.jurisdiction());
  facts.Set("connected", site.connected());
  facts.Set("answer", std::string(AnswerWord(site.answer())));
  facts.Set("received", site.received());
  facts.Set("percent", site.percent());
  if (const std::string_view reason = ReasonCode(site.reason()); !reason.empty()) {
    facts.Set("reason", reason);
  }
  return facts;
}

Json MetricsFacts(const v1::RoundMetrics& metrics) {
  Json facts;
  facts.Set("round", metrics.round());
  facts.Set("phase", std::string(PhaseWord(metrics.phase())));
  facts.Set("contributors", metrics.contributors());
  facts.Set("examples", metrics.examples());
  for (const auto& [key, value] : {std::pair("loss", metrics.loss()),
                                   {"accuracy", metrics.accuracy()},
                                   {"majority", metrics.majority()},
                                   {"auc", metrics.auc()}}) {
    if (!value.empty()) {
      facts.Set(key, value);
    }
  }
  return facts;
}

void PrintSummary(const v1::JobSummary& summary, std::ostream& out) {
  out << std::left << std::setw(22) << summary.job() << std::setw(11) << StateWord(summary.state())
      << "round " << std::right << std::setw(4) << summary.rounds_committed() << " of " << std::left
      << std::setw(6) << summary.rounds_planned() << summary.name();
  if (const std::string_view reason = ReasonCode(summary.reason()); !reason.empty()) {
    out << "  (" << reason << ")";
  }
  out << "\n";
}

void PrintMetrics(const v1::RoundMetrics& metrics, std::ostream& out) {
  out << "round " << metrics.round() << " " << PhaseWord(metrics.phase()) << ": "
      << metrics.contributors() << " sites";
  if (metrics.examples() > 0) {
    out << ", " << metrics.examples() << " examples";
  }
  for (const auto& [name, value] :
       {std::pair(", loss ", metrics.loss()),
        {", accuracy ", metrics.accuracy()},
        {" (majority ", metrics.majority().empty() ? "" : metrics.majority() + ")"},
        {", AUC ", metrics.auc()}}) {
    if (!value.empty()) {
      out << name << value.substr(0, 8);
    }
  }
  out << "\n";
}

void PrintWithheld(std::uint32_t reason, std::ostream& out) {
  if (reason != 0) {
    out << "metrics are withheld: " << ReasonCode(reason)
        << ", the policy of a contributing site keeps them from you\n";
  }
}

void PrintSites(const google::protobuf::RepeatedPtrField<v1::SiteState>& sites, std::ostream& out) {
  for (const v1::SiteState& site : sites) {
    out << "  " << std::left << std::setw(20) << site.site() << std::setw(8) << site.jurisdiction()
        << std::setw(14) << (site.connected() ? "connected" : "away") << std::setw(11)
        << AnswerWord(site.answer()) << (site.received() ? "update received" : "")
        << ReasonCode(site.reason()) << "\n";
  }
}

// Adds one command with the options every one of them has.
CLI::App* AddJobCommand(CLI::App& job, const std::shared_ptr<JobOptions>& options,
                        const std::string& name, const std::string& what,
                        std::string_view example) {
  CLI::App* const command = AddCommand(job, name, what, example);
  AddConnectOptions(*command, options->connect);
  command->add_flag("--json", options->json, "print facts as JSON");
  return command;
}

void AddSubmit(CLI::App& job, Context& context) {
  auto options = std::make_shared<JobOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddJobCommand(job, options, "submit", "Submit a job file", "domicile job submit job.toml");
  command->add_option("FILE", options->file, "the job file")->required();
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(options->file, kLargestJobFile));
    ASSIGN_OR_RETURN(const auto client, ConnectAsOperator(options->connect, context.clock));
    v1::SubmitJobRequest request;
    request.set_job_file(text);
    request.set_file_name(options->file);
    ASSIGN_OR_RETURN(const v1::SubmitJobResponse response, client->SubmitJob(request));
    if (options->json) {
      Json facts;
      facts.Set("job", response.job());
      facts.Set("plan", Hex(response.plan_digest()));
      facts.Set("base_model", Hex(response.base_model_digest()));
      PrintFacts(context, facts);
    } else {
      context.out << "submitted " << response.job() << "\nplan       "
                  << Hex(response.plan_digest()) << "\nwatch it:  domicile job watch "
                  << response.job() << "\n";
    }
    return Exit::kDone;
  });
}

void AddList(CLI::App& job, Context& context) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* const command =
      AddJobCommand(job, options, "list", "All jobs of the aggregator", "domicile job list");
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const auto client, ConnectAsOperator(options->connect, context.clock));
    ASSIGN_OR_RETURN(const v1::ListJobsResponse response, client->ListJobs());
    JsonArray all;
    for (const v1::JobSummary& summary : response.jobs()) {
      if (options->json) {
        all.push_back(SummaryFacts(summary));
      } else {
        PrintSummary(summary, context.out);
      }
    }
    if (options->json) {
      Json facts;
      facts.Set("jobs", Json(std::move(all)));
      PrintFacts(context, facts);
    } else if (response.jobs().empty()) {
      context.out << "no jobs\n";
    }
    return Exit::kDone;
  });
}

void AddShow(CLI::App& job, Context& context) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* const command = AddJobCommand(job, options, "show", "One job: sites, rounds, metrics",
                                          "domicile job show job-1a2b3c4d-1");
  command->add_option("ID", options->job, "the job")->required();
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const auto client, ConnectAsOperator(options->connect, context.clock));
    ASSIGN_OR_RETURN(const v1::ShowJobResponse response, client->ShowJob(options->job));
    if (!options->json) {
      PrintSummary(response.summary(), context.out);
      context.out << "plan  " << Hex(response.plan_digest()) << "\nmodel "
                  << Hex(response.model().digest()) << "\n";
      PrintSites(response.sites(), context.out);
      for (const v1::RoundMetrics& metrics : response.metrics()) {
        PrintMetrics(metrics, context.out);
      }
      PrintWithheld(response.metrics_withheld(), context.out);
      return Exit::kDone;
    }
    Json facts = SummaryFacts(response.summary());
    facts.Set("plan_digest", Hex(response.plan_digest()));
    facts.Set("model", Hex(response.model().digest()));
    ASSIGN_OR_RETURN(Json plan, ParseCanonicalJson(response.plan()));
    facts.Set("plan", std::move(plan));
    JsonArray sites;
    for (const v1::SiteState& site : response.sites()) {
      sites.push_back(SiteFacts(site));
    }
    facts.Set("sites", Json(std::move(sites)));
    JsonArray rounds;
    for (const v1::RoundMetrics& metrics : response.metrics()) {
      rounds.push_back(MetricsFacts(metrics));
    }
    facts.Set("metrics", Json(std::move(rounds)));
    if (response.metrics_withheld() != 0) {
      facts.Set("metrics_withheld", ReasonCode(response.metrics_withheld()));
    }
    PrintFacts(context, facts);
    return Exit::kDone;
  });
}

void AddWatch(CLI::App& job, Context& context) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* const command = AddJobCommand(
      job, options, "watch", "Follow a job until it ends; exit 1 if it did not succeed",
      "domicile job watch job-1a2b3c4d-1");
  command->add_option("ID", options->job, "the job")->required();
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const auto client, ConnectAsOperator(options->connect, context.clock));
    v1::JobSummary last;
    std::uint32_t withheld = 0;
    const auto on_event = [&](const v1::WatchJobResponse& event) {
      last = event.summary();
      withheld = event.metrics_withheld();
      if (options->json) {
        Json facts = SummaryFacts(event.summary());
        facts.Set("time", event.time());
        if (event.has_metrics()) {
          facts.Set("metrics", MetricsFacts(event.metrics()));
        }
        PrintFacts(context, facts);
      } else if (event.has_metrics()) {
        PrintMetrics(event.metrics(), context.out);
      }
      context.out.flush();
      return true;
    };
    RETURN_IF_ERROR(WatchToTheEnd(*client, options->job, on_event,
                                  {.total = std::chrono::hours(24 * 30), .wait = {}}, context.clock,
                                  context.err));
    if (!options->json) {
      PrintSummary(last, context.out);
      PrintWithheld(withheld, context.out);
    }
    return last.state() == v1::JOB_STATE_DONE ? Exit::kDone : Exit::kNotSo;
  });
}

void AddCancel(CLI::App& job, Context& context) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* const command = AddJobCommand(job, options, "cancel", "End a job; its last model stays",
                                          "domicile job cancel job-1a2b3c4d-1");
  command->add_option("ID", options->job, "the job")->required();
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const auto client, ConnectAsOperator(options->connect, context.clock));
    RETURN_IF_ERROR(client->CancelJob(options->job));
    context.out << "cancelled " << options->job << "\n";
    return Exit::kDone;
  });
}

void AddModel(CLI::App& job, Context& context) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* const command =
      AddJobCommand(job, options, "model", "Download a committed model (a logged release)",
                    "domicile job model job-1a2b3c4d-1 -o model.safetensors");
  command->add_option("ID", options->job, "the job")->required();
  command->add_option("--round", options->round, "after this round; default: the last committed");
  command->add_option("-o,--out", options->out, "the file to write")->required();
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const auto client, ConnectAsOperator(options->connect, context.clock));
    Bytes bytes;
    ASSIGN_OR_RETURN(const auto answer, client->FetchModel(options->job, options->round,
                                                           [&bytes](ByteSpan data) {
                                                             bytes.insert(bytes.end(), data.begin(),
                                                                          data.end());
                                                             return OkStatus();
                                                           },
                                                           {}));
    if (const auto* refusal = std::get_if<v1::Refusal>(&answer)) {
      const auto reason = policy::ReasonFromNumber(refusal->reason());
      context.err << "domicile: the model is not released: " << ReasonCode(refusal->reason())
                  << (reason ? ", " + std::string(policy::Explain(*reason)) : "") << "\n";
      return Exit::kNotSo;
    }
    RETURN_IF_ERROR(WriteFileDurably(options->out, bytes, 0644));
    const std::string digest = Hex(std::get<v1::BlobRef>(answer).digest());
    if (options->json) {
      Json facts;
      facts.Set("file", options->out);
      facts.Set("digest", digest);
      facts.Set("bytes", static_cast<std::uint64_t>(bytes.size()));
      PrintFacts(context, facts);
    } else {
      context.out << "wrote " << options->out << ", " << bytes.size() << " bytes\n"
                  << "digest " << digest << "\n";
    }
    return Exit::kDone;
  });
}

}  // namespace

void AddJob(CLI::App& program, Context& context) {
  CLI::App* const job = AddGroup(program, "job", "Training jobs: submit, watch, approve");
  AddSubmit(*job, context);
  AddList(*job, context);
  AddShow(*job, context);
  AddWatch(*job, context);
  AddCancel(*job, context);
  AddModel(*job, context);
}

}  // namespace domicile::cli

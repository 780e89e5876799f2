// `domicile job plan`: what a job asks, on any machine, without a network.
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "cli/plan_words.h"

namespace domicile::cli {

namespace {

constexpr unsigned kPublicMode = 0644;

// ---- plan ----

void AddPlan(CLI::App& job, Context& context) {
  struct Options {
    std::string file;
    std::string out;
    bool json = false;
  };
  auto options = std::make_shared<Options>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddCommand(job, "plan", "Check a job file offline; show its plan and digest",
                 "domicile job plan job.toml -o heart.plan.json");
  command->add_option("FILE", options->file, "a job file, or a plan")->required();
  command->add_option("-o,--out", options->out, "write the plan's exact text there");
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const contracts::Plan plan, ReadPlan(options->file));
    const std::string text = contracts::PlanText(plan);
    if (!options->out.empty()) {
      RETURN_IF_ERROR(WriteFileDurably(options->out, AsBytes(text), kPublicMode));
    }
    if (options->json) {
      ASSIGN_OR_RETURN(Json printed, ParseCanonicalJson(text));
      Json facts;
      facts.Set("digest", PrintHex(contracts::PlanDigest(plan)));
      facts.Set("leaves", LeavingFacts(plan));
      facts.Set("plan", std::move(printed));
      PrintFacts(context, facts);
    } else {
      PrintPlanWords(plan, context.out);
    }
    return Exit::kDone;
  });
}

}  // namespace

void AddJobGrant(CLI::App& program, Context& context) {
  CLI::App* const job = AddGroup(program, "job", "Training requests: plan, approve, submit, watch");
  AddPlan(*job, context);
  AddJobApproval(program, context);
}

}  // namespace domicile::cli

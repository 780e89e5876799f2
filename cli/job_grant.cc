// `domicile job plan` and `domicile job approve`: what a job asks, and a site's signature under it.
// Both work on any machine, without a network.
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "cli/command.h"
#include "cli/plan_words.h"
#include "contracts/grant.h"
#include "crypto/key_file.h"

namespace domicile::cli {

namespace {

using contracts::GrantBody;

constexpr std::uint64_t kLargestRequest = 4'096;
constexpr int kLongestDays = 366;
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

// ---- approve ----

struct ApproveOptions {
  std::string request;
  std::vector<std::string> keys;
  std::string plan;
  std::string out;
  int days = 0;  // 0: until when the request proposes
  bool json = false;
};

// When the grant ends: in whole milliseconds, as grants are written.
StatusOr<WallTime> EndOf(const GrantBody& request, int days, WallTime now) {
  if (days != 0) {
    return std::chrono::floor<std::chrono::milliseconds>(now) + std::chrono::days(days);
  }
  if (request.not_after <= now) {
    return Error(StatusCode::kInvalidArgument, "the request proposes to end at " +
                                                   PrintTime(request.not_after) +
                                                   ", which is past; give --days N");
  }
  if (request.not_after > now + std::chrono::days(kLongestDays)) {
    return Error(StatusCode::kInvalidArgument, "the request proposes to end at " +
                                                   PrintTime(request.not_after) +
                                                   ", more than 366 days ahead; give --days N");
  }
  return request.not_after;
}

void PrintRequestWords(const GrantBody& body, bool plan_shown, std::ostream& out) {
  out << "approval for site " << body.site.text() << " of federation " << body.federation
      << "\n  job          " << body.job.text() << "\n  plan         " << GroupedHex(body.plan)
      << "\n  trainer      " << GroupedHex(body.trainer) << "\n  first model  "
      << GroupedHex(body.base_model) << "\n  dataset      " << body.dataset.text()
      << ", in the version " << GroupedHex(body.dataset_commitment) << "\n  policy       "
      << GroupedHex(body.effective_policy) << "\n  until        " << PrintTime(body.not_after)
      << "\n";
  if (!plan_shown) {
    out << "the plan itself was not shown: only its digest is approved (--plan FILE shows it)\n";
  }
}

struct SignedGrant {
  std::string note;
  std::vector<std::string> signers;
};

// The note of all keys. Two keys of one name would count as one person when it is verified.
StatusOr<SignedGrant> SignGrant(const GrantBody& body, const std::vector<std::string>& key_files,
                                WallTime now) {
  const std::string text = contracts::GrantText(body);
  SignedGrant grant;
  std::vector<crypto::NoteVerifier> verifiers;
  for (const std::string& file : key_files) {
    ASSIGN_OR_RETURN(const crypto::NoteSigner signer, crypto::ReadNoteKey(file));
    ASSIGN_OR_RETURN(const std::string note, signer.Sign(text));
    verifiers.push_back(signer.Verifier());
    grant.signers.push_back(verifiers.back().name());
    if (grant.note.empty()) {
      grant.note = note;
    } else {
      ASSIGN_OR_RETURN(grant.note, crypto::MergeNotes(grant.note, note));
    }
  }
  const std::set<std::string> names(grant.signers.begin(), grant.signers.end());
  if (names.size() != grant.signers.size()) {
    return Error(StatusCode::kInvalidArgument,
                 "two of the keys have one name; each approval needs a person of its own");
  }
  const contracts::GrantCheck check =
      contracts::VerifyGrant(grant.note, verifiers, verifiers.size(), body, now);
  if (check.reason != policy::Reason::kNone) {
    return Error(StatusCode::kInternal, "the grant that was just signed does not verify");
  }
  return grant;
}

void PrintGrantFacts(Context& context, const GrantBody& body, const SignedGrant& grant,
                     const std::optional<contracts::Plan>& plan) {
  Json facts;
  facts.Set("federation", body.federation);
  facts.Set("site", body.site.text());
  facts.Set("job", body.job.text());
  facts.Set("plan", PrintHex(body.plan));
  facts.Set("not_after", PrintTime(body.not_after));
  facts.Set("signers", JsonArray(grant.signers.begin(), grant.signers.end()));
  facts.Set("plan_shown", plan.has_value());
  if (plan.has_value()) {
    facts.Set("purpose", plan->purpose);
    facts.Set("leaves", LeavingFacts(*plan));
  }
  PrintFacts(context, facts);
}

StatusOr<Exit> Approve(const ApproveOptions& options, Context& context) {
  const WallTime now = context.clock.Now();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.request, kLargestRequest));
  StatusOr<GrantBody> request = contracts::GrantBodyFromText(text);
  if (!request.ok()) {
    return Annotate(request.status(), "request `" + options.request + "`");
  }
  GrantBody body = *std::move(request);
  ASSIGN_OR_RETURN(body.not_after, EndOf(body, options.days, now));
  std::optional<contracts::Plan> plan;
  if (!options.plan.empty()) {
    ASSIGN_OR_RETURN(plan, ReadPlan(options.plan));
    const Digest digest = contracts::PlanDigest(*plan);
    if (digest != body.plan) {
      context.err << "domicile: `" << options.plan << "` is not the plan of this request; nothing "
                  << "was signed\n  the request names " << GroupedHex(body.plan)
                  << "\n  the file's plan is " << GroupedHex(digest) << "\n";
      return Exit::kNotSo;
    }
  }
  // Shown before the keys are read: what follows is the signature under these words.
  if (!options.json) {
    PrintRequestWords(body, plan.has_value(), context.out);
    if (plan.has_value()) {
      PrintPlanWords(*plan, context.out);
    }
  }
  ASSIGN_OR_RETURN(const SignedGrant grant, SignGrant(body, options.keys, now));
  RETURN_IF_ERROR(WriteFileDurably(options.out, AsBytes(grant.note), kPublicMode));
  if (options.json) {
    PrintGrantFacts(context, body, grant, plan);
  } else {
    for (const std::string& signer : grant.signers) {
      context.out << "signed by " << signer << "\n";
    }
    context.out << "wrote " << options.out << "; put it into the agent's folder of grants\n";
  }
  return Exit::kDone;
}

void AddApprove(CLI::App& job, Context& context) {
  auto options = std::make_shared<ApproveOptions>();
  CLI::App* const command =
      AddCommand(job, "approve", "Sign a site's approval of a job, offline",
                 "domicile job approve --request heart-1.request --plan heart.plan.json \\\n"
                 "      --key officer.key --days 30 -o heart-1.grant");
  command->add_option("--request", options->request, "the request that the agent wrote")
      ->required();
  command->add_option("--key", options->keys, "private key of a person who may approve; repeatable")
      ->required()
      ->expected(1)
      ->take_all();
  command->add_option("--plan", options->plan, "the plan or job file: shown, and compared");
  command->add_option("--days", options->days, "how long it holds (default: as the request says)")
      ->check(CLI::Range(1, kLongestDays));
  command->add_option("-o,--out", options->out, "the grant to write")->required();
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() { return Approve(*options, context); });
}

}  // namespace

void AddJobGrant(CLI::App& program, Context& context) {
  CLI::App* const job = AddGroup(program, "job", "Training requests: plan, approve, submit, watch");
  AddPlan(*job, context);
  AddApprove(*job, context);
}

}  // namespace domicile::cli

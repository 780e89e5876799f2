// `domicile job request | approve | deny`: what a site is asked, a person's signature under it, and
// a person's no. By the folders of an agent, or with files alone, on any machine and without a
// network.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/grant_folder.h"
#include "cli/plan_words.h"
#include "cli/request_words.h"
#include "contracts/grant.h"
#include "crypto/key_file.h"

namespace domicile::cli {

namespace {

using contracts::GrantBody;

constexpr std::uint64_t kLargestSignature = 64 * 1024;
constexpr std::size_t kSignatureBytes = 64;
constexpr int kLongestDays = 366;
constexpr unsigned kPublicMode = 0644;

// ---- where the folders are ----

struct FolderOptions {
  std::string dir = ".";
  std::string requests;
  std::string grants;

  GrantFolder Folder() const {
    return {.requests = requests.empty() ? JoinPath(dir, "requests") : requests,
            .grants = grants.empty() ? JoinPath(dir, "grants") : grants};
  }
};

void AddFolderOptions(CLI::App& command, FolderOptions& options) {
  command.add_option("--dir", options.dir,
                     "folder of the agent, with `requests` and `grants` in it (default: here)");
  command.add_option("--requests", options.requests, "the agent's folder of requests");
  command.add_option("--grants", options.grants, "the agent's folder of grants");
}

// ---- what is asked ----

struct Source {
  std::string job;      // by the agent's folders
  std::string request;  // or a file
  std::string plan;
  FolderOptions folder;
};

StatusOr<JobId> JobOf(const std::string& text) {
  StatusOr<JobId> job = JobId::Parse(text);
  return job.ok() ? job : Annotate(job.status(), "ID");
}

// Reads the request, the plan and what was approved before. Empty: the plan is another one than the
// request names, which has been said.
StatusOr<std::optional<Shown>> ReadShown(const Source& source, Context& context) {
  if (source.job.empty() == source.request.empty()) {
    return Error(StatusCode::kInvalidArgument, "give the ID of a job, or --request FILE");
  }
  Shown shown;
  std::string plan_file = source.plan;
  if (source.job.empty()) {
    ASSIGN_OR_RETURN(shown.body, ReadRequest(source.request));
  } else {
    const GrantFolder folder = source.folder.Folder();
    ASSIGN_OR_RETURN(const JobId job, JobOf(source.job));
    ASSIGN_OR_RETURN(shown.body, ReadRequest(folder.RequestOf(job)));
    // Who comes second signs what the first has signed, if that is what is asked now.
    const StatusOr<GrantBody> grant = ReadRequest(folder.GrantOf(job));
    if (grant.ok() && AreAlike(*grant, shown.body)) {
      shown.body = *grant;
    }
    if (shown.body.job != job) {
      return Error(StatusCode::kInvalidArgument, "the request of job `" + job.text() +
                                                     "` is one of job `" + shown.body.job.text() +
                                                     "`; do not sign it");
    }
    if (plan_file.empty() && FileExists(folder.PlanOf(job))) {
      plan_file = folder.PlanOf(job);
    }
  }
  if (plan_file.empty()) {
    return std::optional(std::move(shown));
  }
  ASSIGN_OR_RETURN(shown.plan, ReadPlan(plan_file));
  const Digest digest = contracts::PlanDigest(*shown.plan);
  if (digest != shown.body.plan) {
    context.err << "domicile: `" << plan_file << "` is not the plan of this request; nothing "
                << "was signed\n  the request names " << GroupedHex(shown.body.plan)
                << "\n  the file's plan is " << GroupedHex(digest) << "\n";
    return std::optional<Shown>();
  }
  if (!source.job.empty()) {
    shown.by_folder = true;
    shown.last = FindLastApproved(source.folder.Folder(), shown.body.job, *shown.plan);
  }
  return std::optional(std::move(shown));
}

std::uint64_t UnixSeconds(WallTime now) {
  return static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count());
}

// ---- request ----

struct RequestOptions {
  Source source;
  std::string out;
  bool to_sign = false;
  bool json = false;
};

StatusOr<Exit> ShowRequest(const RequestOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const std::optional<Shown> shown, ReadShown(options.source, context));
  if (!shown) {
    return Exit::kNotSo;
  }
  if (options.to_sign && options.out.empty()) {
    return Error(StatusCode::kInvalidArgument, "--to-sign needs a file for the bytes: -o FILE");
  }
  if (options.json) {
    PrintFacts(context, ShownFacts(*shown));
  } else {
    PrintShown(*shown, context.out);
  }
  if (!options.out.empty()) {
    const std::string text = contracts::GrantText(shown->body);
    const std::string bytes =
        options.to_sign ? crypto::BytesToCosign(text, UnixSeconds(context.clock.Now())) : text;
    RETURN_IF_ERROR(WriteFileDurably(options.out, AsBytes(bytes), kPublicMode));
  }
  return Exit::kDone;
}

void AddRequest(CLI::App& job, Context& context) {
  auto options = std::make_shared<RequestOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddCommand(job, "request", "Show what a site is asked to approve, and take it along",
                 "domicile job request heart-1 --dir /var/lib/domicile -o heart-1.request");
  command->add_option("ID", options->source.job, "a job that waits for approval")->required();
  command->add_option("--plan", options->source.plan,
                      "the plan or job file, if another is at hand");
  command->add_option("-o,--out", options->out, "write the request there, to be signed elsewhere");
  command->add_flag(
      "--to-sign", options->to_sign,
      "write the exact bytes that a smart card must sign (Ed25519); they hold the time");
  AddFolderOptions(*command, options->source.folder);
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() { return ShowRequest(*options, context); });
}

// ---- approve ----

struct ApproveOptions {
  Source source;
  std::vector<std::string> keys;
  std::string signature;  // a note, or the raw signature of a card
  std::string signed_bytes;
  std::string as;
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

// An approval says when it was given.
StatusOr<std::string> Cosign(const crypto::NoteSigner& key, std::string_view text, WallTime now) {
  if (key.Verifier().Kind() != crypto::NoteKeyKind::kCosigner) {
    return Error(StatusCode::kInvalidArgument,
                 "the key of `" + key.Verifier().name() +
                     "` does not say when it signs; make one with `domicile ca approver`");
  }
  return key.Cosign(text, UnixSeconds(now));
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
  contracts::ApprovalRules rules;
  for (const std::string& file : key_files) {
    ASSIGN_OR_RETURN(const crypto::NoteSigner signer, crypto::ReadNoteKey(file));
    ASSIGN_OR_RETURN(const std::string note, Cosign(signer, text, now));
    rules.approvers.push_back(
        {.role = policy::ApprovalRole::kNone, .organisation = {}, .key = signer.Verifier()});
    grant.signers.push_back(rules.approvers.back().key.name());
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
  rules.persons = static_cast<std::uint32_t>(rules.approvers.size());
  const contracts::GrantCheck check = contracts::VerifyGrant(grant.note, rules, body, now);
  if (check.reason != policy::Reason::kNone) {
    return Error(StatusCode::kInternal, "the grant that was just signed does not verify");
  }
  return grant;
}

// 64 bytes, or base64 of them on one line.
StatusOr<Bytes> ReadRawSignature(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kLargestSignature));
  if (text.size() == kSignatureBytes) {
    return ToBytes(text);
  }
  while (text.ends_with('\n') || text.ends_with('\r')) {
    text.pop_back();
  }
  StatusOr<Bytes> bytes = ParseBase64(text);
  if (!bytes.ok() || bytes->size() != kSignatureBytes) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + path + "` is not a raw Ed25519 signature: 64 bytes, or base64 of them");
  }
  return bytes;
}

// When the bytes of `request --to-sign` say that they are signed.
StatusOr<std::uint64_t> TimeOfBytes(const std::string& path, const std::string& text) {
  constexpr std::string_view kBefore = "cosignature/v1\ntime ";
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kLargestSignature));
  const std::size_t end = bytes.find('\n', kBefore.size());
  if (bytes.starts_with(kBefore) && end != std::string::npos) {
    const auto seconds =
        ParseUint64(std::string_view(bytes).substr(kBefore.size(), end - kBefore.size()));
    if (seconds.ok() && crypto::BytesToCosign(text, *seconds) == bytes) {
      return *seconds;
    }
  }
  return Error(StatusCode::kInvalidArgument,
               "`" + path +
                   "` does not hold the bytes of this request; they are made by "
                   "`domicile job request ID --to-sign -o FILE`");
}

// A signature that was made elsewhere: a note, or the bytes of a card.
StatusOr<SignedGrant> TakeSignature(const ApproveOptions& options, GrantBody& body) {
  if (options.as.empty()) {
    ASSIGN_OR_RETURN(const GrantBody there, ReadRequest(options.signature));
    if (!AreAlike(there, body)) {
      return Error(StatusCode::kInvalidArgument,
                   "`" + options.signature + "` approves something else than this request");
    }
    body = there;  // whoever signed said until when
    ASSIGN_OR_RETURN(std::string note, ReadFile(options.signature, kLargestSignature));
    return SignedGrant{.note = std::move(note), .signers = {}};
  }
  if (options.signed_bytes.empty()) {
    return Error(StatusCode::kInvalidArgument,
                 "--as KEY needs --signed FILE: the bytes that were signed, which hold the time");
  }
  const std::string text = contracts::GrantText(body);
  ASSIGN_OR_RETURN(const std::uint64_t seconds, TimeOfBytes(options.signed_bytes, text));
  ASSIGN_OR_RETURN(const crypto::NoteVerifier key, crypto::ReadNotePublicKey(options.as));
  ASSIGN_OR_RETURN(const Bytes signature, ReadRawSignature(options.signature));
  ASSIGN_OR_RETURN(std::string note, crypto::NoteFromCosignature(text, key, seconds, signature));
  return SignedGrant{.note = std::move(note), .signers = {key.name()}};
}

Status CheckUse(const ApproveOptions& options) {
  if (options.keys.empty() == options.signature.empty()) {
    return Error(StatusCode::kInvalidArgument,
                 "give --key FILE to sign here, or --signature FILE that was made elsewhere");
  }
  if (options.source.job.empty() && options.out.empty()) {
    return Error(StatusCode::kInvalidArgument, "give -o FILE for the grant");
  }
  return OkStatus();
}

StatusOr<Exit> Approve(const ApproveOptions& options, Context& context) {
  RETURN_IF_ERROR(CheckUse(options));
  const WallTime now = context.clock.Now();
  ASSIGN_OR_RETURN(std::optional<Shown> shown, ReadShown(options.source, context));
  if (!shown) {
    return Exit::kNotSo;
  }
  if (options.signature.empty()) {
    ASSIGN_OR_RETURN(shown->body.not_after, EndOf(shown->body, options.days, now));
  }
  // Shown before the keys are read: what follows is the signature under these words.
  if (!options.json) {
    PrintShown(*shown, context.out);
  }
  SignedGrant grant;
  if (options.signature.empty()) {
    ASSIGN_OR_RETURN(grant, SignGrant(shown->body, options.keys, now));
  } else {
    ASSIGN_OR_RETURN(grant, TakeSignature(options, shown->body));
  }
  const std::string out =
      options.out.empty() ? options.source.folder.Folder().GrantOf(shown->body.job) : options.out;
  RETURN_IF_ERROR(options.out.empty() ? KeepGrant(out, grant.note)
                                      : WriteFileDurably(out, AsBytes(grant.note), kPublicMode));
  if (options.json) {
    Json facts = ShownFacts(*shown);
    facts.Set("signers", JsonArray(grant.signers.begin(), grant.signers.end()));
    PrintFacts(context, facts);
    return Exit::kDone;
  }
  for (const std::string& signer : grant.signers) {
    context.out << "signed by " << signer << "\n";
  }
  context.out << "wrote " << out
              << (options.out.empty() ? "\n" : "; put it into the agent's folder of grants\n");
  return Exit::kDone;
}

void AddApprove(CLI::App& job, Context& context) {
  auto options = std::make_shared<ApproveOptions>();
  CLI::App* const command = AddCommand(
      job, "approve", "Sign a site's approval of a job, by the agent's folders or offline",
      "domicile job approve heart-1 --dir /var/lib/domicile --key officer.key\n"
      "  domicile job approve --request heart-1.request --plan heart.plan.json \\\n"
      "      --key officer.key --days 30 -o heart-1.grant\n"
      "  domicile job approve heart-1 --signature heart-1.grant");
  command->add_option("ID", options->source.job, "a job that waits in the agent's folders");
  command->add_option("--request", options->source.request,
                      "or a file: the request that the agent wrote, or a grant to sign as well");
  command->add_option("--key", options->keys, "private key of a person who may approve; repeatable")
      ->expected(1)
      ->take_all();
  command->add_option("--signature", options->signature,
                      "a grant that was signed elsewhere; with --as, a raw Ed25519 signature");
  command->add_option("--as", options->as, "public key file of the one who made it");
  command->add_option("--signed", options->signed_bytes, "the bytes of `job request --to-sign`");
  command->add_option("--plan", options->source.plan, "the plan or job file: shown, and compared");
  command->add_option("--days", options->days, "how long it holds (default: as the request says)")
      ->check(CLI::Range(1, kLongestDays));
  command->add_option("-o,--out", options->out, "the grant to write (default: the agent's folder)");
  AddFolderOptions(*command, options->source.folder);
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() { return Approve(*options, context); });
}

// ---- deny ----

void AddDeny(CLI::App& job, Context& context) {
  struct Options {
    std::string job;
    FolderOptions folder;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      AddCommand(job, "deny", "Refuse a job at this site, or take its approval back, for good",
                 "domicile job deny heart-1 --dir /var/lib/domicile");
  command->add_option("ID", options->job, "the job")->required();
  AddFolderOptions(*command, options->folder);
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const JobId job_id, JobOf(options->job));
    const GrantFolder folder = options->folder.Folder();
    const bool was_approved = FileExists(folder.GrantOf(job_id));
    const std::string text = "denied " + PrintTime(context.clock.Now()) + "\n";
    RETURN_IF_ERROR(WriteFileDurably(folder.DenialOf(job_id), AsBytes(text), kPublicMode));
    if (options->json) {
      Json facts;
      facts.Set("job", job_id.text());
      facts.Set("was_approved", was_approved);
      PrintFacts(context, facts);
    } else {
      context.out << "job " << job_id.text()
                  << (was_approved ? ": the approval is taken back" : ": denied")
                  << "; this job cannot be approved at this site any more\n";
    }
    return Exit::kDone;
  });
}

}  // namespace

void AddJobApproval(CLI::App& program, Context& context) {
  CLI::App* const job = AddGroup(program, "job", "Training requests: plan, approve, submit, watch");
  AddRequest(*job, context);
  AddApprove(*job, context);
  AddDeny(*job, context);
}

}  // namespace domicile::cli

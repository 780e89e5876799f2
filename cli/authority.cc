#include "cli/authority.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "crypto/key_file.h"
#include "policy/language/jurisdiction.h"

namespace domicile::cli {

namespace {

using contracts::Roster;
using contracts::RosterEntry;
using crypto::Role;
using std::chrono::days;
using std::chrono::hours;

constexpr unsigned kPublicMode = 0644;
constexpr std::size_t kLargestPem = std::size_t{1} << 16U;
constexpr std::size_t kLargestRoster = std::size_t{1} << 20U;
constexpr std::size_t kMostNameParts = 4;
// Certificates begin a little in the past: the clocks of sites are not exact.
constexpr hours kClockSlack{1};
constexpr hours kAuthoritySlack{24};

bool HasPlace(Role role) { return role == Role::kSite || role == Role::kAggregator; }

Status Refuse(const std::string& what) { return Error(StatusCode::kInvalidArgument, what); }

// Makes a folder that nothing is in yet.
Status MakeEmptyFolder(const std::string& folder) {
  RETURN_IF_ERROR(CreateFolders(folder));
  std::error_code error;
  const bool empty = std::filesystem::is_empty(folder, error);
  if (error) {
    return ErrnoError(error.value(), "opening folder `" + folder + "`");
  }
  if (!empty) {
    return Error(StatusCode::kAlreadyExists,
                 "folder `" + folder + "` is not empty; choose another, or empty it yourself");
  }
  return OkStatus();
}

Status WritePublic(const std::string& folder, std::string_view name, std::string_view text) {
  return WriteFileDurably(JoinPath(folder, name), AsBytes(text), kPublicMode);
}

StatusOr<FileHandle> Lock(const std::string& folder) {
  return LockFile(JoinPath(folder, "lock"), "another `domicile ca`");
}

Status CheckPlaced(const IssueRequest& request) {
  const std::string role(crypto::RoleName(request.role));
  if (request.jurisdiction.empty() || request.organisation.empty()) {
    return Refuse("a " + role + " needs --jurisdiction and --org");
  }
  for (const std::string& code : request.control) {
    if (const auto place = policy::Jurisdiction::Parse(code); !place.ok()) {
      return Annotate(place.status(), "--control");
    }
  }
  if (const auto place = policy::Jurisdiction::Parse(request.jurisdiction); !place.ok()) {
    return Annotate(place.status(), "--jurisdiction");
  }
  if (const auto name = OrganisationId::Parse(request.organisation); !name.ok()) {
    return Annotate(name.status(), "--org");
  }
  if (request.role == Role::kAggregator && request.hosts.empty()) {
    return Refuse("an aggregator needs --host with each DNS name and address that sites dial");
  }
  if (request.role == Role::kSite && !request.hosts.empty()) {
    return Refuse("a site opens no port and needs no --host");
  }
  return OkStatus();
}

Status CheckRequest(const IssueRequest& request) {
  if (request.role == Role::kNone) {
    return Refuse("name one of --site, --aggregator, --operator, --auditor");
  }
  if (const auto name = SiteId::Parse(request.name); !name.ok()) {
    return Refuse("`" + Visible(request.name) +
                  "` is not a name: 1 to 63 of a-z, 0-9 and inner hyphens");
  }
  if (request.days < 1 || request.days > crypto::kLongestCertificate.count()) {
    return Refuse("--days must be from 1 to 90");
  }
  if (HasPlace(request.role)) {
    return CheckPlaced(request);
  }
  if (!request.jurisdiction.empty() || !request.organisation.empty() || !request.control.empty() ||
      !request.hosts.empty()) {
    return Refuse("an operator or auditor has no --jurisdiction, --org, --control or --host");
  }
  return OkStatus();
}

RosterEntry EntryOf(const IssueRequest& request) {
  RosterEntry entry;
  entry.role = request.role;
  entry.name = request.name;
  entry.jurisdiction = request.jurisdiction;
  entry.organisation = request.organisation;
  entry.control_jurisdictions = request.control;
  if (HasPlace(request.role) && entry.control_jurisdictions.empty()) {
    entry.control_jurisdictions = {request.jurisdiction};
  }
  std::vector<std::string>& control = entry.control_jurisdictions;
  std::sort(control.begin(), control.end());
  control.erase(std::unique(control.begin(), control.end()), control.end());
  return entry;
}

crypto::CertificateRequest CertificateOf(const IssueRequest& request, const std::string& federation,
                                         WallTime now) {
  crypto::CertificateRequest made;
  made.spiffe = {.federation = federation,
                 .role = request.role,
                 .jurisdiction = request.jurisdiction,
                 .name = request.name};
  made.server = request.role == Role::kAggregator;
  made.client = !made.server;
  for (const std::string& host : request.hosts) {
    (crypto::IsAddress(host) ? made.ip_addresses : made.dns_names).push_back(host);
  }
  made.not_before = now - kClockSlack;
  made.not_after = made.not_before + days(request.days);
  return made;
}

// Puts an entry where the order of role and name wants it.
void Insert(std::vector<RosterEntry>& entries, RosterEntry entry) {
  const auto at = std::upper_bound(entries.begin(), entries.end(), entry,
                                   [](const RosterEntry& a, const RosterEntry& b) {
                                     return std::pair(a.role, a.name) < std::pair(b.role, b.name);
                                   });
  entries.insert(at, std::move(entry));
}

// The entry that a renewal goes on from: the same party in the same place.
Status CheckRenewal(const RosterEntry* old, const RosterEntry& entry, bool renew) {
  const std::string title =
      "`" + std::string(crypto::RoleName(entry.role)) + "/" + entry.name + "`";
  if (old == nullptr) {
    return renew ? Refuse(title + " is not in the roster: issue it without --renew") : OkStatus();
  }
  if (!renew) {
    return Error(StatusCode::kAlreadyExists,
                 title +
                     " is in the roster already: --renew makes a new TLS key for it and keeps "
                     "its log key; `domicile ca revoke` removes it");
  }
  if (old->jurisdiction != entry.jurisdiction || old->organisation != entry.organisation) {
    return Refuse(title + " is in the roster with jurisdiction `" + old->jurisdiction +
                  "` and organisation `" + old->organisation +
                  "`: a renewal cannot change them; revoke it first");
  }
  return OkStatus();
}

}  // namespace

StatusOr<Authority> Authority::Create(const std::string& folder, std::string_view federation,
                                      days life, WallTime now, Random& random) {
  now = std::chrono::floor<std::chrono::seconds>(now);
  ASSIGN_OR_RETURN(const crypto::Authority made,
                   crypto::MakeAuthority(federation, now - kAuthoritySlack, now + life));
  RETURN_IF_ERROR(MakeEmptyFolder(folder));
  ASSIGN_OR_RETURN(FileHandle lock, Lock(folder));
  ASSIGN_OR_RETURN(crypto::NoteSigner roster_key,
                   crypto::NoteSigner::Generate(contracts::RosterKeyName(federation), random));
  RETURN_IF_ERROR(crypto::WriteKeyFile(JoinPath(folder, "root.key"), made.root_key_pem));
  RETURN_IF_ERROR(WritePublic(folder, "root.pem", made.root_pem));
  RETURN_IF_ERROR(crypto::WriteKeyFile(JoinPath(folder, "issuing.key"), made.issuing_key_pem));
  RETURN_IF_ERROR(WritePublic(folder, "issuing.pem", made.issuing_pem));
  RETURN_IF_ERROR(crypto::WriteNoteKey(JoinPath(folder, "roster.key"), roster_key));
  RETURN_IF_ERROR(
      crypto::WriteNotePublicKey(JoinPath(folder, "roster.pub"), roster_key.Verifier()));
  Authority authority(folder, std::move(lock), std::move(roster_key));
  Roster first{
      .federation = std::string(federation), .version = 0, .valid_until = {}, .entries = {}};
  ASSIGN_OR_RETURN(std::string note, authority.SignNext(first, now));
  RETURN_IF_ERROR(authority.Keep(std::move(first), std::move(note)));
  return authority;
}

StatusOr<Authority> Authority::Open(const std::string& folder) {
  if (!FileExists(JoinPath(folder, "roster.note"))) {
    return Error(StatusCode::kNotFound, "`" + folder +
                                            "` is not the folder of an authority: `domicile ca "
                                            "init` makes one");
  }
  ASSIGN_OR_RETURN(FileHandle lock, Lock(folder));
  ASSIGN_OR_RETURN(crypto::NoteSigner roster_key,
                   crypto::ReadNoteKey(JoinPath(folder, "roster.key")));
  ASSIGN_OR_RETURN(std::string note, ReadFile(JoinPath(folder, "roster.note"), kLargestRoster));
  const crypto::NoteVerifier key = roster_key.Verifier();
  const auto opened = crypto::OpenNote(note, std::span(&key, 1));
  if (!opened.ok()) {
    return Annotate(opened.status(), "`" + JoinPath(folder, "roster.note") + "`");
  }
  // Not OpenRoster: a roster that has expired is just what is to be renewed here.
  ASSIGN_OR_RETURN(Roster roster, contracts::RosterFromText(opened->text));
  Authority authority(folder, std::move(lock), std::move(roster_key));
  authority.roster_ = std::move(roster);
  authority.roster_note_ = std::move(note);
  return authority;
}

StatusOr<std::string> Authority::SignNext(Roster& next, WallTime now) const {
  next.version += 1;
  next.valid_until = std::chrono::floor<std::chrono::seconds>(now) + kRosterLife;
  RETURN_IF_ERROR(contracts::CheckRoster(next));
  return roster_key_.Sign(contracts::RosterText(next));
}

Status Authority::Keep(Roster next, std::string note) {
  RETURN_IF_ERROR(WritePublic(folder_, "roster.note", note));
  roster_ = std::move(next);
  roster_note_ = std::move(note);
  return OkStatus();
}

StatusOr<Issued> Authority::Issue(const IssueRequest& request, const std::string& out, WallTime now,
                                  Random& random) {
  RETURN_IF_ERROR(CheckRequest(request));
  now = std::chrono::floor<std::chrono::seconds>(now);
  RosterEntry entry = EntryOf(request);
  const RosterEntry* const old = roster_.Find(entry.role, entry.name);
  RETURN_IF_ERROR(CheckRenewal(old, entry, request.renew));

  const crypto::CertificateRequest wanted = CertificateOf(request, roster_.federation, now);
  ASSIGN_OR_RETURN(const crypto::SecretBytes issuing_key,
                   crypto::ReadKeyFile(JoinPath(folder_, "issuing.key")));
  ASSIGN_OR_RETURN(const std::string issuing_pem,
                   ReadFile(JoinPath(folder_, "issuing.pem"), kLargestPem));
  ASSIGN_OR_RETURN(const std::string root_pem,
                   ReadFile(JoinPath(folder_, "root.pem"), kLargestPem));
  ASSIGN_OR_RETURN(const crypto::IssuedCertificate made,
                   crypto::Issue(issuing_key.Text(), issuing_pem, wanted));
  std::optional<crypto::NoteSigner> log_key;
  if (old != nullptr) {
    // The current key stays valid beside the new one until the next renewal.
    entry = *old;
    entry.tls_keys = {old->tls_keys.back(), made.key};
  } else {
    entry.tls_keys = {made.key};
    if (HasPlace(entry.role)) {
      ASSIGN_OR_RETURN(
          log_key, crypto::NoteSigner::Generate(
                       contracts::LogKeyName(roster_.federation, entry.role, entry.name), random));
      entry.log_key = log_key->Verifier().Print();
    }
  }
  Roster next = roster_;
  std::erase_if(next.entries,
                [&](const RosterEntry& e) { return e.role == entry.role && e.name == entry.name; });
  Insert(next.entries, entry);
  ASSIGN_OR_RETURN(std::string note, SignNext(next, now));

  // The folder first: a certificate that no roster lists is worth nothing, while a roster that
  // lists a key nobody holds would have to be taken back.
  RETURN_IF_ERROR(MakeEmptyFolder(out));
  RETURN_IF_ERROR(crypto::WriteKeyFile(JoinPath(out, "tls.key"), made.key_pem));
  RETURN_IF_ERROR(WritePublic(out, "tls.pem", made.chain_pem));
  RETURN_IF_ERROR(WritePublic(out, "root.pem", root_pem));
  if (log_key) {
    RETURN_IF_ERROR(crypto::WriteNoteKey(JoinPath(out, "log.key"), *log_key));
  }
  if (!entry.log_key.empty()) {
    RETURN_IF_ERROR(WritePublic(out, "log.pub", entry.log_key + "\n"));
  }
  RETURN_IF_ERROR(crypto::WriteNotePublicKey(JoinPath(out, "roster.pub"), roster_key_.Verifier()));
  RETURN_IF_ERROR(WritePublic(out, "roster.note", note));
  RETURN_IF_ERROR(Keep(std::move(next), std::move(note)));
  return Issued{.name = wanted.spiffe,
                .tls_key = made.key,
                .not_after = wanted.not_after,
                .roster_version = roster_.version};
}

Status Authority::Revoke(Role role, std::string_view name, WallTime now) {
  if (roster_.Find(role, name) == nullptr) {
    return Refuse("`" + std::string(crypto::RoleName(role)) + "/" + Visible(name) +
                  "` is not in the roster");
  }
  Roster next = roster_;
  std::erase_if(next.entries,
                [&](const RosterEntry& e) { return e.role == role && e.name == name; });
  ASSIGN_OR_RETURN(std::string note, SignNext(next, now));
  return Keep(std::move(next), std::move(note));
}

Status Authority::RenewRoster(WallTime now) {
  Roster next = roster_;
  ASSIGN_OR_RETURN(std::string note, SignNext(next, now));
  return Keep(std::move(next), std::move(note));
}

std::string PublicKeyPath(const std::string& path) {
  static constexpr std::string_view kEnding = ".key";
  const bool ends = path.ends_with(kEnding);
  return path.substr(0, path.size() - (ends ? kEnding.size() : 0)) + ".pub";
}

StatusOr<crypto::NoteVerifier> MakeApprover(std::string_view name, const std::string& path,
                                            Random& random) {
  const std::vector<std::string_view> parts = Split(name, '/');
  const bool fits = parts.size() <= kMostNameParts &&
                    std::all_of(parts.begin(), parts.end(),
                                [](std::string_view part) { return SiteId::Parse(part).ok(); });
  if (!fits) {
    return Refuse("`" + Visible(name) +
                  "` is not a person's name: one to four names of a-z, 0-9 and inner hyphens, "
                  "with `/` between, such as `charite/dpo`");
  }
  const std::string public_path = PublicKeyPath(path);
  if (FileExists(public_path)) {
    return Error(StatusCode::kAlreadyExists, "`" + public_path + "` exists; choose another name");
  }
  ASSIGN_OR_RETURN(const crypto::NoteSigner signer,
                   crypto::NoteSigner::Generate(name, random, crypto::NoteKeyKind::kCosigner));
  RETURN_IF_ERROR(crypto::WriteNoteKey(path, signer));
  RETURN_IF_ERROR(crypto::WriteNotePublicKey(public_path, signer.Verifier()));
  return signer.Verifier();
}

}  // namespace domicile::cli

#include "contracts/identity.h"

#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "crypto/key_file.h"

namespace domicile::contracts {

namespace {

using crypto::Role;

constexpr std::size_t kLargestPem = std::size_t{1} << 16U;
constexpr std::size_t kLargestKeyText = 1024;
constexpr std::size_t kLargestRoster = std::size_t{1} << 20U;

bool HasLog(Role role) { return role == Role::kSite || role == Role::kAggregator; }

Status Refuse(const std::string& what) {
  return Error(StatusCode::kUnauthenticated, "identity: " + what);
}

// Reads `file` of the folder, or says which folder lacks it and who makes it.
StatusOr<std::string> ReadPart(const std::string& folder, std::string_view file,
                               std::size_t max_bytes) {
  auto text = ReadFile(JoinPath(folder, file), max_bytes);
  if (!text.ok()) {
    return Annotate(text.status(), "identity folder, made by `domicile ca issue`");
  }
  return text;
}

Status CheckCertificate(const IdentityFiles& files, Role role, WallTime now, Identity& identity) {
  RETURN_IF_ERROR(Annotate(crypto::CheckKeyMatches(files.tls_key.Text(), files.tls_chain),
                           "identity: tls.key and tls.pem"));
  const auto read = crypto::ReadCertificate(files.tls_chain);
  if (!read.ok()) {
    return Annotate(read.status(), "identity: tls.pem");
  }
  const crypto::CertificateFacts& facts = *read;
  if (facts.spiffe.role != role) {
    return Refuse("tls.pem is of the " + std::string(crypto::RoleName(facts.spiffe.role)) + " `" +
                  facts.spiffe.name + "`, and this program needs that of a role `" +
                  std::string(crypto::RoleName(role)) + "`");
  }
  auto verified = crypto::VerifyPeerCertificate(
      files.tls_chain, files.root,
      {.federation = facts.spiffe.federation, .is_server = role == Role::kAggregator, .now = now});
  if (!verified.ok()) {
    return Annotate(verified.status(),
                    "identity: tls.pem (until " + PrintTime(facts.not_after) + ") with root.pem");
  }
  identity.certificate = *std::move(verified);
  return OkStatus();
}

Status CheckLogKey(const IdentityFiles& files, Identity& identity) {
  if (!HasLog(identity.Name().role)) {
    return OkStatus();
  }
  auto signer = crypto::NoteSigner::Parse(StripWhitespace(files.log_key.Text()));
  if (!signer.ok()) {
    return Annotate(signer.status(), "identity: log.key");
  }
  if (signer->Verifier().Print() != identity.entry.log_key) {
    return Refuse("log.key is not the key that the roster lists for `" +
                  PrintSpiffe(identity.Name()) +
                  "`: put the right log.key back, or have the "
                  "federation register a new one");
  }
  identity.log_key = *std::move(signer);
  return OkStatus();
}

Status CheckEntry(const IdentityFiles& files, WallTime now, Identity& identity) {
  auto key = crypto::NoteVerifier::Parse(StripWhitespace(files.roster_key));
  if (!key.ok()) {
    return Annotate(key.status(), "identity: roster.pub");
  }
  identity.roster_key = *std::move(key);
  auto roster = OpenRoster(files.roster_note, identity.roster_key, now, 1);
  if (!roster.ok()) {
    return Annotate(roster.status(), "identity: roster.note");
  }
  identity.roster = *std::move(roster);
  const PeerCheck check = CheckPeer(identity.roster, identity.certificate, identity.Name().role);
  if (check.reason != policy::Reason::kNone) {
    return Error(StatusCode::kFailedPrecondition,
                 "identity: roster.note (version " + std::to_string(identity.roster.version) +
                     ") does not list `" + PrintSpiffe(identity.Name()) +
                     "` with this place and this key (" + std::string(policy::Code(check.reason)) +
                     "): take the newest roster (`domicile ca roster`) or renew the certificate");
  }
  identity.entry = *check.entry;
  return OkStatus();
}

}  // namespace

StatusOr<Identity> CheckIdentity(IdentityFiles files, Role role, WallTime now) {
  Identity identity;
  RETURN_IF_ERROR(CheckCertificate(files, role, now, identity));
  RETURN_IF_ERROR(CheckEntry(files, now, identity));
  RETURN_IF_ERROR(CheckLogKey(files, identity));
  identity.files = std::move(files);
  return identity;
}

StatusOr<Identity> LoadIdentity(const std::string& folder, Role role, WallTime now) {
  IdentityFiles files;
  ASSIGN_OR_RETURN(files.tls_key, crypto::ReadKeyFile(JoinPath(folder, "tls.key")));
  ASSIGN_OR_RETURN(files.tls_chain, ReadPart(folder, "tls.pem", kLargestPem));
  ASSIGN_OR_RETURN(files.root, ReadPart(folder, "root.pem", kLargestPem));
  if (HasLog(role)) {
    ASSIGN_OR_RETURN(files.log_key, crypto::ReadKeyFile(JoinPath(folder, "log.key")));
  }
  ASSIGN_OR_RETURN(files.roster_note, ReadPart(folder, "roster.note", kLargestRoster));
  ASSIGN_OR_RETURN(files.roster_key, ReadPart(folder, "roster.pub", kLargestKeyText));
  auto identity = CheckIdentity(std::move(files), role, now);
  if (!identity.ok()) {
    return Annotate(identity.status(), "`" + folder + "`");
  }
  return identity;
}

}  // namespace domicile::contracts

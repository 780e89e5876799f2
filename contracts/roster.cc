#include "contracts/roster.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/ids.h"
#include "base/json.h"
#include "base/text.h"
#include "policy/language/jurisdiction.h"

namespace domicile::contracts {

namespace {

using crypto::Role;

constexpr std::array kRoles = {Role::kSite, Role::kAggregator, Role::kOperator, Role::kAuditor};
constexpr std::size_t kMostTlsKeys = 2;  // current and next
constexpr std::size_t kMostControllers = 16;

bool HasPlace(Role role) { return role == Role::kSite || role == Role::kAggregator; }

std::string Title(const RosterEntry& entry) {
  return std::string(crypto::RoleName(entry.role)) + "/" + Visible(entry.name);
}

Status Refuse(const RosterEntry& entry, std::string_view field, std::string_view why) {
  return Error(StatusCode::kInvalidArgument, "roster: entry `" + Title(entry) + "`: `" +
                                                 std::string(field) + "` " + std::string(why));
}

Status CheckPlace(const RosterEntry& entry) {
  const auto place = policy::Jurisdiction::Parse(entry.jurisdiction);
  if (!place.ok()) {
    return Refuse(entry, "jurisdiction", Message(place.status()));
  }
  const std::vector<std::string>& control = entry.control_jurisdictions;
  if (control.size() > kMostControllers) {
    return Refuse(entry, "control", "lists more than 16 places");
  }
  for (const std::string& code : control) {
    if (const auto parsed = policy::Jurisdiction::Parse(code); !parsed.ok()) {
      return Refuse(entry, "control", Message(parsed.status()));
    }
  }
  if (!std::is_sorted(control.begin(), control.end()) ||
      std::adjacent_find(control.begin(), control.end()) != control.end()) {
    return Refuse(entry, "control", "must be sorted, each place once");
  }
  if (const auto parsed = OrganisationId::Parse(entry.organisation); !parsed.ok()) {
    return Refuse(entry, "organisation", Message(parsed.status()));
  }
  return OkStatus();
}

Status CheckLogKey(const Roster& roster, const RosterEntry& entry) {
  const auto key = crypto::NoteVerifier::Parse(entry.log_key);
  const std::string wanted = LogKeyName(roster.federation, entry.role, entry.name);
  if (!key.ok() || key->Kind() != crypto::NoteKeyKind::kEd25519 || key->name() != wanted) {
    return Refuse(entry, "log_key", "must be an Ed25519 note key named `" + wanted + "`");
  }
  return OkStatus();
}

Status CheckEntry(const Roster& roster, const RosterEntry& entry) {
  if (std::find(kRoles.begin(), kRoles.end(), entry.role) == kRoles.end()) {
    return Refuse(entry, "role", "must be site, aggregator, operator or auditor");
  }
  if (const auto name = SiteId::Parse(entry.name); !name.ok()) {
    return Refuse(entry, "name", "must be 1 to 63 of a-z, 0-9 and inner hyphens");
  }
  if (entry.tls_keys.empty() || entry.tls_keys.size() > kMostTlsKeys) {
    return Refuse(entry, "tls_keys", "must list one or two keys");
  }
  if (HasPlace(entry.role)) {
    RETURN_IF_ERROR(CheckPlace(entry));
    return CheckLogKey(roster, entry);
  }
  if (!entry.jurisdiction.empty() || !entry.control_jurisdictions.empty() ||
      !entry.organisation.empty() || !entry.log_key.empty()) {
    return Refuse(entry, "jurisdiction", "and log key belong to sites and aggregators only");
  }
  return OkStatus();
}

Role RoleFromName(std::string_view name) {
  const auto found = std::find_if(kRoles.begin(), kRoles.end(),
                                  [&](Role role) { return crypto::RoleName(role) == name; });
  return found == kRoles.end() ? Role::kNone : *found;
}

Json EntryJson(const RosterEntry& entry) {
  JsonObject object;
  object["role"] = crypto::RoleName(entry.role);
  object["name"] = entry.name;
  JsonArray keys;
  for (const Digest& key : entry.tls_keys) {
    keys.emplace_back(PrintHex(key));
  }
  object["tls_keys"] = std::move(keys);
  if (HasPlace(entry.role)) {
    object["jurisdiction"] = entry.jurisdiction;
    JsonArray control;
    for (const std::string& code : entry.control_jurisdictions) {
      control.emplace_back(code);
    }
    object["control"] = std::move(control);
    object["organisation"] = entry.organisation;
    object["log_key"] = entry.log_key;
  }
  return object;
}

StatusOr<RosterEntry> EntryFromJson(const Json& json, const std::string& where) {
  JsonReader reader(json, where);
  RosterEntry entry;
  entry.role = RoleFromName(reader.String("role"));
  if (entry.role == Role::kNone) {
    reader.Fail("role", "must be site, aggregator, operator or auditor");
  }
  entry.name = reader.String("name");
  for (const std::string& hex : reader.Strings("tls_keys")) {
    const auto digest = ParseDigest(hex);
    if (!digest.ok() || digest->IsZero()) {
      reader.Fail("tls_keys", "must be digests of 64 hexadecimal digits, not all zero");
      break;
    }
    entry.tls_keys.push_back(*digest);
  }
  if (HasPlace(entry.role)) {
    entry.jurisdiction = reader.String("jurisdiction");
    entry.control_jurisdictions = reader.Strings("control");
    entry.organisation = reader.String("organisation");
    entry.log_key = reader.String("log_key");
  }
  RETURN_IF_ERROR(reader.Finish());
  return entry;
}

}  // namespace

std::string RosterKeyName(std::string_view federation) {
  return std::string(federation) + "/roster";
}

std::string LogKeyName(std::string_view federation, Role role, std::string_view name) {
  return std::string(federation) + "/" + std::string(crypto::RoleName(role)) + "/" +
         std::string(name) + "/log";
}

const RosterEntry* Roster::Find(Role role, std::string_view name) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const RosterEntry& entry) {
    return entry.role == role && entry.name == name;
  });
  return found == entries.end() ? nullptr : &*found;
}

Status CheckRoster(const Roster& roster) {
  RETURN_IF_ERROR(Annotate(crypto::CheckFederationName(roster.federation), "roster"));
  if (roster.version == 0 || roster.version > std::uint64_t{kLargestJsonInteger}) {
    return Error(StatusCode::kInvalidArgument, "roster: `version` counts from 1 to 2^53 - 1");
  }
  std::set<Digest> tls_keys;
  const RosterEntry* last = nullptr;
  for (const RosterEntry& entry : roster.entries) {
    RETURN_IF_ERROR(CheckEntry(roster, entry));
    if (last != nullptr && std::pair(last->role, last->name) >= std::pair(entry.role, entry.name)) {
      return Refuse(entry, "name", "must come once, in order of role and name");
    }
    last = &entry;
    for (const Digest& key : entry.tls_keys) {
      // One key for two names would make the certificate, not the key, say who somebody is.
      if (!tls_keys.insert(key).second) {
        return Refuse(entry, "tls_keys", "holds a key that the roster lists already");
      }
    }
  }
  return OkStatus();
}

std::string RosterText(const Roster& roster) {
  JsonArray entries;
  for (const RosterEntry& entry : roster.entries) {
    entries.push_back(EntryJson(entry));
  }
  JsonObject object;
  object["type"] = "roster";
  object["v"] = 1;
  object["federation"] = roster.federation;
  object["version"] = roster.version;
  object["valid_until"] = PrintTime(roster.valid_until);
  object["entries"] = std::move(entries);
  return PrintJson(object) + "\n";
}

StatusOr<Roster> RosterFromText(std::string_view text) {
  if (!text.ends_with('\n')) {
    return Error(StatusCode::kInvalidArgument, "roster: does not end in a newline");
  }
  auto json = ParseCanonicalJson(text.substr(0, text.size() - 1));
  if (!json.ok()) {
    return Annotate(json.status(), "roster");
  }
  JsonReader reader(*json, "roster");
  Roster roster;
  if (reader.String("type") != "roster") {
    reader.Fail("type", "must be `roster`");
  }
  reader.Int("v", 1, 1);
  roster.federation = reader.String("federation");
  roster.version = static_cast<std::uint64_t>(reader.Int("version", 1, kLargestJsonInteger));
  const std::string until_text = reader.String("valid_until");
  const auto until = ParseTime(until_text);
  if (!until.ok() || PrintTime(*until) != until_text) {
    reader.Fail("valid_until", "must be a UTC time with milliseconds");
  } else {
    roster.valid_until = *until;
  }
  const JsonArray& entries = reader.Array("entries");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto entry = EntryFromJson(entries[i], "roster.entries[" + std::to_string(i) + "]");
    if (!entry.ok()) {
      reader.Merge(entry.status());
      break;
    }
    roster.entries.push_back(*std::move(entry));
  }
  RETURN_IF_ERROR(reader.Finish());
  RETURN_IF_ERROR(CheckRoster(roster));
  return roster;
}

StatusOr<Roster> OpenRoster(std::string_view note, const crypto::NoteVerifier& key, WallTime now,
                            std::uint64_t smallest_version) {
  const auto opened = crypto::OpenNote(note, std::span(&key, 1));
  if (!opened.ok()) {
    return Annotate(opened.status(), "roster, to be signed by `" + key.name() + "`");
  }
  ASSIGN_OR_RETURN(Roster roster, RosterFromText(opened->text));
  if (key.name() != RosterKeyName(roster.federation)) {
    return Error(StatusCode::kInvalidArgument, "roster: of the federation `" + roster.federation +
                                                   "`, but signed by `" + key.name() + "`");
  }
  if (roster.version < smallest_version) {
    return Error(StatusCode::kFailedPrecondition,
                 "roster: version " + std::to_string(roster.version) + " is older than version " +
                     std::to_string(smallest_version) + ", which was seen already");
  }
  if (roster.valid_until <= now) {
    return Error(StatusCode::kFailedPrecondition,
                 "roster: version " + std::to_string(roster.version) + " was valid until " +
                     PrintTime(roster.valid_until) +
                     "; ask the federation for a newer one (`domicile ca roster --renew`)");
  }
  return roster;
}

PeerCheck CheckPeer(const Roster& roster, const crypto::PeerIdentity& peer, Role wanted) {
  using policy::Reason;
  if (wanted == Role::kNone || peer.spiffe.role != wanted) {
    return {.reason = Reason::kRole, .entry = nullptr};
  }
  const RosterEntry* const entry = roster.Find(wanted, peer.spiffe.name);
  if (entry == nullptr || peer.spiffe.federation != roster.federation) {
    return {.reason = Reason::kNotInRoster, .entry = nullptr};
  }
  if (entry->jurisdiction != peer.spiffe.jurisdiction) {
    return {.reason = Reason::kJurisdictionMismatch, .entry = nullptr};
  }
  if (peer.key.IsZero() || std::find(entry->tls_keys.begin(), entry->tls_keys.end(), peer.key) ==
                               entry->tls_keys.end()) {
    return {.reason = Reason::kNotInRoster, .entry = nullptr};
  }
  return {.reason = Reason::kNone, .entry = entry};
}

}  // namespace domicile::contracts

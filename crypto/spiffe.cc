#include <algorithm>

#include "base/ids.h"
#include "base/text.h"
#include "crypto/certificate.h"

namespace domicile::crypto {

namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr std::size_t kLongestUri = 2048;         // SPIFFE-ID, section 2.3
constexpr std::size_t kLongestTrustDomain = 255;  // section 2.1
constexpr std::size_t kLongestFederation = 253;   // RFC 1035: as a DNS name

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

Status Refuse(std::string_view uri, std::string_view rule) {
  return Error(
      StatusCode::kInvalidArgument,
      "`" + Visible(uri, 120) + "` is not a SPIFFE name of this platform: " + std::string(rule));
}

Status CheckSegment(std::string_view uri, std::string_view segment) {
  if (segment.empty()) {
    return Refuse(uri, "an empty path segment");
  }
  if (segment == "." || segment == "..") {
    return Refuse(uri, "a relative path segment");
  }
  const bool plain = std::all_of(segment.begin(), segment.end(), [](char c) {
    return IsLower(c) || IsUpper(c) || IsDigit(c) || c == '-' || c == '.' || c == '_';
  });
  if (!plain) {
    return Refuse(uri, "a path segment holds something else than letters, digits, `.`, `-`, `_`");
  }
  return OkStatus();
}

constexpr Role kRoles[] = {Role::kSite, Role::kAggregator, Role::kOperator, Role::kAuditor};

Role RoleFromName(std::string_view name) {
  for (const Role role : kRoles) {
    if (RoleName(role) == name) {
      return role;
    }
  }
  return Role::kNone;
}

bool HasPlace(Role role) { return role == Role::kSite || role == Role::kAggregator; }

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kNone:
      return "none";
    case Role::kSite:
      return "site";
    case Role::kAggregator:
      return "aggregator";
    case Role::kOperator:
      return "operator";
    case Role::kAuditor:
      return "auditor";
  }
  return "none";
}

StatusOr<SpiffeForm> ParseSpiffeForm(std::string_view uri) {
  if (uri.size() > kLongestUri) {
    return Refuse(uri, "longer than 2048 bytes");
  }
  if (!uri.starts_with(kScheme)) {
    return Refuse(uri, "it does not begin with `spiffe://`");
  }
  std::string_view rest = uri.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  const std::string_view domain = rest.substr(0, slash);
  const bool plain = std::all_of(domain.begin(), domain.end(), [](char c) {
    return IsLower(c) || IsDigit(c) || c == '-' || c == '.' || c == '_';
  });
  if (domain.empty() || domain.size() > kLongestTrustDomain || !plain) {
    // This refuses upper case, user names, ports, queries and percent signs alike.
    return Refuse(uri, "the trust domain is not 1 to 255 of a-z, 0-9, `.`, `-`, `_`");
  }
  if (slash == rest.npos) {
    return Refuse(uri, "no path");
  }
  SpiffeForm form{.trust_domain = std::string(domain), .segments = {}};
  for (const std::string_view segment : Split(rest.substr(slash + 1), '/')) {
    RETURN_IF_ERROR(CheckSegment(uri, segment));
    form.segments.emplace_back(segment);
  }
  return form;
}

bool HasJurisdictionForm(std::string_view text) {
  if (text.size() < 2 || !IsUpper(text[0]) || !IsUpper(text[1])) {
    return false;
  }
  if (text.size() == 2) {
    return true;
  }
  // ISO 3166-2: up to three letters or digits after the hyphen.
  const std::string_view part = text.substr(3);
  return text[2] == '-' && !part.empty() && part.size() <= 3 &&
         std::all_of(part.begin(), part.end(), [](char c) { return IsUpper(c) || IsDigit(c); });
}

Status CheckFederationName(std::string_view text) {
  bool fits = !text.empty() && text.size() <= kLongestFederation;
  for (const std::string_view label : Split(text, '.')) {
    fits = fits && SiteId::Parse(label).ok();  // a site name has the form of a DNS label
  }
  if (!fits) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + Visible(text) +
                     "` is not a federation name: a DNS name in lower case, "
                     "such as `health.example`, at most 253 characters");
  }
  return OkStatus();
}

std::string PrintSpiffe(const SpiffeName& name) {
  std::string uri = std::string(kScheme) + name.federation;
  if (!name.jurisdiction.empty()) {
    uri += "/jurisdiction/" + name.jurisdiction;
  }
  return uri + "/" + std::string(RoleName(name.role)) + "/" + name.name;
}

StatusOr<SpiffeName> ParseSpiffe(std::string_view uri) {
  ASSIGN_OR_RETURN(const SpiffeForm form, ParseSpiffeForm(uri));
  if (!CheckFederationName(form.trust_domain).ok()) {
    return Refuse(uri, "the trust domain is not a DNS name");
  }
  const std::vector<std::string>& path = form.segments;
  const bool placed = path.size() == 4 && path[0] == "jurisdiction";
  if (!placed && path.size() != 2) {
    return Refuse(uri, "the path is neither ROLE/NAME nor jurisdiction/CODE/ROLE/NAME");
  }
  SpiffeName name;
  name.federation = form.trust_domain;
  name.role = RoleFromName(path[path.size() - 2]);
  name.name = path.back();
  if (placed) {
    name.jurisdiction = path[1];
    if (!HasJurisdictionForm(name.jurisdiction)) {
      return Refuse(uri, "the jurisdiction is not an ISO 3166-1 or 3166-2 code");
    }
  }
  if (name.role == Role::kNone) {
    return Refuse(uri, "the role is none of site, aggregator, operator, auditor");
  }
  if (HasPlace(name.role) != placed) {
    return Refuse(uri, placed ? "an operator or auditor has no jurisdiction"
                              : "a site or aggregator needs a jurisdiction");
  }
  if (!SiteId::Parse(name.name).ok()) {
    return Refuse(uri, "the name is not 1 to 63 of a-z, 0-9 and inner hyphens");
  }
  return name;
}

}  // namespace domicile::crypto

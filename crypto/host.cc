#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "crypto/certificate.h"
#include "crypto/internal/x509.h"

namespace domicile::crypto {

namespace {

using internal::NameKind;
using internal::SubjectName;

constexpr std::size_t kMostNamesShown = 16;

// ASCII only, whatever the locale: names in certificates are A-labels.
std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

std::string Describe(const SubjectName& name) {
  switch (name.kind) {
    case NameKind::kUri:
      return "URI `" + Visible(name.text, 120) + "`";
    case NameKind::kDns:
      return "DNS `" + Visible(name.text, 260) + "`";
    case NameKind::kIp:
      return "IP `" + internal::PrintAddress(name.text) + "`";
    case NameKind::kEmail:
      return "e-mail `" + Visible(name.text, 120) + "`";
    case NameKind::kOther:
      break;
  }
  return "a name of another kind";
}

Status Refuse(std::string_view host, bool is_address, const std::vector<SubjectName>& names) {
  std::vector<std::string> found;
  for (const SubjectName& name : names) {
    if (found.size() == kMostNamesShown) {
      found.emplace_back("...");
      break;
    }
    found.push_back(Describe(name));
  }
  return Error(StatusCode::kUnauthenticated,
               "the server's certificate is not for " + std::string(is_address ? "IP" : "DNS") +
                   " `" + Visible(host, 260) + "`, which was dialled; it names " +
                   (found.empty() ? "nothing" : Join(found, ", ")) +
                   " (the common name is never used, and wildcards are not allowed)");
}

}  // namespace

bool IsAddress(std::string_view host) { return !internal::ParseAddress(host).empty(); }

Status CheckHost(std::string_view leaf_pem, std::string_view host) {
  const auto chain = internal::ParseCertificates(leaf_pem, "server certificate");
  if (!chain.ok()) {
    return Error(StatusCode::kUnauthenticated, Message(chain.status()));
  }
  const auto names = internal::SubjectNamesOf(chain->front().get());
  if (!names.ok()) {
    return Error(StatusCode::kUnauthenticated, Message(names.status()));
  }
  const Bytes address = internal::ParseAddress(host);
  std::string wanted = LowerCase(host);
  if (wanted.ends_with('.')) {
    wanted.pop_back();  // the root label of a fully qualified name is not written in certificates
  }
  const bool matches = !wanted.empty() && wanted.find('*') == wanted.npos &&
                       std::any_of(names->begin(), names->end(), [&](const SubjectName& name) {
                         return address.empty()
                                    ? name.kind == NameKind::kDns && LowerCase(name.text) == wanted
                                    : name.kind == NameKind::kIp && name.text == AsText(address);
                       });
  if (!matches) {
    return Refuse(host, !address.empty(), *names);
  }
  return OkStatus();
}

}  // namespace domicile::crypto

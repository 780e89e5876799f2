// A site's policy in the words of other tools: DPV and ODRL for governance, Cedar for
// authorisation. One way only: none of them can be read back, and none of them decides here. What a
// target cannot say is listed in the output itself. Page: docs/formats/policy-export.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "policy/engine/meet.h"
#include "policy/language/policy.h"

namespace domicile::policy {

// What is exported. Borrowed.
struct ExportSource {
  const Policy& site;          // describes the datasets
  const Effective& effective;  // of the site alone, or met with the other policies
  // Names of datasets, ids and digests of documents, issuer: what a statement leaves out.
  bool with_private = false;
};

// JSON-LD with its context inside, indented, a newline at the end. Terms of DPV 2 and its
// extensions (`eu-gdpr`, `eu-ehds`, `legal-eu`, `loc`, `pd`), and our own where there is none.
StatusOr<std::string> ExportDpv(const ExportSource& source);

// JSON-LD of one ODRL 2.2 Set with a profile: one permission to send and one to release models for
// each dataset, prohibitions, and the approvals as a duty.
StatusOr<std::string> ExportOdrl(const ExportSource& source);

// Cedar policies: one `permit` for each dataset and action, one `forbid` for each kind of deny
// rule. Errors: kFailedPrecondition if a bloc among the controlling places has no fact at `now`.
StatusOr<std::string> ExportCedar(const ExportSource& source, WallTime now);
// The schema of requests these policies are written for; the same for every policy.
std::string ExportCedarSchema();
// Every place and the blocs it is in at `now`, as Cedar's entities: what the legal facts become.
StatusOr<std::string> ExportCedarEntities(const ExportSource& source, WallTime now);

// What a target cannot say, one sentence an item; the same sentences stand in the output.
std::vector<std::string_view> DpvCannotSay();
std::vector<std::string_view> OdrlCannotSay();
std::vector<std::string_view> CedarCannotSay();

}  // namespace domicile::policy

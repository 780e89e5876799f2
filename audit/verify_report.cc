#include "audit/verify.h"

namespace domicile::audit {

std::string_view FindingName(FindingKind kind) {
  switch (kind) {
    case FindingKind::kNone:
      return "none";
    case FindingKind::kDamage:
      return "damage";
    case FindingKind::kTornLine:
      return "torn_line";
    case FindingKind::kLineEnd:
      return "line_end";
    case FindingKind::kEmpty:
      return "empty";
    case FindingKind::kSequence:
      return "sequence";
    case FindingKind::kLeafBytes:
      return "leaf_bytes";
    case FindingKind::kLeafForm:
      return "leaf_form";
    case FindingKind::kTime:
      return "time";
    case FindingKind::kSubtree:
      return "subtree";
    case FindingKind::kHeadForm:
      return "head_form";
    case FindingKind::kHeadSignature:
      return "head_signature";
    case FindingKind::kHeadSize:
      return "head_size";
    case FindingKind::kHeadRoot:
      return "head_root";
  }
  return "none";
}

namespace {

std::string RecoveryText(const RecoveryLine& line) {
  const LogRecovered& record = line.record;
  const std::string last =
      std::to_string(record.remembered_size == 0 ? 0 : record.remembered_size - 1);
  return "entry " + std::to_string(line.seq) + ": operator " + record.operator_name +
         " went on from a restored copy; entries " + std::to_string(record.kept) + " to " + last +
         " of the history before are lost, but for those that the copy had" +
         (line.seen_outside ? "; its last head is one of those given" : "");
}

Json RecoveryJson(const RecoveryLine& line) {
  const LogRecovered& record = line.record;
  return JsonObject{{"seq", line.seq},
                    {"operator", record.operator_name},
                    {"instance", record.instance},
                    {"kept", record.kept},
                    {"remembered_entries", record.remembered_size},
                    {"remembered_root", PrintHex(record.remembered_root)},
                    {"head_given", line.seen_outside}};
}

}  // namespace

std::string PrintReport(const VerifyReport& report) {
  std::string out;
  out += "log       " + (report.origin.empty() ? std::string("(no name)") : report.origin) + "\n";
  out += "entries   " + std::to_string(report.size) + "\n";
  out += "root      " + PrintHex(report.root) + "\n";
  out += "heads     " + std::to_string(report.heads_outside) + " given and " +
         std::to_string(report.heads_inside) + " stored agree" +
         (report.signatures_checked ? ", signatures checked\n" : "\n");
  for (const RecoveryLine& line : report.recoveries) {
    out += "recovered " + RecoveryText(line) + "\n";
  }
  for (const Finding& finding : report.findings) {
    out += "WRONG     " + finding.text + "\n";
  }
  if (report.findings.size() >= kMostFindings) {
    out += "WRONG     and perhaps more; only the first " + std::to_string(kMostFindings) +
           " are listed\n";
  }
  for (const std::string& text : report.not_checked) {
    out += "unchecked " + text + "\n";
  }
  if (!report.Intact()) {
    out += "result    this log is NOT what was written\n";
  } else if (report.proven_size == 0) {
    out += "result    nothing wrong in what is here; see what is unchecked\n";
  } else {
    out += "result    the first " + std::to_string(report.proven_size) +
           " entries are those of the head given" +
           (report.not_checked.empty() ? "\n" : "; see what is unchecked\n");
  }
  return out;
}

Json ReportJson(const VerifyReport& report) {
  JsonArray findings;
  for (const Finding& finding : report.findings) {
    JsonObject object{{"kind", FindingName(finding.kind)}, {"text", finding.text}};
    // A changed row may carry any number; JSON here holds those below 2^53.
    if (finding.seq && *finding.seq <= static_cast<std::uint64_t>(kLargestJsonInteger)) {
      object.emplace("seq", *finding.seq);
    }
    findings.emplace_back(std::move(object));
  }
  JsonArray recoveries;
  for (const RecoveryLine& line : report.recoveries) {
    recoveries.push_back(RecoveryJson(line));
  }
  return JsonObject{
      {"intact", report.Intact()},
      {"origin", report.origin},
      {"entries", report.size},
      {"root", PrintHex(report.root)},
      {"heads_inside", report.heads_inside},
      {"heads_outside", report.heads_outside},
      {"proven_entries", report.proven_size},
      {"signatures_checked", report.signatures_checked},
      {"recoveries", std::move(recoveries)},
      {"findings", std::move(findings)},
      {"not_checked", JsonArray(report.not_checked.begin(), report.not_checked.end())}};
}

}  // namespace domicile::audit

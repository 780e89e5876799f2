#include "cli/demo/report.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <map>
#include <optional>
#include <ostream>
#include <sstream>
#include <variant>
#include <vector>

#include "audit/export.h"
#include "audit/peer_heads.h"
#include "audit/reconcile.h"
#include "audit/transfers.h"
#include "audit/verify.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sqlite.h"
#include "base/text.h"
#include "crypto/key_file.h"
#include "policy/reason.h"

namespace domicile::cli {

namespace {

constexpr std::size_t kNameWidth = 42;

// "0.81415" -> "0.814"; "-" for nothing.
std::string Three(const std::string* text) {
  if (text == nullptr) {
    return "    -";
  }
  const StatusOr<double> value = ParseDouble(*text);
  if (!value.ok()) {
    return "    -";
  }
  std::ostringstream out;
  out << std::fixed << std::setprecision(3) << *value;
  return out.str();
}

std::string Three(const Json& measures, std::string_view key) {
  const Json* found = measures.Find(key);
  return Three(found == nullptr ? nullptr : found->TryString());
}

// "local:cleveland" -> "cleveland's own model, used everywhere".
std::string ModelTitle(const std::string& name, const std::string& place) {
  static constexpr std::string_view kLocal = "local:";
  if (name.starts_with(kLocal)) {
    return name.substr(kLocal.size()) + "'s own, used everywhere";
  }
  const std::map<std::string, std::string> titles = {
      {"local at home", "each " + place + " its own, at home"},
      {"centralised", "all records in one place (demo only)"},
      {"federated", "FEDERATED: no record left its " + place},
      {"federated, own intercept", "federated, each refits its own intercept"}};
  const auto found = titles.find(name);
  return found == titles.end() ? name : found->second;
}

StatusOr<Json> RunLocal(const DemoFederation& federation) {
  std::vector<std::string> command = {federation.Program("domicile-trainer"), "--local", "--plan",
                                      federation.JobFile()};
  for (const DemoSite& site : federation.Case().sites) {
    command.emplace_back("--dataset");
    command.push_back(site.name + "=" + federation.SitePath(site, "data/dataset.toml"));
  }
  for (const std::string& file : federation.Case().pretrained) {
    command.insert(command.end(), {"--pretrained", file});
  }
  for (const std::string& file : federation.Case().vocabularies) {
    command.insert(command.end(), {"--vocabulary", file});
  }
  command.emplace_back("--model");
  command.push_back(federation.Path("operator/model.safetensors"));
  command.emplace_back("--json");
  ASSIGN_OR_RETURN(const std::string text,
                   RunToEnd(command, federation.Path("operator/local.log")));
  return ParseJson(StripWhitespace(text));
}

void PrintModelRow(const std::string& title, const Json& all, std::ostream& out) {
  out << "  " << std::left << std::setw(kNameWidth) << title << std::right << std::setw(8)
      << Three(all, "accuracy") << std::setw(10) << Three(all, "majority") << std::setw(8)
      << Three(all, "auc") << std::setw(10) << Three(all, "log_loss") << "\n";
}

// "site/cleveland" in "US-OH" -> "cleveland, US-OH".
std::string Place(const audit::PartyPlace& place) {
  return place.party.substr(place.party.find('/') + 1) + ", " + place.jurisdiction;
}

// The site rules that allowed a transfer, and the legal grounds for the border to its destination:
// `S-1, adequacy`. The full ids are in the log.
std::string RuleAndGround(const audit::TransferRow& row) {
  static constexpr std::string_view kGround = "transfer-to-";
  std::vector<std::string> words;
  const auto add = [&words](const std::string& word) {
    if (std::find(words.begin(), words.end(), word) == words.end()) {
      words.push_back(word);
    }
  };
  for (const std::string& rule : row.rules) {
    const std::string last = rule.substr(rule.rfind('/') + 1);
    if (rule.starts_with("site/") && last.starts_with("rule-")) {
      add(last.substr(std::string_view("rule-").size()));
    }
  }
  for (const std::string& rule : row.rules) {
    const std::string last = rule.substr(rule.rfind('/') + 1);
    if (!last.starts_with(kGround)) {
      continue;
    }
    // `transfer-to-AREA-by-MECHANISM`: of this border if the area is its country, or a bloc.
    const std::size_t by = last.find("-by-");
    const std::string area = last.substr(kGround.size(), by - kGround.size());
    if (by != std::string::npos && (area.size() > 2 || row.to.jurisdiction.starts_with(area))) {
      add(last.substr(by + std::string_view("-by-").size()) + " to " + area);
    }
  }
  return Join(words, ", ");
}

void PrintTransferRow(const audit::TransferRow& row, std::ostream& out) {
  std::string kinds = row.kinds;
  if (const std::size_t plus = kinds.find('+'); plus != std::string::npos) {
    kinds = kinds.substr(0, plus) + "+";  // and its metrics
  }
  out << "  " << std::left << std::setw(26) << Place(row.from) << std::setw(26) << Place(row.to)
      << std::setw(17) << kinds << std::right << std::setw(5) << row.count << std::setw(8)
      << row.bytes << std::setw(11)
      << (row.capacity_bits == 0 ? "-" : std::to_string(row.capacity_bits)) << "  "
      << RuleAndGround(row) << "\n";
}

// The heads of `origin` that another party has kept: what makes a cut at the end visible.
StatusOr<std::vector<std::string>> HeadsKeptBy(const std::vector<std::string>& databases,
                                               const std::string& origin) {
  std::vector<std::string> notes;
  for (const std::string& path : databases) {
    ASSIGN_OR_RETURN(Database db, Database::Open(path, Database::Mode::kReadOnly));
    ASSIGN_OR_RETURN(std::string note, audit::PeerHeads(db).LastNote(origin));
    if (!note.empty()) {
      notes.push_back(std::move(note));
    }
  }
  return notes;
}

// A party's `audit/` folder: an export of its log, and a link to the log itself.
Status ExportInto(const DemoFederation& federation, const std::string& party,
                  const std::string& database) {
  const std::string folder = federation.Path(
      (party == "aggregator" ? std::string("aggregator") : "sites/" + party) + "/audit");
  RETURN_IF_ERROR(
      audit::ExportLog(database, JoinPath(folder, "log.jsonl"), JoinPath(folder, "head.note"))
          .status());
  return LinkFile(database, JoinPath(folder, "log.db"));
}

}  // namespace

Status FetchFinalModel(wire::AdminClient& client, const std::string& job,
                       const std::string& folder) {
  Bytes bytes;
  ASSIGN_OR_RETURN(const auto answer, client.FetchModel(job, 0,
                                                        [&bytes](ByteSpan data) {
                                                          bytes.insert(bytes.end(), data.begin(),
                                                                       data.end());
                                                          return OkStatus();
                                                        },
                                                        {}));
  if (const auto* refusal = std::get_if<v1::Refusal>(&answer)) {
    const auto reason = policy::ReasonFromNumber(refusal->reason());
    return Error(StatusCode::kPermissionDenied,
                 "the final model is not released: " +
                     std::string(reason ? policy::Code(*reason) : "unknown"));
  }
  return WriteFileDurably(JoinPath(folder, "model.safetensors"), bytes, 0644);
}

Status PrintModels(const DemoFederation& federation, const v1::ShowJobResponse& job,
                   std::ostream& out) {
  ASSIGN_OR_RETURN(const Json local, RunLocal(federation));
  const Json* models = local.Find("models");
  if (models == nullptr || models->TryArray() == nullptr) {
    return Error(StatusCode::kInternal, "`domicile-trainer --local` named no models");
  }
  out << "\nModels, measured on the test records of all sites\n  " << std::left
      << std::setw(kNameWidth) << ""
      << "accuracy  majority     AUC  log loss\n";
  for (const Json& model : *models->TryArray()) {
    const Json* name = model.Find("name");
    const Json* all = model.Find("all");
    if (name != nullptr && all != nullptr && name->TryString() != nullptr) {
      PrintModelRow(ModelTitle(*name->TryString(), federation.Case().place), *all, out);
    }
  }
  const v1::RoundMetrics* pooled = nullptr;
  for (const v1::RoundMetrics& metrics : job.metrics()) {
    if (metrics.phase() == v1::PHASE_KIND_EVALUATE) {
      pooled = &metrics;
    }
  }
  if (pooled != nullptr) {
    out << "  " << std::left << std::setw(kNameWidth) << "the same, by the sites' counts alone"
        << std::right << std::setw(8) << Three(&pooled->accuracy()) << std::setw(10)
        << Three(&pooled->majority()) << std::setw(8) << Three(&pooled->auc()) << std::setw(10)
        << Three(&pooled->loss()) << "\n";
  }
  if (const Json* difference = local.Find("max_weight_difference");
      difference != nullptr && difference->TryString() != nullptr) {
    out << "  Largest difference between a weight of the federated and of the centralised model: "
        << Three(difference->TryString()) << "\n";
  }
  out << "  Majority: the accuracy of always giving the commoner answer. What only the demo may "
         "do, see\n"
         "  all records at once, was done by `domicile-trainer --local`, after the federation had "
         "ended.\n"
      << federation.Case().reference;
  return OkStatus();
}

Status PrintTransfers(const DemoFederation& federation, std::ostream& out) {
  out << "\nWhat crossed which border, by each sender's log\n  " << std::left << std::setw(26)
      << "from" << std::setw(26) << "to" << std::setw(17) << "kind" << std::right << std::setw(5)
      << "count" << std::setw(8) << "bytes" << std::setw(11) << "capacity"
      << "  rule, ground\n";
  for (const auto& [party, database] : federation.Logs()) {
    ASSIGN_OR_RETURN(const std::vector<audit::TransferRow> rows, audit::TransfersOfFile(database));
    const std::string self = party == "aggregator" ? "aggregator/" : "site/" + party;
    for (const audit::TransferRow& row : rows) {
      if (row.from.party.starts_with(self)) {
        PrintTransferRow(row, out);
      }
    }
  }
  out << "  Capacity: the most that the payload can tell about records, in bits. All rules that "
         "bore on a "
         "transfer:\n  `domicile audit transfers LOG`.\n";
  return OkStatus();
}

StatusOr<bool> PrintProofs(const DemoFederation& federation, std::ostream& out) {
  const auto logs = federation.Logs();
  const std::string& aggregator_log = logs.front().second;
  bool holds = true;
  out << "\nLogs, checked offline\n";
  for (const auto& [party, database] : logs) {
    ASSIGN_OR_RETURN(const crypto::NoteVerifier key,
                     crypto::ReadNotePublicKey(federation.LogKeyFile(party)));
    std::vector<std::string> others;
    for (const auto& [other, path] : logs) {
      // A site's head is kept by the aggregator, the aggregator's by every site.
      if ((party == "aggregator") != (other == "aggregator")) {
        others.push_back(path);
      }
    }
    audit::VerifyOptions options;
    options.key = key;
    ASSIGN_OR_RETURN(options.outside_heads, HeadsKeptBy(others, key.name()));
    ASSIGN_OR_RETURN(const audit::VerifyReport report, audit::VerifyLogFile(database, options));
    holds = holds && report.Intact();
    out << "  " << std::left << std::setw(14) << party << std::right << std::setw(6) << report.size
        << " leaves, " << (report.Intact() ? "as written" : "NOT AS WRITTEN") << "; "
        << report.proven_size << " proven by heads that others kept";
    if (party != "aggregator") {
      ASSIGN_OR_RETURN(const audit::Reconciliation both,
                       audit::ReconcileFiles(database, aggregator_log));
      holds = holds && both.Explained();
      out << "; both ends agree on " << both.Count(audit::MatchClass::kMatched) << " of "
          << both.matches.size() << " transfers"
          << (both.Explained() ? "" : ", SOME ARE UNEXPLAINED");
    }
    out << "\n";
    for (const audit::Finding& finding : report.findings) {
      out << "    " << finding.text << "\n";
    }
    RETURN_IF_ERROR(ExportInto(federation, party, database));
  }
  return holds;
}

}  // namespace domicile::cli

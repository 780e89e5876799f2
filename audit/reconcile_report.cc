#include <algorithm>
#include <array>

#include "audit/internal/table.h"
#include "audit/reconcile.h"

namespace domicile::audit {

namespace {

constexpr std::array kClasses = {MatchClass::kMatched, MatchClass::kInFlight,
                                 MatchClass::kAborted, MatchClass::kRefused,
                                 MatchClass::kLost,    MatchClass::kUnexplained};

std::string EpochText(const Epoch& epoch) {
  return std::to_string(epoch.starts) + "." + std::to_string(epoch.attempt);
}

std::string SeqText(const std::optional<std::uint64_t>& seq) {
  return seq ? std::to_string(*seq) : "-";
}

// What people look for first.
bool BadFirst(const Match* a, const Match* b) {
  return (a->match == MatchClass::kUnexplained) > (b->match == MatchClass::kUnexplained);
}

}  // namespace

std::string_view MatchClassName(MatchClass match) {
  switch (match) {
    case MatchClass::kUnexplained:
      return "unexplained";
    case MatchClass::kMatched:
      return "matched";
    case MatchClass::kInFlight:
      return "in_flight";
    case MatchClass::kAborted:
      return "aborted";
    case MatchClass::kRefused:
      return "refused";
    case MatchClass::kLost:
      return "lost";
  }
  return "unexplained";
}

std::string_view MatchSubjectName(MatchSubject subject) {
  switch (subject) {
    case MatchSubject::kNone:
      return "none";
    case MatchSubject::kUpdate:
      return "update";
    case MatchSubject::kCounted:
      return "counted";
    case MatchSubject::kModel:
      return "model";
    case MatchSubject::kRecovery:
      return "recovery";
  }
  return "none";
}

std::string PrintReconciliation(const Reconciliation& result) {
  std::string out = "site " + result.site + " against aggregator " + result.aggregator + "\n\n";
  std::vector<const Match*> shown;
  for (const Match& match : result.matches) {
    shown.push_back(&match);
  }
  std::stable_sort(shown.begin(), shown.end(), BadFirst);
  internal::Table table(
      {"what", "job", "round", "phase", "epoch", "digest", "bytes", "site#", "aggr#", "result"});
  table.AlignRight({2, 6, 7, 8});
  for (const Match* match : shown) {
    table.AddRow({std::string(MatchSubjectName(match->subject)), match->key.job.text(),
                  std::to_string(match->key.round), match->key.phase, EpochText(match->key.epoch),
                  PrintHex(match->digest).substr(0, 8), std::to_string(match->bytes),
                  SeqText(match->site_seq), SeqText(match->aggregator_seq),
                  std::string(MatchClassName(match->match))});
    if (!match->text.empty()) {
      table.AddNote((match->site == result.site ? "" : "site " + match->site + ": ") + match->text);
    }
  }
  out += table.Print() + "\n";
  for (const MatchClass match : kClasses) {
    out += std::to_string(result.Count(match)) + " " + std::string(MatchClassName(match)) +
           (match == kClasses.back() ? "\n" : ", ");
  }
  return out;
}

Json ReconciliationJson(const Reconciliation& result) {
  JsonArray matches;
  for (const Match& match : result.matches) {
    JsonObject object{
        {"result", MatchClassName(match.match)},
        {"subject", MatchSubjectName(match.subject)},
        {"job", match.key.job.text()},
        {"round", match.key.round},
        {"phase", match.key.phase},
        {"epoch",
         JsonObject{{"starts", match.key.epoch.starts}, {"attempt", match.key.epoch.attempt}}},
        {"site", match.site},
        {"digest", PrintHex(match.digest)},
        {"bytes", match.bytes},
    };
    if (match.site_seq) {
      object.emplace("site_seq", *match.site_seq);
    }
    if (match.aggregator_seq) {
      object.emplace("aggregator_seq", *match.aggregator_seq);
    }
    if (!match.text.empty()) {
      object.emplace("text", match.text);
    }
    matches.emplace_back(std::move(object));
  }
  JsonObject counts;
  for (const MatchClass match : kClasses) {
    counts.emplace(MatchClassName(match), result.Count(match));
  }
  return JsonObject{{"site", result.site},
                    {"aggregator", result.aggregator},
                    {"explained", result.Explained()},
                    {"counts", std::move(counts)},
                    {"matches", std::move(matches)}};
}

}  // namespace domicile::audit

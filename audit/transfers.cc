#include "audit/transfers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "audit/internal/table.h"
#include "audit/leaves.h"
#include "base/text.h"

namespace domicile::audit {

namespace {

PartyPlace PlaceIn(const Event& event, std::string_view field) {
  PartyPlace place;
  if (const Json* json = event.body().Find(field)) {
    const auto text = [&](std::string_view key) {
      const Json* member = json->Find(key);
      return member == nullptr ? std::string() : *member->TryString();
    };
    place = {.party = text("party"), .jurisdiction = text("jurisdiction")};
  }
  return place;
}

std::uint64_t CountIn(const Event& event, std::string_view field) {
  return static_cast<std::uint64_t>(event.Int(field));
}

std::vector<std::string> ListIn(const Json* object, std::string_view field) {
  std::vector<std::string> texts;
  const Json* list = object == nullptr ? nullptr : object->Find(field);
  if (list != nullptr && list->TryArray() != nullptr) {
    for (const Json& item : *list->TryArray()) {
      texts.push_back(*item.TryString());
    }
  }
  return texts;
}

class Counter {
 public:
  StatusOr<std::vector<TransferRow>> Run(const std::vector<Leaf>& log) {
    for (const Leaf& leaf : log) {
      Read(leaf.event);
    }
    if (own_.party.empty()) {
      return Error(StatusCode::kInvalidArgument,
                   "the log has neither `agent.started` nor `aggregator.started`: it does not say "
                   "whose it is");
    }
    for (const auto& [key, open] : open_) {
      // Begun and not ended: at most the whole payload left.
      if (open.attempts > open.ended) {
        TransferRow& row = RowOf(std::get<1>(key));
        row.unfinished += open.attempts - open.ended;
        row.unfinished_bytes += (open.attempts - open.ended) * open.bytes;
      }
    }
    std::vector<TransferRow> rows;
    for (auto& [key, row] : rows_) {
      row.rules.assign(rules_[key].begin(), rules_[key].end());
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  using RowKey = std::tuple<PartyPlace, PartyPlace, std::string>;
  struct Open {
    std::uint64_t attempts = 0;
    std::uint64_t ended = 0;
    std::uint64_t bytes = 0;
  };

  void Read(const Event& event) {
    const EventType type = event.type();
    if (type == EventType::kAgentStarted) {
      own_ = {"site/" + event.Text("site"), event.Text("jurisdiction")};
    } else if (type == EventType::kAggregatorStarted) {
      own_ = {"aggregator/" + event.Text("aggregator"), event.Text("jurisdiction")};
    } else if (type == EventType::kEgressDecided) {
      ReadDecided(event);
    } else if (type == EventType::kEgressIntent || type == EventType::kEgressDone ||
               type == EventType::kEgressAborted) {
      ReadEgress(event);
    } else if (type == EventType::kEgressDenied || type == EventType::kModelReleaseDenied) {
      const RowKey key = KeyOf(event, PlaceIn(event, "from"), PlaceIn(event, "to"));
      RowOf(key).refused += std::max<std::uint64_t>(1, CountIn(event, "count"));
    } else if (type == EventType::kIngressReceived) {
      const RowKey key =
          KeyOf(event, {"site/" + event.Text("site"), event.Text("jurisdiction")}, own_);
      Whole(key, event);
      Carry(key, event.Text("digest"), CountIn(event, "capacity_bits"));
      places_["site/" + event.Text("site")] = event.Text("jurisdiction");
    } else if (type == EventType::kIngressPartial || type == EventType::kIngressRefused) {
      ReadBroken(event);
    } else if (type == EventType::kModelIntake || type == EventType::kModelSent ||
               type == EventType::kModelReleased) {
      Whole(KeyOf(event, PlaceIn(event, "from"), PlaceIn(event, "to")), event);
    }
  }

  void ReadDecided(const Event& event) {
    const RowKey key = KeyOf(event, PlaceIn(event, "from"), PlaceIn(event, "to"));
    decided_.insert_or_assign(event.Text("transfer"), key);
    bits_.insert_or_assign(event.Text("transfer"), CountIn(event, "capacity_bits"));
    NoteRules(key, event);
  }

  void ReadEgress(const Event& event) {
    const std::string digest = event.Text("digest");
    const auto found = decided_.find(digest);
    // Sent without a decision is reconcile's to report; here it is a line of its own.
    const RowKey key =
        found != decided_.end() ? found->second : RowKey{own_, PartyPlace{}, "undecided"};
    Open& open = open_[{event.Phase(), key, digest}];
    if (event.type() == EventType::kEgressIntent) {
      ++open.attempts;
      open.bytes = CountIn(event, "bytes");
      return;
    }
    ++open.ended;
    if (event.type() == EventType::kEgressDone) {
      Whole(key, event);
      Carry(key, digest, bits_[digest]);
    } else {
      Broken(key, event);
    }
  }

  void ReadBroken(const Event& event) {
    const std::string party = "site/" + event.Text("site");
    const std::string place = event.Text("jurisdiction");
    const RowKey key = KeyOf(event, {party, place.empty() ? places_[party] : place}, own_);
    if (event.type() == EventType::kIngressRefused) {
      RowOf(key).refused += std::max<std::uint64_t>(1, CountIn(event, "count"));
      if (CountIn(event, "bytes") == 0) {
        return;  // refused before a byte of it was sent
      }
    }
    Broken(key, event);
  }

  void Whole(const RowKey& key, const Event& event) {
    TransferRow& row = RowOf(key);
    ++row.count;
    row.bytes += CountIn(event, "bytes");
    NoteRules(key, event);
  }

  void Broken(const RowKey& key, const Event& event) {
    TransferRow& row = RowOf(key);
    ++row.unfinished;
    row.unfinished_bytes += CountIn(event, "bytes");
  }

  // A payload says the same however often it is sent.
  void Carry(const RowKey& key, const std::string& digest, std::uint64_t bits) {
    if (carried_.insert(digest).second) {
      RowOf(key).capacity_bits += bits;
    }
  }

  void NoteRules(const RowKey& key, const Event& event) {
    for (std::string& rule : ListIn(event.body().Find("decision"), "rules")) {
      rules_[key].insert(std::move(rule));
    }
  }

  static RowKey KeyOf(const Event& event, PartyPlace from, PartyPlace to) {
    std::vector<std::string> kinds = ListIn(&event.body(), "kinds");
    if (kinds.empty()) {
      const std::string kind = event.Text("kind");
      kinds.push_back(kind.empty() ? "unknown" : kind);
    }
    return {std::move(from), std::move(to), Join(kinds, "+")};
  }

  TransferRow& RowOf(const RowKey& key) {
    TransferRow& row = rows_[key];
    std::tie(row.from, row.to, row.kinds) = key;
    return row;
  }

  PartyPlace own_;
  std::map<std::string, std::string> places_;  // jurisdictions of sites, as received updates say
  std::map<std::string, RowKey> decided_;      // by digest
  std::map<std::string, std::uint64_t> bits_;  // likewise
  std::map<std::tuple<PhaseKey, RowKey, std::string>, Open> open_;
  std::set<std::string> carried_;
  std::map<RowKey, TransferRow> rows_;
  std::map<RowKey, std::set<std::string>> rules_;
};

std::string PlaceText(const PartyPlace& place) {
  return place.party.empty()
             ? "?"
             : place.party + " " + (place.jurisdiction.empty() ? "-" : place.jurisdiction);
}

}  // namespace

StatusOr<std::vector<TransferRow>> Transfers(const std::vector<Leaf>& log) {
  return Counter().Run(log);
}

StatusOr<std::vector<TransferRow>> TransfersOfFile(const std::string& log) {
  std::vector<Leaf> leaves;
  RETURN_IF_ERROR(ForEachLeaf(log, [&](Leaf& leaf) {
    leaves.push_back(std::move(leaf));
    return OkStatus();
  }));
  return Transfers(leaves);
}

std::string PrintTransfers(const std::vector<TransferRow>& rows) {
  if (rows.empty()) {
    return "nothing crossed a border\n";
  }
  internal::Table table({"from", "to", "kind", "count", "bytes", "capacity", "broken", "refused"});
  table.AlignRight({3, 4, 5, 6, 7});
  for (const TransferRow& row : rows) {
    table.AddRow({PlaceText(row.from), PlaceText(row.to), row.kinds, std::to_string(row.count),
                  std::to_string(row.bytes),
                  row.capacity_bits == 0 ? "-" : std::to_string(row.capacity_bits) + " bit",
                  std::to_string(row.unfinished), std::to_string(row.refused)});
    if (!row.rules.empty()) {
      table.AddNote("by " + Join(row.rules, ", "));
    }
    if (row.unfinished != 0) {
      table.AddNote("broken off: at most " + std::to_string(row.unfinished_bytes) + " bytes left");
    }
  }
  return table.Print();
}

Json TransfersJson(const std::vector<TransferRow>& rows) {
  JsonArray list;
  for (const TransferRow& row : rows) {
    list.emplace_back(JsonObject{{"from", ToJson(row.from)},
                                 {"to", ToJson(row.to)},
                                 {"kinds", row.kinds},
                                 {"count", row.count},
                                 {"bytes", row.bytes},
                                 {"unfinished", row.unfinished},
                                 {"unfinished_bytes", row.unfinished_bytes},
                                 {"refused", row.refused},
                                 {"capacity_bits", row.capacity_bits},
                                 {"crosses_border", row.CrossesBorder()},
                                 {"rules", JsonArray(row.rules.begin(), row.rules.end())}});
  }
  return JsonObject{{"transfers", std::move(list)}};
}

}  // namespace domicile::audit

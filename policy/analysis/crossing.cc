#include "policy/analysis/crossing.h"

#include <algorithm>

#include "base/text.h"

namespace domicile::policy::analysis {
namespace {

template <typename E>
std::vector<std::string> CodesOf(const std::vector<E>& values) {
  std::vector<std::string> codes;
  for (const E value : values) {
    codes.emplace_back(Code(value));
  }
  return codes;
}

// "every kind" says more than all of them.
template <typename E>
std::string List(const std::vector<E>& values, std::string_view every) {
  return values.size() == AllOf<E>().size() ? std::string(every) : Join(CodesOf(values), ", ");
}

std::string Print(const Parties& parties) {
  std::string text = Join(parties.who, " or ") + " in " + Join(parties.places, ", ");
  if (parties.control != std::vector<std::string>{"every place"}) {
    text += ", controlled from " + Join(parties.control, ", ");
  }
  if (!parties.organisations.empty()) {
    text += ", run by " + Join(parties.organisations, " or ");
  }
  return text;
}

std::string Date(WallTime time) {
  const std::string text = PrintTime(time);
  constexpr std::string_view kMidnight = "T00:00:00.000Z";
  return text.ends_with(kMidnight) ? text.substr(0, text.size() - kMidnight.size()) : text;
}

Json TextsJson(const std::vector<std::string>& texts) {
  return JsonArray(texts.begin(), texts.end());
}

Json ToJson(const Parties& parties) {
  return JsonObject{{"who", TextsJson(parties.who)},
                    {"organisations", TextsJson(parties.organisations)},
                    {"places", TextsJson(parties.places)},
                    {"control", TextsJson(parties.control)}};
}

}  // namespace

void Covered::Add(const Covered& other) {
  sites += other.sites;
  datasets += other.datasets;
  points = std::max(points, other.points);
  places = std::max(places, other.places);
  place_classes = std::max(place_classes, other.place_classes);
  kinds = std::max(kinds, other.kinds);
  views = std::max(views, other.views);
  purposes = std::max(purposes, other.purposes);
  parties = std::max(parties, other.parties);
  date_classes = std::max(date_classes, other.date_classes);
  requests += other.requests;
  decisions += other.decisions;
}

std::string Print(const Crossing& crossing) {
  std::string text = crossing.dataset + " of " + crossing.site + ", " +
                     std::string(Code(crossing.point)) + ": " + List(crossing.kinds, "every kind") +
                     "\n";
  text += "    to " + Print(crossing.to) + "\n";
  if (crossing.via) {
    text += "    from " + Print(*crossing.via) + "\n";
  }
  text += "    " + List(crossing.purposes, "every purpose");
  if (!crossing.views.empty()) {
    text += "; view " + List(crossing.views, "any");
  }
  std::vector<std::string> periods;
  for (const Period& period : crossing.periods) {
    const bool is_instant = period.until - period.from == std::chrono::nanoseconds(1);
    periods.push_back(Date(period.from) + (is_instant ? "" : " to " + Date(period.until)));
  }
  return text + "; " + Join(periods, ", ") + "\n";
}

Json ToJson(const Crossing& crossing) {
  JsonArray periods;
  for (const Period& period : crossing.periods) {
    periods.push_back(
        JsonObject{{"from", PrintTime(period.from)}, {"until", PrintTime(period.until)}});
  }
  JsonObject json = {{"site", crossing.site},
                     {"dataset", crossing.dataset},
                     {"point", std::string(Code(crossing.point))},
                     {"to", ToJson(crossing.to)},
                     {"kinds", TextsJson(CodesOf(crossing.kinds))},
                     {"views", TextsJson(CodesOf(crossing.views))},
                     {"purposes", TextsJson(CodesOf(crossing.purposes))},
                     {"periods", std::move(periods)},
                     {"requests", std::to_string(crossing.requests)}};
  if (crossing.via) {
    json.emplace("via", ToJson(*crossing.via));
  }
  return json;
}

std::string Print(const Covered& covered) {
  const auto line = [](std::string_view name, std::uint64_t count, std::string_view note) {
    std::string number = std::to_string(count);
    number.insert(0, number.size() < 8 ? 8 - number.size() : 0, ' ');
    return "  " + number + " " + std::string(name) + std::string(note) + "\n";
  };
  std::string text = "covered, completely:\n";
  text += line("sites", covered.sites, "");
  text += line("datasets", covered.datasets, "");
  text += line("decision points", covered.points, "");
  text += line("places", covered.places,
               ": every country of ISO 3166-1, and each subdivision a policy or fact names");
  text +=
      line("classes of places", covered.place_classes, " that no rule, bloc or fact tells apart");
  text += line("kinds of numbers", covered.kinds, "");
  text += line("views", covered.views, "");
  text += line("purposes", covered.purposes, "");
  text += line("parties and organisations", covered.parties,
               " that rules name, with one for all others");
  text += line("spans of time", covered.date_classes, " in which nothing changes");
  text += line("requests", covered.requests, ", answered by");
  text += line("decisions", covered.decisions, "");
  text +=
      "  numbers are the most permissive a request can have, and every approval is given; a party "
      "is\n  controlled from one country at a time, since each of several must be allowed\n";
  return text;
}

Json ToJson(const Covered& covered) {
  return JsonObject{{"sites", covered.sites},
                    {"datasets", covered.datasets},
                    {"points", covered.points},
                    {"places", covered.places},
                    {"place_classes", covered.place_classes},
                    {"kinds", covered.kinds},
                    {"views", covered.views},
                    {"purposes", covered.purposes},
                    {"parties", covered.parties},
                    {"date_classes", covered.date_classes},
                    {"requests", std::to_string(covered.requests)},
                    {"decisions", std::to_string(covered.decisions)},
                    {"numbers", "most permissive"}};
}

}  // namespace domicile::policy::analysis

// A folded policy as a flat list of conditions on a request, from which every export is made: the
// keys of the effective policy, each with how it is compared.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "policy/engine/meet.h"

namespace domicile::policy::internal {

// What of a request a key is compared with.
enum class About : std::uint8_t {
  kPlace = 1,    // of the receiver
  kControl = 2,  // places from where the receiver is controlled
  kWho = 3,      // the receiver, by role or name
  kContent = 4,  // a fact of the request, by the key's name
};

// When a key is asked.
enum class Step : std::uint8_t {
  kSend = 1,     // a contribution goes to the aggregator
  kRelease = 2,  // a model goes to a recipient
  kBoth = 3,
};
inline bool Applies(Step asked, Step now) { return asked == Step::kBoth || asked == now; }

enum class Relation : std::uint8_t {
  kAnyOf = 1,    // the one value is in the list, or all of several are
  kNoneOf = 2,   // none is in the list
  kAtMost = 3,   // a number
  kAtLeast = 4,  // a number
  kIs = 5,       // a truth
  kAbove = 6,    // a number, not itself
};

enum class ValueKind : std::uint8_t {
  kText = 1,
  kArea = 2,
  kInteger = 3,
  kDecimal = 4,   // the shortest text that reads back
  kDuration = 5,  // whole seconds, as text
  kFlag = 6,      // `true` or `false`
};

struct Condition {
  std::string key;  // as the effective policy prints it
  About about = About::kContent;
  Step step = Step::kSend;
  Relation relation = Relation::kAnyOf;
  ValueKind kind = ValueKind::kText;
  bool is_many = false;   // the request has a list of them
  bool needs_dp = false;  // asked only of runs whose dp_mode is above `none`
  // Of kAnyOf and kNoneOf as many as there are, sorted; of the others one. A list that allows
  // nothing is empty, and then nothing satisfies the condition.
  std::vector<std::string> values;
};

// The keys of a folded dataset that no target has a condition for: they are handled by name, or
// said to be left out.
bool IsSpecialKey(std::string_view key);

// In the order of the table of docs/formats/policy.md. Errors: kInternal for a key that the table
// of this folder does not know, so that nothing is left out silently.
StatusOr<std::vector<Condition>> ConditionsOf(const JsonObject& folded);

// Every key that has conditions, without values, in the same order.
std::vector<Condition> EveryCondition();

// The folded datasets of an effective policy, by alias: `datasets` of Effective::Text().
StatusOr<JsonObject> FoldedDatasets(const Effective& effective);

// Indented JSON with a newline at the end: the same value as PrintJson, for people.
std::string PrintIndented(const Json& value);

}  // namespace domicile::policy::internal

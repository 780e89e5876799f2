// The closed list of events: which fields each type has and of which kind. The table that
// docs/formats/events.md prints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audit/event.h"
#include "base/json.h"
#include "base/status.h"

namespace domicile::audit::internal {

struct TypeFields {
  EventType type = EventType::kNone;
  std::string_view name;
  // `job:name round:round ?reason:reason ...`: field:kind, with `?` where it may be absent.
  std::string_view fields;
};

// Whether a text can be the name of a log: letters, digits, `.`, `_`, `-`, `/`, at most 200.
bool IsLogName(std::string_view text);

// All types, by number.
std::span<const TypeFields> AllTypeFields();
// The objects that occur inside bodies (`epoch`, `decision`, ...), in the same notation; the name
// is the kind.
std::span<const TypeFields> AllObjectFields();

// Whether a body is what its type says. Errors: kInvalidArgument, naming type and field.
Status CheckBody(EventType type, const Json& body);

}  // namespace domicile::audit::internal

// The stored form of events: one line of canonical JSON each. Page: docs/formats/round.md.
#pragma once

#include <string>
#include <string_view>

#include "aggregator/rounds/machine.h"
#include "base/status.h"

namespace domicile::aggregator {

// The name of an event's kind, as in its JSON: "submitted", "site_connected", ...
std::string_view EventName(const Event& event);

// ParseEvent(PrintEvent(e)) == e. Parse takes canonical JSON only, and refuses unknown kinds, keys
// and codes. Errors: kInvalidArgument, naming the field.
std::string PrintEvent(const Event& event);
StatusOr<Event> ParseEvent(std::string_view text);

}  // namespace domicile::aggregator

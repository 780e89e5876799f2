// The dates of the example policies, moved to today: a demonstration must not end when its examples
// do.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"

namespace domicile::cli {

// Moves the dates of the keys `not_before`, `expires` and `valid_until` (also `refs.X.valid_until`)
// by the whole days from kExamplesWritten to `now`, and says so in a first line. Dates that say
// when something was checked or decided stay. Text of the day the examples were written, or
// earlier, stays as it is.
std::string MoveExampleDates(std::string_view toml, WallTime now);

// 2026-11-30.
WallTime ExamplesWritten();

}  // namespace domicile::cli

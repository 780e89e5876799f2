// A number as a cell: text that the same description reads back to the same bits.
#pragma once

#include <optional>
#include <string>

namespace domicile::site_agent::internal {

// Empty for infinity and what is not a number.
std::optional<std::string> NumberCell(double value, char decimal_mark);

}  // namespace domicile::site_agent::internal

#include "site_agent/datasets/internal/number_text.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace domicile::site_agent::internal {

std::optional<std::string> NumberCell(double value, char decimal_mark) {
  if (!std::isfinite(value)) {
    return std::nullopt;
  }
  std::string cell = PrintDouble(value);
  std::replace(cell.begin(), cell.end(), '.', decimal_mark);
  return cell;
}

}  // namespace domicile::site_agent::internal

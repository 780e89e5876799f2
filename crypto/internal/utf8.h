// Whether bytes are text.
#pragma once

#include <string_view>

namespace domicile::crypto::internal {

// Well-formed UTF-8 (Unicode, table 3-7): shortest forms only, no surrogates, at most U+10FFFF.
bool IsUtf8(std::string_view text);

}  // namespace domicile::crypto::internal

// Texts with a class in Weka's ARFF: the one form of it that the demonstration's data set has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace domicile::cli {

struct ArffText {
  std::string text;   // UTF-8; the file is Latin-1
  std::string label;  // as it stands there
};

// Reads `@data` lines of the form 'TEXT',LABEL with \' \" \\ \n \r \t inside the quotes. Errors:
// kInvalidArgument, naming `name` and the line.
StatusOr<std::vector<ArffText>> ParseArffTexts(std::string_view file, std::string_view name);

}  // namespace domicile::cli

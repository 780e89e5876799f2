// What is wrong with a document as a whole, and where, in the words of a job file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/toml.h"
#include "contracts/schema.h"

namespace domicile::contracts::internal {

struct Fault {
  std::string table;                   // "", "update", "feature", "model.tensor"
  std::optional<std::size_t> element;  // of an array of tables
  std::string key;
  std::string message;  // what is wrong, the limit, and what to do
};

// The fault in words without a file: "`feature[2].column` ...".
std::string Describe(const Fault& fault);

// Notes the fault at its place in the document.
void Report(TomlTable root, const Fault& fault);

// Whether `text` may name a column or be a code: 1 to 64 bytes of UTF-8, no control characters,
// no `=`, no blank at either end.
bool IsColumnText(std::string_view text);

// The first fault of a schema: names, duplicates, the label among the features.
std::optional<Fault> FindSchemaFault(const SchemaContract& schema);

}  // namespace domicile::contracts::internal

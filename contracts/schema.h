// What a job expects of a site's data. The *schema contract* is part of the plan: features in
// order, their kinds, and the label with its classes in order, so that every site builds the same
// inputs and the same output layer whatever its own rows hold (docs/formats/job-and-plan.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/toml.h"

namespace domicile::contracts {

enum class FeatureKind : std::uint8_t {
  kNone = 0,
  kNumber = 1,  // one input
  kCategory =
      2,  // one input per listed code: 1 if the cell is that code, else 0 (also when missing)
};

// One column of the table as model inputs, in the order of the plan.
struct Feature {
  std::string column;
  FeatureKind kind = FeatureKind::kNone;
  bool zero_is_missing = false;    // a number 0 means "not measured"
  std::vector<std::string> codes;  // of a category: which codes become inputs; others are the base
  friend bool operator==(const Feature&, const Feature&) = default;
};

// How the label column becomes a class number.
struct Label {
  std::string column;
  // Either: the class is 1 if the number in the column is greater than this, else 0 ...
  std::optional<double> positive_above;
  // ... or: the cell is one of these classes, in this order.
  std::vector<std::string> classes;
  std::size_t NumClasses() const { return positive_above ? 2 : classes.size(); }
  friend bool operator==(const Label&, const Label&) = default;
};

struct SchemaContract {
  std::vector<Feature> features;
  Label label;
  // Names of the model inputs, in order: "age", "cp=1", "cp=2", ...
  std::vector<std::string> InputNames() const;
  friend bool operator==(const SchemaContract&, const SchemaContract&) = default;
};

SchemaContract ReadSchema(TomlTable table);  // errors stick to the document
Json ToJson(const SchemaContract& schema);
StatusOr<SchemaContract> SchemaFromJson(const Json& json);

}  // namespace domicile::contracts

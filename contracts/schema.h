// What a job expects of a site's data. The *schema contract* is part of the plan: columns of a
// table in order, a picture or a text, and the label with its classes in order, so that every site
// builds the same inputs and the same output layer whatever its own rows hold
// (docs/formats/job-and-plan.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
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

// One picture a row. A model sees (value / 255 - mean) / deviation of each value 0 to 255.
struct ImageInput {
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<double> mean;       // public constants, one a channel
  std::vector<double> deviation;  // above 0, one a channel
  std::size_t Size() const { return std::size_t{channels} * height * width; }
  friend bool operator==(const ImageInput&, const ImageInput&) = default;
};

// One text a row, as WordPiece tokens of a vocabulary that every site has.
struct TextInput {
  std::uint32_t length = 0;  // tokens a text is cut to, [CLS] and [SEP] included
  Digest vocabulary;         // SHA-256 of the vocabulary file
  friend bool operator==(const TextInput&, const TextInput&) = default;
};

// A model learns (value - offset) / scale; both are public.
struct NumberLabel {
  double offset = 0;
  double scale = 1;  // above 0
  friend bool operator==(const NumberLabel&, const NumberLabel&) = default;
};

// What the label column holds; exactly one of the three.
struct Label {
  std::string column;
  // The class is 1 if the number in the column is greater than this, else 0.
  std::optional<double> positive_above{};
  // The cell is one of these classes, in this order.
  std::vector<std::string> classes{};
  // The number itself.
  std::optional<NumberLabel> number{};
  // 0 where the label is a number.
  std::size_t NumClasses() const { return positive_above ? 2 : classes.size(); }
  friend bool operator==(const Label&, const Label&) = default;
};

// Exactly one of features, image and text is there.
struct SchemaContract {
  std::vector<Feature> features;
  std::optional<ImageInput> image;
  std::optional<TextInput> text;
  Label label;
  // Names of a table's model inputs, in order: "age", "cp=1", "cp=2", ...; none of pictures and
  // texts.
  std::vector<std::string> InputNames() const;
  // Values of one row: inputs of a table, values of a picture, tokens of a text.
  std::size_t NumInputs() const;
  friend bool operator==(const SchemaContract&, const SchemaContract&) = default;
};

SchemaContract ReadSchema(TomlTable table);  // errors stick to the document
Json ToJson(const SchemaContract& schema);
StatusOr<SchemaContract> SchemaFromJson(const Json& json);

}  // namespace domicile::contracts

// What the tests of this folder share.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "site_agent/datasets/dataset.h"

namespace domicile::site_agent {

// A folder of its own for the files of one test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "domicile-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& Path() const { return path_; }

  std::string Write(const std::string& name, std::string_view text) const {
    const std::string path = JoinPath(path_, name);
    REQUIRE(WriteFileDurably(path, AsBytes(text)).ok());
    return path;
  }

 private:
  std::string path_;
};

inline contracts::DatasetDescription Describe(std::vector<std::string> files) {
  contracts::DatasetDescription description;
  description.alias = DatasetAlias::Parse("clinic").value();
  description.version = "1";
  description.files = std::move(files);
  return description;
}

inline contracts::SchemaContract Numbers(std::vector<std::string> columns, std::string label) {
  contracts::SchemaContract schema;
  for (std::string& column : columns) {
    contracts::Feature feature;
    feature.column = std::move(column);
    feature.kind = contracts::FeatureKind::kNumber;
    schema.features.push_back(std::move(feature));
  }
  schema.label.column = std::move(label);
  schema.label.positive_above = 0;
  return schema;
}

inline contracts::SchemaContract Pictures(std::uint32_t channels, std::uint32_t height,
                                          std::uint32_t width, std::vector<std::string> classes) {
  contracts::SchemaContract schema;
  schema.image.emplace();
  schema.image->channels = channels;
  schema.image->height = height;
  schema.image->width = width;
  schema.image->mean.assign(channels, 0);
  schema.image->deviation.assign(channels, 1);
  schema.label.column = "label";
  schema.label.classes = std::move(classes);
  return schema;
}

inline contracts::ColumnDescription Column(std::string name, std::string local = {}) {
  contracts::ColumnDescription column;
  column.name = std::move(name);
  column.local = std::move(local);
  return column;
}

inline std::string FaultText(const Fault& fault) {
  return std::string(Message(fault.LocalStatus()));
}

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace domicile::site_agent

// TOML files that people write: every error names file, line and column, an unknown key is an error
// with the nearest spelling, and nothing is converted silently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace domicile {

class TomlTable;

// A parsed file. Errors stick: getters after the first error return empty values; Finish() reports
// it. One thread at a time.
class TomlDocument {
 public:
  // `file` is what errors call it. Errors: kInvalidArgument, "FILE:LINE:COLUMN: what".
  static StatusOr<TomlDocument> Parse(std::string_view text, std::string_view file);
  // Reads at most 1 MiB. Errors: as ReadFile in base/file.h.
  static StatusOr<TomlDocument> Read(const std::string& path);

  TomlDocument(TomlDocument&&) noexcept;
  TomlDocument& operator=(TomlDocument&&) noexcept;
  ~TomlDocument();

  TomlTable Root();

  // The first error noted, or the first key (in file order) that nobody asked for, with the nearest
  // known one beside it. Where there is none, a key of `language` (`rule.limit.rounds`: every key,
  // with dots between tables) of the same name in another table is shown. kInvalidArgument.
  Status Finish(std::span<const std::string_view> language = {});

 private:
  friend class TomlTable;
  struct State;
  explicit TomlDocument(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One table of a document, borrowed from it.
//
// X(key) wants the key and notes an error if it is missing or of another type; TryX(key) is empty
// if the key is absent. Asking for a key, in either way, makes it known.
class TomlTable {
 public:
  std::string String(std::string_view key);
  std::optional<std::string> TryString(std::string_view key);
  std::int64_t Int(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<std::int64_t> TryInt(std::string_view key, std::int64_t low, std::int64_t high);
  // A float or a whole number, finite and within [low, high].
  double Double(std::string_view key, double low, double high);
  std::optional<double> TryDouble(std::string_view key, double low, double high);
  bool Bool(std::string_view key);
  std::optional<bool> TryBool(std::string_view key);
  // An offset date-time, or a date (its first instant in UTC).
  WallTime Time(std::string_view key);
  std::optional<WallTime> TryTime(std::string_view key);
  std::vector<std::string> Strings(std::string_view key);
  std::optional<std::vector<std::string>> TryStrings(std::string_view key);
  // Each within [low, high].
  std::vector<std::int64_t> Ints(std::string_view key, std::int64_t low, std::int64_t high);
  std::optional<std::vector<std::int64_t>> TryInts(std::string_view key, std::int64_t low,
                                                   std::int64_t high);
  std::vector<double> Doubles(std::string_view key, double low, double high);
  // A sub-table; an absent one behaves as an empty table (Table notes the error, TryTable does
  // not).
  TomlTable Table(std::string_view key);
  std::optional<TomlTable> TryTable(std::string_view key);
  // An array of tables, empty if absent.
  std::vector<TomlTable> Tables(std::string_view key);

  bool Has(std::string_view key) const;
  // The keys present, in file order; does not make them known.
  std::vector<std::string> Keys() const;

  // "FILE:LINE:COLUMN" of a key's value, or of this table if the key is absent or empty.
  std::string Position(std::string_view key = {}) const;
  // Line of a key's value, or of this table; 0 if unknown.
  std::uint32_t Line(std::string_view key = {}) const;
  // Notes an error about a key: "FILE:LINE:COLUMN: `table.key` message".
  void Fail(std::string_view key, std::string_view message);
  // The same about the index-th item of a list, at the item's place.
  void FailItem(std::string_view key, std::size_t index, std::string_view message);
  // Notes an error of a nested parse, with the key's position before it.
  void Merge(std::string_view key, const Status& status);

 private:
  friend class TomlDocument;
  TomlTable(TomlDocument::State* state, const void* table, std::string path)
      : state_(state), table_(table), path_(std::move(path)) {}
  const void* Take(std::string_view key, bool required);

  TomlDocument::State* state_;
  const void* table_;  // a toml::table of the document, or null for "absent"
  std::string path_;   // "dataset[1].refs", for messages
};

}  // namespace domicile

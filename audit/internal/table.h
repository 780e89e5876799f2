// Tables for people: columns as wide as their longest cell, two spaces between, at most 100 wide.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace domicile::audit::internal {

// One thread at a time.
class Table {
 public:
  explicit Table(std::vector<std::string> header);

  void AlignRight(const std::vector<std::size_t>& columns);
  // As many cells as the header has. Cells of the widest columns are cut, with a `~`, where the row
  // would pass 100.
  void AddRow(std::vector<std::string> cells);
  // A line below the last row, indented, broken at spaces.
  void AddNote(const std::string& text);

  std::string Print() const;

 private:
  struct Line {
    std::vector<std::string> cells;  // of a row
    std::string note;                // of a note
  };
  std::vector<std::size_t> Widths() const;

  std::vector<std::string> header_;
  std::vector<bool> right_;
  std::vector<Line> lines_;
};

}  // namespace domicile::audit::internal

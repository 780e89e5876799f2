// RFC 4180 text, as exported tables really are: a UTF-8 byte order mark, CRLF, LF and CR ends in
// any mixture, quoted cells with doubled quotes and line ends inside. What is not a table is
// refused with its line, and nothing is guessed. No locale is consulted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace domicile::site_agent {

struct CsvLimits {
  std::size_t max_cell_bytes = 64 << 10;
  std::size_t max_columns = 10'000;
};

// Reads records one by one. The first is the header and fixes the number of cells. Memory: one
// record and a buffer of 64 KiB. One thread at a time.
class CsvReader {
 public:
  // Fills the span from its start and returns how much, 0 at the end; or an error.
  using Source = std::function<StatusOr<std::size_t>(std::span<char>)>;

  // `file` is what errors call it.
  CsvReader(Source source, std::string file, char delimiter, CsvLimits limits = {});

  // The next record into `cells` (reused), or false at the end. Lines that are wholly empty may
  // stand at the end of the file only. Errors: kInvalidArgument with "FILE:LINE: ...": another
  // number of cells than the header has, text after a closing quote, a quote inside an unquoted
  // cell, an unclosed quote, a zero byte, UTF-16, a limit; and those of the source. An error
  // sticks.
  StatusOr<bool> Next(std::vector<std::string>& cells);

  // The line on which the record last read begins; lines count from 1.
  std::uint64_t Line() const { return record_line_; }

 private:
  int Peek();  // the next byte; -1 at the end, and after an error of the source (in error_)
  bool Fill();
  void Advance() { ++position_; }
  void EndLine();
  Status SkipByteOrderMark();
  Status ReadRecord(std::vector<std::string>& cells);
  Status ReadCell(std::string& cell);
  Status ReadQuoted(std::string& cell);
  Status CheckWidth(std::size_t num_cells);
  Status Fail(std::uint64_t line, std::string_view what) const;

  Source source_;
  std::string file_;
  char delimiter_;
  CsvLimits limits_;

  std::vector<char> buffer_;
  std::size_t position_ = 0;
  std::size_t filled_ = 0;
  bool source_ended_ = false;
  bool started_ = false;
  std::uint64_t line_ = 1;
  std::uint64_t record_line_ = 1;
  std::uint64_t empty_line_ = 0;  // the first of a run of empty lines, 0 if none is open
  std::size_t num_columns_ = 0;   // of the header, 0 before it
  Status error_;
};

// Sources: a whole text in memory (borrowed), and a file. Errors of the second: as ReadFile.
CsvReader::Source TextSource(std::string_view text);
StatusOr<CsvReader::Source> FileSource(const std::string& path);

// A number in the declared form: an optional minus, digits with at most one decimal mark, an
// optional exponent; where a grouping mark is declared, digits before the decimal mark may be
// grouped in threes, all or none. Empty for anything else, for white space, and for what does not
// fit a float64.
std::optional<double> ParseNumber(std::string_view text, char decimal_mark,
                                  std::optional<char> grouping);

}  // namespace domicile::site_agent

#include "site_agent/datasets/csv.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

namespace domicile::site_agent {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "1.234.567" without its marks; empty unless all groups but the first have three digits, and that
// one to three.
std::optional<std::string> Ungroup(std::string_view text, char grouping) {
  std::string digits;
  bool first = true;
  for (const std::string_view group : Split(text, grouping)) {
    const bool fits = first ? !group.empty() && group.size() <= 3 : group.size() == 3;
    if (!fits) {
      return std::nullopt;
    }
    first = false;
    digits += group;
  }
  return digits;
}

}  // namespace

CsvReader::CsvReader(Source source, std::string file, char delimiter, CsvLimits limits)
    : source_(std::move(source)),
      file_(std::move(file)),
      delimiter_(delimiter),
      limits_(limits),
      buffer_(kBufferBytes) {}

StatusOr<bool> CsvReader::Next(std::vector<std::string>& cells) {
  RETURN_IF_ERROR(error_);
  if (!started_) {
    started_ = true;
    error_ = SkipByteOrderMark();
    RETURN_IF_ERROR(error_);
  }
  while (true) {
    const int next = Peek();
    if (next < 0) {
      RETURN_IF_ERROR(error_);
      return false;
    }
    const bool is_empty_line = next == '\r' || next == '\n';
    if (is_empty_line && num_columns_ != 1) {
      if (num_columns_ == 0) {
        return error_ = Fail(line_, "an empty line stands where the column names should be");
      }
      empty_line_ = empty_line_ == 0 ? line_ : empty_line_;
      EndLine();
      continue;
    }
    if (empty_line_ != 0) {
      return error_ = Fail(empty_line_, "an empty line stands between records; remove it");
    }
    error_ = ReadRecord(cells);
    RETURN_IF_ERROR(error_);
    return true;
  }
}

bool CsvReader::Fill() {
  if (source_ended_ || !error_.ok()) {
    return false;
  }
  if (position_ > 0) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(position_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), buffer_.begin());
    filled_ -= position_;
    position_ = 0;
  }
  const StatusOr<std::size_t> got = source_(std::span(buffer_).subspan(filled_));
  if (!got.ok()) {
    error_ = got.status();
    return false;
  }
  filled_ += *got;
  source_ended_ = *got == 0;
  return !source_ended_;
}

int CsvReader::Peek() {
  if (position_ == filled_ && !Fill()) {
    return -1;
  }
  return static_cast<unsigned char>(buffer_[position_]);
}

Status CsvReader::SkipByteOrderMark() {
  while (filled_ < kByteOrderMark.size() && Fill()) {
  }
  RETURN_IF_ERROR(error_);
  const std::string_view start(buffer_.data(), filled_);
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) {
    return Fail(1, "the text is UTF-16; export it as UTF-8");
  }
  if (start.starts_with(kByteOrderMark)) {
    position_ += kByteOrderMark.size();
  }
  return OkStatus();
}

// Passes one line end: CRLF, LF or CR.
void CsvReader::EndLine() {
  const int first = Peek();
  Advance();
  if (first == '\r' && Peek() == '\n') {
    Advance();
  }
  ++line_;
}

Status CsvReader::ReadRecord(std::vector<std::string>& cells) {
  record_line_ = line_;
  std::size_t num_cells = 0;
  while (true) {
    if (num_cells == limits_.max_columns) {
      return Fail(record_line_,
                  "more than " + std::to_string(limits_.max_columns) + " cells in one record");
    }
    if (num_cells == cells.size()) {
      cells.emplace_back();
    }
    RETURN_IF_ERROR(ReadCell(cells[num_cells]));
    ++num_cells;
    const int next = Peek();
    RETURN_IF_ERROR(error_);
    if (next >= 0 && static_cast<char>(next) == delimiter_) {
      Advance();
      continue;
    }
    if (next >= 0) {
      EndLine();
      RETURN_IF_ERROR(error_);
    }
    break;
  }
  cells.resize(num_cells);
  return CheckWidth(num_cells);
}

Status CsvReader::CheckWidth(std::size_t num_cells) {
  if (num_columns_ == 0) {
    num_columns_ = num_cells;
  }
  if (num_cells != num_columns_) {
    return Fail(record_line_, "a record of " + std::to_string(num_cells) +
                                  " cells, where the header names " + std::to_string(num_columns_) +
                                  " columns");
  }
  return OkStatus();
}

Status CsvReader::ReadCell(std::string& cell) {
  cell.clear();
  if (Peek() == '"') {
    return ReadQuoted(cell);
  }
  for (int next = Peek(); next >= 0; next = Peek()) {
    const char c = static_cast<char>(next);
    if (c == delimiter_ || c == '\r' || c == '\n') {
      break;
    }
    if (c == '"') {
      return Fail(line_, "a quote inside a cell that does not begin with one");
    }
    if (c == '\0') {
      return Fail(line_, "a zero byte; the file is not text");
    }
    if (cell.size() == limits_.max_cell_bytes) {
      return Fail(line_, "a cell is too long");
    }
    cell.push_back(c);
    Advance();
  }
  return error_;
}

Status CsvReader::ReadQuoted(std::string& cell) {
  const std::uint64_t begins = line_;
  Advance();
  while (true) {
    const int next = Peek();
    RETURN_IF_ERROR(error_);
    if (next < 0) {
      return Fail(begins, "a quoted cell begins here and is not closed");
    }
    Advance();
    if (next == '"') {
      const int after = Peek();
      RETURN_IF_ERROR(error_);
      if (after == '"') {
        Advance();
      } else if (after < 0 || after == '\r' || after == '\n' ||
                 static_cast<char>(after) == delimiter_) {
        return OkStatus();
      } else {
        return Fail(line_, "text after a closing quote");
      }
    }
    if (next == 0) {
      return Fail(line_, "a zero byte; the file is not text");
    }
    if (cell.size() == limits_.max_cell_bytes) {
      return Fail(begins, "a cell is too long; is a quote not closed?");
    }
    // A line counts at its end, however that is written.
    if (next == '\n' || (next == '\r' && Peek() != '\n')) {
      ++line_;
    }
    cell.push_back(static_cast<char>(next));
  }
}

Status CsvReader::Fail(std::uint64_t line, std::string_view what) const {
  return Error(StatusCode::kInvalidArgument,
               file_ + ":" + std::to_string(line) + ": " + std::string(what));
}

CsvReader::Source TextSource(std::string_view text) {
  return [text](std::span<char> out) mutable -> StatusOr<std::size_t> {
    const std::size_t size = std::min(out.size(), text.size());
    std::copy_n(text.begin(), size, out.begin());
    text.remove_prefix(size);
    return size;
  };
}

StatusOr<CsvReader::Source> FileSource(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return ErrnoError(errno, path);
  }
  // Shared only because std::function copies what it holds; the reader has the one copy in use.
  const auto file = std::make_shared<const FileHandle>(descriptor);
  return CsvReader::Source([file, path](std::span<char> out) -> StatusOr<std::size_t> {
    while (true) {
      const ssize_t got = ::read(file->descriptor(), out.data(), out.size());
      if (got >= 0) {
        return static_cast<std::size_t>(got);
      }
      if (errno != EINTR) {
        return ErrnoError(errno, path);
      }
    }
  });
}

std::optional<double> ParseNumber(std::string_view text, char decimal_mark,
                                  std::optional<char> grouping) {
  const bool is_negative = text.starts_with('-');
  text.remove_prefix(is_negative ? 1 : 0);
  const std::size_t exponent = std::min(text.find_first_of("eE"), text.size());
  const std::string_view number = text.substr(0, exponent);
  const std::size_t mark = std::min(number.find(decimal_mark), number.size());
  std::string whole(number.substr(0, mark));
  if (grouping && whole.find(*grouping) != std::string::npos) {
    const std::optional<std::string> digits = Ungroup(whole, *grouping);
    if (!digits) {
      return std::nullopt;
    }
    whole = *digits;
  }
  const std::string_view fraction =
      mark < number.size() ? number.substr(mark + 1) : std::string_view{};
  if (whole.size() + fraction.size() == 0 || !std::all_of(whole.begin(), whole.end(), IsDigit) ||
      !std::all_of(fraction.begin(), fraction.end(), IsDigit)) {
    return std::nullopt;
  }
  const StatusOr<double> value = ParseDouble(
      (is_negative ? "-" : "") + (whole.empty() ? "0" : whole) + "." +
      (fraction.empty() ? "0" : std::string(fraction)) + std::string(text.substr(exponent)));
  return value.ok() ? std::optional(*value) : std::nullopt;
}

}  // namespace domicile::site_agent

#include "audit/internal/table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status.h"

namespace domicile::audit::internal {

namespace {

constexpr std::size_t kWidest = 100;
constexpr std::string_view kGap = "  ";

std::string Cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::string Wrapped(std::string_view text, std::string_view indent) {
  std::string out;
  const std::size_t room = kWidest - indent.size();
  while (!text.empty()) {
    std::size_t end = text.size() <= room ? text.size() : text.rfind(' ', room);
    if (end == std::string_view::npos || end == 0) {
      end = std::min(room, text.size());  // one word that is longer than a line
    }
    out += std::string(indent) + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(end);
    if (!text.empty() && text.front() == ' ') {
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

Table::Table(std::vector<std::string> header)
    : header_(std::move(header)), right_(header_.size(), false) {}

void Table::AlignRight(const std::vector<std::size_t>& columns) {
  for (const std::size_t column : columns) {
    right_.at(column) = true;
  }
}

void Table::AddRow(std::vector<std::string> cells) {
  DOMICILE_CHECK(cells.size() == header_.size());
  lines_.push_back({.cells = std::move(cells), .note = {}});
}

void Table::AddNote(const std::string& text) { lines_.push_back({.cells = {}, .note = text}); }

std::vector<std::size_t> Table::Widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < header_.size(); ++i) {
    std::size_t width = header_[i].size();
    for (const Line& line : lines_) {
      width = line.cells.empty() ? width : std::max(width, line.cells[i].size());
    }
    widths.push_back(width);
  }
  const auto total = [&] {
    return std::accumulate(widths.begin(), widths.end(), kGap.size() * (widths.size() - 1));
  };
  // The widest column gives way first, but none below what its header and a few letters need.
  while (total() > kWidest) {
    auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= 8) {
      break;
    }
    --*widest;
  }
  return widths;
}

std::string Table::Print() const {
  const std::vector<std::size_t> widths = Widths();
  const auto print = [&](const std::vector<std::string>& cells) {
    std::string row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = Cut(cells[i], widths[i]);
      const std::string padding(widths[i] - cell.size(), ' ');
      row += (i == 0 ? "" : std::string(kGap)) + (right_[i] ? padding + cell : cell + padding);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    return row + "\n";
  };
  std::string out = print(header_);
  for (const Line& line : lines_) {
    out += line.cells.empty() ? Wrapped(line.note, "    ") : print(line.cells);
  }
  return out;
}

}  // namespace domicile::audit::internal

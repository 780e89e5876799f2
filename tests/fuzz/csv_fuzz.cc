// A table as somebody exported it. Where the source cuts its pieces makes no difference; every
// record has the width of the header; and the cells, quoted again, read as the same cells.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "site_agent/datasets/csv.h"

namespace {

using domicile::StatusOr;
using domicile::site_agent::CsvReader;
using Records = std::vector<std::vector<std::string>>;

CsvReader::Source InPieces(std::string_view text, std::size_t step) {
  return [text, step](std::span<char> out) mutable -> StatusOr<std::size_t> {
    const std::size_t size = std::min({step, out.size(), text.size()});
    std::copy_n(text.begin(), size, out.begin());
    text.remove_prefix(size);
    return size;
  };
}

std::optional<Records> ReadAll(std::string_view text, std::size_t step) {
  CsvReader reader(InPieces(text, step), "t", ',', {.max_cell_bytes = 1000, .max_columns = 20});
  Records records;
  std::vector<std::string> cells;
  while (true) {
    const StatusOr<bool> more = reader.Next(cells);
    if (!more.ok()) {
      return std::nullopt;
    }
    if (!*more) {
      return records;
    }
    DOMICILE_CHECK(records.empty() || cells.size() == records.front().size());
    records.push_back(cells);
  }
}

std::string Quote(const Records& records) {
  std::string text;
  for (const auto& record : records) {
    for (std::size_t i = 0; i < record.size(); ++i) {
      text += i == 0 ? "\"" : ",\"";
      for (const char c : record[i]) {
        text += c == '"' ? std::string("\"\"") : std::string(1, c);
      }
      text += "\"";
    }
    text += "\n";
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<Records> records = ReadAll(text, size + 1);
  DOMICILE_CHECK(records == ReadAll(text, 1));
  if (records) {
    DOMICILE_CHECK(records == ReadAll(Quote(*records), 7));
  }
  for (const char mark : {'.', ','}) {
    const auto plain = domicile::site_agent::ParseNumber(text, mark, std::nullopt);
    // Allowing a grouping may read more texts, never the same text as another number.
    const auto grouped = domicile::site_agent::ParseNumber(text, mark, '\'');
    DOMICILE_CHECK(!plain || plain == grouped);
  }
  return 0;
}

#include "site_agent/datasets/csv.h"

#include <clocale>
#include <locale>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "base/text.h"

namespace domicile::site_agent {
namespace {

using Records = std::vector<std::vector<std::string>>;

// Hands out a text in pieces of `step` bytes, so that every boundary falls everywhere.
CsvReader::Source InPieces(std::string_view text, std::size_t step) {
  return [text, step](std::span<char> out) mutable -> StatusOr<std::size_t> {
    const std::size_t size = std::min({step, out.size(), text.size()});
    std::copy_n(text.begin(), size, out.begin());
    text.remove_prefix(size);
    return size;
  };
}

StatusOr<Records> ReadAll(std::string_view text, char delimiter = ',', std::size_t step = 1) {
  CsvReader reader(InPieces(text, step), "t.csv", delimiter);
  Records records;
  std::vector<std::string> cells;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(cells));
    if (!more) {
      return records;
    }
    records.push_back(cells);
  }
}

std::string ErrorOf(std::string_view text) { return std::string(Message(ReadAll(text).status())); }

TEST_CASE("CsvReader: byte order mark, CRLF, LF, CR and mixtures read alike (C01)") {
  const Records want = {{"patient_id", "age"}, {"p1", "34"}, {"p2", "51"}};
  for (const std::string_view text :
       {"patient_id,age\np1,34\np2,51\n", "\xEF\xBB\xBFpatient_id,age\r\np1,34\r\np2,51\r\n",
        "patient_id,age\r\np1,34\r\np2,51", "patient_id,age\rp1,34\rp2,51\r",
        "patient_id,age\rp1,34\np2,51\r\n\r\n\n", "\"patient_id\",age\np1,\"34\"\np2,51"}) {
    for (const std::size_t step : {1U, 2U, 3U, 1000U}) {
      CAPTURE(text);
      CHECK(ReadAll(text, ',', step).value() == want);
    }
  }
}

TEST_CASE("CsvReader: quotes hold delimiters, quotes and line ends") {
  CHECK(ReadAll("a;b\n\"x;\"\"y\"\"\";\"1\r\n2\"\n", ';').value() ==
        Records{{"a", "b"}, {"x;\"y\"", "1\r\n2"}});
  CHECK(ReadAll("a\n\"\"\n\n7\n").value() == Records{{"a"}, {""}, {""}, {"7"}});
  CHECK(ReadAll("").value().empty());
}

TEST_CASE("CsvReader: what is not a table is refused with its line") {
  CHECK(ErrorOf("a,b\n1\n") == "t.csv:2: a record of 1 cells, where the header names 2 columns");
  CHECK(ErrorOf("a,b\n\"1\r\n\r\n\",2\n1,2,3\n") ==
        "t.csv:5: a record of 3 cells, where the header names 2 columns");
  CHECK(ErrorOf("a,b\n1,2\n\n3,4\n") == "t.csv:3: an empty line stands between records; remove it");
  CHECK(ErrorOf("a,b\n1,\"2\n3,4\n") == "t.csv:2: a quoted cell begins here and is not closed");
  CHECK(ErrorOf("a,b\n1,\"2\"x\n") == "t.csv:2: text after a closing quote");
  CHECK(ErrorOf("a,b\n1,5\"\n") == "t.csv:2: a quote inside a cell that does not begin with one");
  CHECK(ErrorOf("\na,b\n") == "t.csv:1: an empty line stands where the column names should be");
  CHECK(ErrorOf("\xFF\xFE"
                "a") == "t.csv:1: the text is UTF-16; export it as UTF-8");
  CHECK(ErrorOf(std::string_view("a,b\n1,\0002\n", 9)) ==
        "t.csv:2: a zero byte; the file is not text");
}

TEST_CASE("CsvReader: limits hold, and an error sticks") {
  const std::string text = "a,b\n" + std::string(100, 'x') + ",1\n";
  CsvReader reader(TextSource(text), "t.csv", ',', {.max_cell_bytes = 99});
  std::vector<std::string> cells;
  CHECK(reader.Next(cells).ok());
  CHECK_FALSE(reader.Next(cells).ok());
  CHECK(Message(reader.Next(cells).status()) == "t.csv:2: a cell is too long");
  CsvReader narrow(TextSource("a,b,c\n"), "t.csv", ',', {.max_columns = 2});
  CHECK_FALSE(narrow.Next(cells).ok());
}

TEST_CASE("CsvReader: a missing file is named") {
  const auto source = FileSource("/nonexistent/t.csv");
  CHECK(source.status().code() == StatusCode::kNotFound);
  CHECK(Message(source.status()).find("/nonexistent/t.csv") != std::string_view::npos);
}

TEST_CASE("CsvReader: reads back whatever cells are written by RFC 4180") {
  CHECK(rc::check([] {
    const auto width = *rc::gen::inRange<std::size_t>(2, 5);
    const auto cell =
        rc::gen::container<std::string>(rc::gen::element('a', ',', '"', '\n', '\r', ' '));
    auto records =
        *rc::gen::container<Records>(*rc::gen::inRange<std::size_t>(1, 6),
                                     rc::gen::container<std::vector<std::string>>(width, cell));
    std::string text;
    for (const auto& record : records) {
      for (std::size_t i = 0; i < record.size(); ++i) {
        text += i == 0 ? "\"" : ",\"";
        for (const char c : record[i]) {
          text += c == '"' ? std::string("\"\"") : std::string(1, c);
        }
        text += "\"";
      }
      text += *rc::gen::element<std::string>("\n", "\r\n", "\r");
    }
    RC_ASSERT(ReadAll(text, ',', 3).value() == records);
  }));
}

TEST_CASE("ParseNumber: reads the declared form and nothing else (C03)") {
  const struct {
    std::string_view text;
    char decimal;
    std::optional<char> grouping;
    std::optional<double> want;
  } cases[] = {
      {"5.6", '.', {}, 5.6},
      {"5,6", '.', {}, {}},
      {"5,6", ',', {}, 5.6},
      {"5.6", ',', {}, {}},
      {"1.234,5", ',', '.', 1234.5},
      {"12.000", ',', '.', 12000.0},
      {"950,25", ',', '.', 950.25},
      {"1.234,5", ',', {}, {}},
      {"12.000", ',', {}, {}},
      {"1.23,5", ',', '.', {}},
      {"1234.567", ',', '.', {}},
      {".234", ',', '.', {}},
      {"1234,5", ',', '.', 1234.5},
      {"1'234'567.5", '.', '\'', 1234567.5},
      {"1.5,234", '.', ',', {}},
      {"-0.25", '.', {}, -0.25},
      {"1e3", '.', {}, 1000.0},
      {"1.5E-2", '.', {}, 0.015},
      {"", '.', {}, {}},
      {"-", '.', {}, {}},
      {".", '.', {}, {}},
      {".5", '.', {}, 0.5},
      {"5.", '.', {}, 5.0},
      {" 5", '.', {}, {}},
      {"5 ", '.', {}, {}},
      {"+5", '.', {}, {}},
      {"nan", '.', {}, {}},
      {"inf", '.', {}, {}},
      {"0x10", '.', {}, {}},
      {"1.2.3", '.', {}, {}},
      {"1e999", '.', {}, {}},
      {"1e", '.', {}, {}},
      {"--1", '.', {}, {}},
      {"5\r", '.', {}, {}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.text);
    CHECK(ParseNumber(c.text, c.decimal, c.grouping) == c.want);
  }
}

// A decimal comma for the streams of this process.
class CommaMark final : public std::numpunct<char> {
 protected:
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST_CASE("ParseNumber: no locale of the process is consulted (C03)") {
  const std::locale before = std::locale::global(std::locale(std::locale(), new CommaMark));
  // Where the system has it, the C library's locale too.
  const char* const c_locale = std::setlocale(LC_ALL, "de_DE.UTF-8");
  MESSAGE("C locale: ",
          std::string(c_locale == nullptr ? "de_DE.UTF-8 is not installed" : c_locale));

  const std::optional<double> point = ParseNumber("7.25", '.', std::nullopt);
  const std::optional<double> comma = ParseNumber("7,25", '.', std::nullopt);
  const std::string printed = PrintDouble(1234.5);

  std::setlocale(LC_ALL, "C");
  std::locale::global(before);
  CHECK(point == 7.25);
  CHECK_FALSE(comma.has_value());
  CHECK(printed == "1234.5");
}

}  // namespace
}  // namespace domicile::site_agent

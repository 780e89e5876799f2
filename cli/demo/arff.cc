#include "cli/demo/arff.h"

#include <optional>
#include <utility>

#include "base/text.h"

namespace domicile::cli {

namespace {

// A Latin-1 byte as UTF-8.
void AppendUtf8(char byte, std::string& out) {
  const auto value = static_cast<unsigned char>(byte);
  if (value < 0x80) {
    out += byte;
    return;
  }
  out += static_cast<char>(0xC0U | (value >> 6U));
  out += static_cast<char>(0x80U | (value & 0x3FU));
}

char Unescaped(char letter) {
  switch (letter) {
    case 'n':
    case 'r':
      return '\n';
    case 't':
      return '\t';
    default:
      return letter;
  }
}

std::optional<ArffText> ParseLine(std::string_view line) {
  if (!line.starts_with('\'')) {
    return std::nullopt;
  }
  ArffText parsed;
  std::size_t at = 1;
  for (; at < line.size() && line[at] != '\''; ++at) {
    if (line[at] != '\\') {
      AppendUtf8(line[at], parsed.text);
    } else if (++at < line.size()) {
      AppendUtf8(Unescaped(line[at]), parsed.text);
    }
  }
  if (at + 2 >= line.size() || line[at + 1] != ',') {
    return std::nullopt;
  }
  parsed.label = StripWhitespace(line.substr(at + 2));
  return parsed.label.empty() ? std::nullopt : std::optional(std::move(parsed));
}

}  // namespace

StatusOr<std::vector<ArffText>> ParseArffTexts(std::string_view file, std::string_view name) {
  std::vector<ArffText> texts;
  bool in_data = false;
  std::size_t number = 0;
  for (const std::string_view raw : Split(file, '\n')) {
    ++number;
    const std::string_view line = StripWhitespace(raw);
    if (!in_data || line.empty() || line.starts_with('%')) {
      in_data = in_data || line == "@data";
      continue;
    }
    std::optional<ArffText> parsed = ParseLine(line);
    if (!parsed) {
      return Error(StatusCode::kInvalidArgument,
                   std::string(name) + ":" + std::to_string(number) +
                       ": must be a text in quotes, a comma, a class");
    }
    texts.push_back(*std::move(parsed));
  }
  return texts;
}

}  // namespace domicile::cli

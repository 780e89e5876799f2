#include "models/text/vocabulary.h"

#include <algorithm>

#include "models/text/basic_text.h"

namespace domicile::models {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 20U;
constexpr std::size_t kMaxTokenBytes = 400;

Status Refuse(std::size_t line, const char* what) {
  return Error(StatusCode::kInvalidArgument,
               "vocabulary: line " + std::to_string(line) + ": " + what);
}

bool IsBlankOrControl(char byte) {
  return static_cast<unsigned char>(byte) <= 0x20 || byte == 0x7f;
}

}  // namespace

StatusOr<Vocabulary> Vocabulary::Parse(std::string_view file) {
  Vocabulary vocabulary;
  std::size_t line = 0;
  while (!file.empty()) {
    ++line;
    const std::size_t end = std::min(file.find('\n'), file.size());
    const std::string_view token = file.substr(0, end);
    file.remove_prefix(std::min(end + 1, file.size()));
    if (token.empty() || token.size() > kMaxTokenBytes) {
      return Refuse(line, "a token must have 1 to 400 bytes");
    }
    if (std::any_of(token.begin(), token.end(), IsBlankOrControl)) {
      return Refuse(
          line, "white space or a control character in a token; lines end in a line feed alone");
    }
    if (!IsUtf8(token)) {
      return Refuse(line, "a token is not UTF-8");
    }
    if (line > kMaxTokens) {
      return Refuse(line, "a vocabulary may have at most 2^20 tokens");
    }
    if (!vocabulary.ids_.emplace(token, static_cast<std::uint32_t>(line - 1)).second) {
      return Refuse(line, "a token that an earlier line has");
    }
  }
  const struct {
    const char* token;
    std::uint32_t& id;
  } specials[] = {{"[PAD]", vocabulary.pad_},
                  {"[UNK]", vocabulary.unknown_},
                  {"[CLS]", vocabulary.begin_},
                  {"[SEP]", vocabulary.separator_}};
  for (const auto& special : specials) {
    const std::optional<std::uint32_t> id = vocabulary.Find(special.token);
    if (!id) {
      return Error(StatusCode::kInvalidArgument,
                   std::string("vocabulary: no line has the token `") + special.token + "`");
    }
    special.id = *id;
  }
  return vocabulary;
}

std::optional<std::uint32_t> Vocabulary::Find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace domicile::models

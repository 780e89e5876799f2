#include "models/text/basic_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <utf8proc.h>

#include "base/status.h"

namespace domicile::models {
namespace {

using Character = utf8proc_int32_t;

// The next character and how many bytes it takes; -1 and one byte where there is none.
struct Decoded {
  Character character = -1;
  std::size_t bytes = 1;
};

Decoded Next(std::string_view text) {
  Character character = -1;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()), &character);
  if (bytes <= 0 || character < 0) {
    return {};
  }
  return {.character = character, .bytes = static_cast<std::size_t>(bytes)};
}

bool IsSpace(Character c) {
  const utf8proc_category_t category = utf8proc_category(c);
  return c == '\t' || c == '\n' || c == '\r' || category == UTF8PROC_CATEGORY_ZS ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool IsDropped(Character c) {
  if (c < 0 || c == 0xFFFD) {
    return true;
  }
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CO ||
         category == UTF8PROC_CATEGORY_CS;
}

bool IsPunctuation(Character c) {
  if ((c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
      (c >= '{' && c <= '~')) {
    return true;
  }
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool IsIdeograph(Character c) {
  constexpr std::array<std::pair<Character, Character>, 8> kBlocks = {{{0x3400, 0x4DBF},
                                                                       {0x4E00, 0x9FFF},
                                                                       {0xF900, 0xFAFF},
                                                                       {0x20000, 0x2A6DF},
                                                                       {0x2A700, 0x2B73F},
                                                                       {0x2B740, 0x2B81F},
                                                                       {0x2B820, 0x2CEAF},
                                                                       {0x2F800, 0x2FA1F}}};
  return std::any_of(kBlocks.begin(), kBlocks.end(),
                     [c](const auto& block) { return c >= block.first && c <= block.second; });
}

// Cleaned, with a space for any white space and round ideographs, and decomposed: canonical
// decomposition of each character, then the canonical order of marks.
std::vector<Character> Decompose(std::string_view text) {
  std::string cleaned;
  cleaned.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = Next(text);
    const std::string_view bytes = text.substr(0, next.bytes);
    text.remove_prefix(next.bytes);
    if (next.character >= 0 && IsSpace(next.character)) {
      cleaned += ' ';
    } else if (IsDropped(next.character)) {
      continue;
    } else if (IsIdeograph(next.character)) {
      cleaned.append(1, ' ').append(bytes).append(1, ' ');
    } else {
      cleaned.append(bytes);
    }
  }
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  const auto decompose = [&cleaned](std::vector<Character>& out) {
    return utf8proc_decompose(reinterpret_cast<const utf8proc_uint8_t*>(cleaned.data()),
                              static_cast<utf8proc_ssize_t>(cleaned.size()), out.data(),
                              static_cast<utf8proc_ssize_t>(out.size()), kOptions);
  };
  std::vector<Character> characters(cleaned.size() + 16);
  utf8proc_ssize_t size = decompose(characters);
  if (size > static_cast<utf8proc_ssize_t>(characters.size())) {
    characters.resize(static_cast<std::size_t>(size));
    size = decompose(characters);
  }
  // Only UTF-8 goes in, and the buffer is as large as asked for: nothing is left to fail.
  DOMICILE_CHECK(size >= 0 && size <= static_cast<utf8proc_ssize_t>(characters.size()));
  characters.resize(static_cast<std::size_t>(size));
  return characters;
}

}  // namespace

std::vector<std::string> BasicWords(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&words, &word] {
    if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  };
  for (const Character decomposed : Decompose(text)) {
    if (utf8proc_category(decomposed) == UTF8PROC_CATEGORY_MN) {
      continue;
    }
    const Character c = utf8proc_tolower(decomposed);
    if (IsSpace(c)) {
      end_word();
      continue;
    }
    const bool alone = IsPunctuation(c);
    if (alone) {
      end_word();
    }
    std::array<utf8proc_uint8_t, 4> bytes{};
    const utf8proc_ssize_t size = utf8proc_encode_char(c, bytes.data());
    word.append(bytes.begin(), bytes.begin() + size);
    if (alone) {
      end_word();
    }
  }
  end_word();
  return words;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const Decoded next = Next(text);
    if (next.character < 0) {
      return false;
    }
    text.remove_prefix(next.bytes);
  }
  return true;
}

std::size_t NumCharacters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

}  // namespace domicile::models

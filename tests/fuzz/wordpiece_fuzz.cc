// A vocabulary file and a text from outside, with a zero byte between them. Whatever they are,
// reading ends; every id is of the vocabulary, no character of the text becomes a special token,
// and words that are split again are the same words.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/text/basic_text.h"
#include "models/text/wordpiece.h"

namespace {

using domicile::models::Vocabulary;

const Vocabulary& Fixed() {
  static const Vocabulary vocabulary =
      *Vocabulary::Parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n##a\nb\n##b\n##\xc3\xbc\n.\n[\n]\ncls\n");
  return vocabulary;
}

void CheckText(const Vocabulary& vocabulary, std::string_view text) {
  constexpr std::size_t kMaxLength = 64;
  const auto special = [&vocabulary](std::uint32_t id) {
    return id == vocabulary.pad() || id == vocabulary.begin() || id == vocabulary.separator();
  };
  const std::vector<std::uint32_t> pieces = domicile::models::WordPieces(vocabulary, text);
  DOMICILE_CHECK(std::all_of(pieces.begin(), pieces.end(),
                             [&vocabulary](auto id) { return id < vocabulary.size(); }));
  DOMICILE_CHECK(std::none_of(pieces.begin(), pieces.end(), special));
  const auto encoded = domicile::models::EncodeText(vocabulary, text, kMaxLength);
  DOMICILE_CHECK(encoded.ids.size() == std::min(pieces.size() + 2, kMaxLength));
  DOMICILE_CHECK(encoded.ids.size() == encoded.types.size());
  for (const std::string& word : domicile::models::BasicWords(text)) {
    DOMICILE_CHECK(domicile::models::IsUtf8(word) && !word.empty());
    DOMICILE_CHECK(domicile::models::BasicWords(word) == std::vector<std::string>{word});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), size);
  const std::string_view text = input.substr(std::min(end + 1, size));
  CheckText(Fixed(), text);
  const auto vocabulary = Vocabulary::Parse(input.substr(0, end));
  if (vocabulary.ok()) {
    CheckText(*vocabulary, text);
  }
  return 0;
}

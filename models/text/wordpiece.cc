#include "models/text/wordpiece.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "models/text/basic_text.h"

namespace domicile::models {
namespace {

constexpr std::size_t kMaxCharacters = 100;

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

void AppendPieces(const Vocabulary& vocabulary, std::string_view word,
                  std::vector<std::uint32_t>& ids) {
  const std::size_t before = ids.size();
  if (NumCharacters(word) > kMaxCharacters) {
    ids.push_back(vocabulary.unknown());
    return;
  }
  std::string piece;
  std::size_t at = 0;
  while (at < word.size()) {
    piece = at == 0 ? "" : "##";
    const std::size_t prefix = piece.size();
    piece += word.substr(at);
    std::optional<std::uint32_t> id;
    while (piece.size() > prefix && !(id = vocabulary.Find(piece))) {
      // Shorter by one character.
      while (ContinuesCharacter(piece.back())) {
        piece.pop_back();
      }
      piece.pop_back();
    }
    if (!id) {
      ids.resize(before);
      ids.push_back(vocabulary.unknown());
      return;
    }
    ids.push_back(*id);
    at += piece.size() - prefix;
  }
}

void Append(std::span<const std::uint32_t> pieces, std::uint32_t type, std::uint32_t separator,
            EncodedText& text) {
  text.ids.insert(text.ids.end(), pieces.begin(), pieces.end());
  text.ids.push_back(separator);
  text.types.resize(text.ids.size(), type);
}

}  // namespace

std::vector<std::uint32_t> WordPieces(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<std::uint32_t> ids;
  for (const std::string& word : BasicWords(text)) {
    AppendPieces(vocabulary, word, ids);
  }
  return ids;
}

EncodedText EncodeText(const Vocabulary& vocabulary, std::string_view text,
                       std::size_t max_length) {
  DOMICILE_CHECK(max_length >= 2);
  std::vector<std::uint32_t> pieces = WordPieces(vocabulary, text);
  pieces.resize(std::min(pieces.size(), max_length - 2));
  EncodedText encoded = {.ids = {vocabulary.begin()}, .types = {0}};
  Append(pieces, 0, vocabulary.separator(), encoded);
  return encoded;
}

EncodedText EncodePair(const Vocabulary& vocabulary, std::string_view first,
                       std::string_view second, std::size_t max_length) {
  DOMICILE_CHECK(max_length >= 3);
  std::vector<std::uint32_t> a = WordPieces(vocabulary, first);
  std::vector<std::uint32_t> b = WordPieces(vocabulary, second);
  while (a.size() + b.size() > max_length - 3) {
    (a.size() > b.size() ? a : b).pop_back();
  }
  EncodedText encoded = {.ids = {vocabulary.begin()}, .types = {0}};
  Append(a, 0, vocabulary.separator(), encoded);
  Append(b, 1, vocabulary.separator(), encoded);
  return encoded;
}

TokenBatch::TokenBatch(const Vocabulary& vocabulary, std::span<const EncodedText> texts) {
  for (const EncodedText& text : texts) {
    length_ = std::max(length_, text.ids.size());
  }
  ids_.assign(texts.size() * length_, vocabulary.pad());
  types_.assign(texts.size() * length_, 0);
  mask_.assign(texts.size() * length_, 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i * length_);
    std::copy(texts[i].ids.begin(), texts[i].ids.end(), ids_.begin() + at);
    std::copy(texts[i].types.begin(), texts[i].types.end(), types_.begin() + at);
    std::fill_n(mask_.begin() + at, texts[i].ids.size(), std::uint8_t{1});
  }
}

}  // namespace domicile::models

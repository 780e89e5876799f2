// WordPiece (Wu et al. 2016) as BERT uses it: words are cut, greedily from the left, into the
// longest pieces the vocabulary has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/layers/layer.h"
#include "models/text/vocabulary.h"

namespace domicile::models {

// One sequence with its special tokens.
struct EncodedText {
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> types;  // 0 up to and with the first [SEP], 1 after it

  friend bool operator==(const EncodedText&, const EncodedText&) = default;
};

// The pieces of a text, without special tokens: none of its characters can become one. A word of
// more than 100 characters, or with a part that the vocabulary lacks, is [UNK].
std::vector<std::uint32_t> WordPieces(const Vocabulary& vocabulary, std::string_view text);

// [CLS] text [SEP], cut at the end to `max_length` >= 2.
EncodedText EncodeText(const Vocabulary& vocabulary, std::string_view text, std::size_t max_length);

// [CLS] first [SEP] second [SEP], cut to `max_length` >= 3 by taking from the end of the longer of
// the two, the second where they are alike.
EncodedText EncodePair(const Vocabulary& vocabulary, std::string_view first,
                       std::string_view second, std::size_t max_length);

// Sequences of one length, padded with [PAD]. Owns what View() shows.
class TokenBatch {
 public:
  // The length is that of the longest.
  TokenBatch(const Vocabulary& vocabulary, std::span<const EncodedText> texts);

  TokenView View() const {
    return {.ids = ids_, .types = types_, .mask = mask_, .length = length_};
  }

 private:
  std::size_t length_ = 0;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> types_;
  std::vector<std::uint8_t> mask_;
};

}  // namespace domicile::models

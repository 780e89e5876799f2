// The vocabulary of a WordPiece tokenizer: BERT's vocab.txt, one token a line, the line's number
// the id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/status.h"

namespace domicile::models {

// Immutable.
class Vocabulary {
 public:
  // Errors: kInvalidArgument, naming the line: no tokens or more than 2^20, an empty line, one
  // longer than 400 bytes, with white space, a control character or bytes that are not UTF-8, a
  // token twice; one of [PAD], [UNK], [CLS], [SEP] missing.
  static StatusOr<Vocabulary> Parse(std::string_view file);

  std::size_t size() const { return ids_.size(); }
  std::optional<std::uint32_t> Find(std::string_view token) const;

  std::uint32_t pad() const { return pad_; }
  std::uint32_t unknown() const { return unknown_; }
  std::uint32_t begin() const { return begin_; }          // [CLS]
  std::uint32_t separator() const { return separator_; }  // [SEP]

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  Vocabulary() = default;

  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> ids_;
  std::uint32_t pad_ = 0;
  std::uint32_t unknown_ = 0;
  std::uint32_t begin_ = 0;
  std::uint32_t separator_ = 0;
};

}  // namespace domicile::models

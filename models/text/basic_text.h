// What BERT's uncased models do to a text before its words are cut into pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace domicile::models {

// Words in order, UTF-8, none empty: characters that are not text (U+FFFD, controls other than tab
// and line ends, format characters, private use, unassigned) are dropped; white space divides; CJK
// ideographs and punctuation marks are words of their own; accents go (NFD, then without
// non-spacing marks); letters become small. Bytes that are not UTF-8 are dropped as U+FFFD is.
std::vector<std::string> BasicWords(std::string_view text);

// Whether all of it is UTF-8, without surrogates and overlong forms.
bool IsUtf8(std::string_view text);

// The number of characters of a UTF-8 text.
std::size_t NumCharacters(std::string_view text);

}  // namespace domicile::models

// Text for people and from people: nearest spellings, locale-free numbers, visible bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace domicile {

// The candidate nearest to `word` in edit distance (at most a third of its length, at least 1), for
// "did you mean"; empty if none is near.
std::string NearestSpelling(std::string_view word, std::span<const std::string_view> candidates);
std::string NearestSpelling(std::string_view word, std::span<const std::string> candidates);

// All candidates that are as near as the nearest one, in their order. Where they are codes of law
// or places, a reader must see that it is a guess between several.
std::vector<std::string> NearestSpellings(std::string_view word,
                                          std::span<const std::string_view> candidates);

// Printable ASCII as it is, everything else as \xNN, so that invisible bytes and look-alikes show;
// cut after `limit` bytes. For local messages: what it shows may be data.
std::string Visible(std::string_view text, std::size_t limit = 80);

std::vector<std::string_view> Split(std::string_view text, char separator);
std::string_view StripWhitespace(std::string_view text);
std::string Join(std::span<const std::string> parts, std::string_view separator);

// Whether `name` is of the form of `pattern`, in which `*` stands for any characters, or none.
bool MatchesPattern(std::string_view pattern, std::string_view name);

// Decimal numbers, whatever the process locale. The whole text must be the number; no leading `+`,
// no white space. `inf` and `nan` are refused. Errors: kInvalidArgument, kOutOfRange.
StatusOr<double> ParseDouble(std::string_view text);
StatusOr<std::int64_t> ParseInt64(std::string_view text);
StatusOr<std::uint64_t> ParseUint64(std::string_view text);

// The shortest text that ParseDouble reads back to the same bits; `value` is finite.
std::string PrintDouble(double value);

}  // namespace domicile

// Names that must not be mixed up, each its own type. All are closed alphabets, so none can carry
// free text, a path or a look-alike letter.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace domicile {

// A name of lower-case ASCII letters, digits and inner hyphens, 1 to 63 characters, as in a DNS
// label: `zurich-basel`. The default value is empty and stands for "none".
template <typename Tag>
class Name {
 public:
  Name() = default;
  // Errors: kInvalidArgument, naming what kind of name was wanted.
  static StatusOr<Name> Parse(std::string_view text);

  const std::string& text() const { return text_; }
  bool IsNone() const { return text_.empty(); }
  friend bool operator==(const Name&, const Name&) = default;
  friend auto operator<=>(const Name&, const Name&) = default;

 private:
  std::string text_;
};

using SiteId = Name<struct SiteTag>;  // one place with data
using OrganisationId =
    Name<struct OrganisationTag>;              // who runs a site; contributors are counted by it
using DatasetAlias = Name<struct DatasetTag>;  // what a dataset is called outside its site
using JobId = Name<struct JobTag>;             // one training request

extern template class Name<struct SiteTag>;
extern template class Name<struct OrganisationTag>;
extern template class Name<struct DatasetTag>;
extern template class Name<struct JobTag>;

// Rounds count from 1: 0 is "no round", and what an absent field of a message says.
using RoundNumber = std::uint32_t;

// The pair of an aggregator's starts and its attempts at a round; both count from 1.
struct Epoch {
  std::uint64_t starts = 0;
  std::uint32_t attempt = 0;
  friend bool operator==(const Epoch&, const Epoch&) = default;
  friend auto operator<=>(const Epoch&, const Epoch&) = default;
};

}  // namespace domicile

// Places: ISO 3166-1 alpha-2 countries, ISO 3166-2 subdivisions, and the areas that rules name.
//
// One rule of containment, used everywhere: a country code covers its subdivisions, by the part
// before the hyphen. `US` covers `US-OH`; `US-DE` (Delaware) lies in `US` and never in `DE`;
// `DE-BY` (Bavaria) lies in `DE`. Nothing is compared by prefix or substring, no case is folded,
// nothing is trimmed, and an empty place is in no area.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace domicile::policy {

// A country (`DE`) or a subdivision (`US-OH`). Immutable. The default value is "none": in no area.
class Jurisdiction {
 public:
  Jurisdiction() = default;
  // Two upper-case letters of the official list, or such a code, a hyphen and one to three
  // upper-case letters or digits. Subdivisions of the countries in IsoListedSubdivisions() are
  // checked against ISO 3166-2, others by form. One place has one code: `US-PR` is refused, since
  // `PR` is a country of the list. Errors: kInvalidArgument, with a hint for the usual mistakes
  // (`UK`, `EL`, `XK`, `EU`, names, three letters, small letters, spaces, look-alike letters,
  // lists, `*`, an unknown subdivision with the nearest one).
  static StatusOr<Jurisdiction> Parse(std::string_view text);
  const std::string& text() const { return text_; }
  std::string_view Country() const { return std::string_view(text_).substr(0, 2); }
  bool IsSubdivision() const { return text_.size() > 2; }
  bool IsNone() const { return text_.empty(); }
  // This place is `inner`, or a country that `inner` is a subdivision of.
  bool Covers(const Jurisdiction& inner) const;

  friend bool operator==(const Jurisdiction&, const Jurisdiction&) = default;
  friend auto operator<=>(const Jurisdiction&, const Jurisdiction&) = default;

 private:
  explicit Jurisdiction(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// What a rule may name: a jurisdiction, or a bloc (`EU`, `EEA`) whose members are dated legal
// facts. `EU` and `EEA` are different blocs, and neither is "adequate". Immutable.
class Area {
 public:
  Area() = default;
  // Errors: kInvalidArgument, as Jurisdiction::Parse.
  static StatusOr<Area> Parse(std::string_view text);
  static Area Of(const Jurisdiction& place);
  const std::string& text() const { return text_; }
  bool IsBloc() const { return is_bloc_; }
  // The place, where this is no bloc.
  const Jurisdiction& Place() const { return place_; }

  friend bool operator==(const Area&, const Area&) = default;
  friend auto operator<=>(const Area&, const Area&) = default;

 private:
  std::string text_;
  bool is_bloc_ = false;
  Jurisdiction place_;
};

// Why a text is no jurisdiction and what to write instead, without the text itself: it may be
// anything.
std::string JurisdictionHint(std::string_view text);

// ` (did you mean `X`?)`, with up to three spellings that are equally near: where codes of law or
// places are one letter apart, one guess would be read as advice. Empty if none or more are.
std::string DidYouMean(std::string_view text, std::span<const std::string_view> known);

// The names of blocs. Who is in them, and when, is in the legal facts.
std::span<const std::string_view> BlocNames();

// The 249 officially assigned alpha-2 codes, sorted.
std::span<const std::string_view> CountryCodes();

}  // namespace domicile::policy

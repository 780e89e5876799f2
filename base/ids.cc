#include "base/ids.h"

#include <algorithm>

#include "base/text.h"

namespace domicile {

namespace {

constexpr std::size_t kLongestName = 63;

bool IsNameText(std::string_view text) {
  const auto inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kLongestName && text.front() != '-' &&
         text.back() != '-' && std::all_of(text.begin(), text.end(), inner);
}

template <typename Tag>
constexpr std::string_view kKind = "name";
template <>
constexpr std::string_view kKind<SiteTag> = "site";
template <>
constexpr std::string_view kKind<OrganisationTag> = "organisation";
template <>
constexpr std::string_view kKind<DatasetTag> = "dataset alias";
template <>
constexpr std::string_view kKind<JobTag> = "job id";

}  // namespace

template <typename Tag>
StatusOr<Name<Tag>> Name<Tag>::Parse(std::string_view text) {
  if (!IsNameText(text)) {
    return Error(StatusCode::kInvalidArgument, "`" + Visible(text) + "` is not a " +
                                                   std::string(kKind<Tag>) +
                                                   ": 1 to 63 of a-z, 0-9 and inner hyphens");
  }
  Name name;
  name.text_ = text;
  return name;
}

template class Name<SiteTag>;
template class Name<OrganisationTag>;
template class Name<DatasetTag>;
template class Name<JobTag>;

}  // namespace domicile

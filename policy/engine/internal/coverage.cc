#include "policy/engine/internal/coverage.h"

#include <algorithm>
#include <utility>

namespace domicile::policy::internal {

Cover Coverage::Of(const Area& area, const Jurisdiction& place, std::set<std::string>* used) {
  if (!area.IsBloc()) {
    return area.Place().Covers(place) ? Cover::kYes : Cover::kNo;
  }
  auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& known) {
    return known.bloc == area.text() && known.place == place.text();
  });
  if (found == known_.end()) {
    Known known{.bloc = area.text(), .place = place.text(), .cover = Cover::kUnknown, .read = {}};
    known.cover = Covers(area, place, facts_, now_, &known.read);
    found = known_.insert(known_.end(), std::move(known));
  }
  if (used != nullptr) {
    used->insert(found->read.begin(), found->read.end());
  }
  return found->cover;
}

Cover Coverage::Any(const std::set<Area>& areas, const Jurisdiction& place,
                    std::set<std::string>* used) {
  Cover best = Cover::kNo;
  for (const Area& area : areas) {
    switch (Of(area, place, used)) {
      case Cover::kYes:
        return Cover::kYes;
      case Cover::kUnknown:
        best = Cover::kUnknown;
        break;
      case Cover::kNo:
        break;
    }
  }
  return best;
}

}  // namespace domicile::policy::internal

#include "site_agent/datasets/fault.h"

namespace domicile::site_agent {

Status Fault::LocalStatus() const {
  std::string text;
  for (const std::string& line : local_) {
    text += (text.empty() ? "" : "\n") + line;
  }
  return Error(StatusCode::kInvalidArgument, text);
}

}  // namespace domicile::site_agent

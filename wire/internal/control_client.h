// The site's end of the control stream.
#pragma once

#include <memory>

#include "wire/client.h"
#include "wire/internal/connection.h"

namespace domicile::wire::internal {

std::unique_ptr<ControlStream> OpenControlStream(const Connection& connection,
                                                 ControlListener& listener);

}  // namespace domicile::wire::internal

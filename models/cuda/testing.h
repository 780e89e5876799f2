// The plug-in that a test program runs: the rehearsal (rehearsal.cc), or the real one.
#pragma once

#include <string>

namespace domicile::models {

std::string TestPlugin();

}  // namespace domicile::models

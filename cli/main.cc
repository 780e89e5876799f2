// The `domicile` command.
#include <iostream>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "cli/command.h"

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  const domicile::SystemClock clock;
  domicile::SystemRandom random;
  domicile::cli::Context context{.clock = clock,
                                 .random = random,
                                 .out = std::cout,
                                 .err = std::cerr,
                                 .out_is_terminal = isatty(STDOUT_FILENO) == 1};
  return domicile::cli::RunProgram(args, context);
}

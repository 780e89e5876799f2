#include "bench/floor.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "bench/processes.h"

namespace domicile::bench {

TEST_CASE("FloorOfRound: every byte both ways, three digests, packed on the cores, then the file") {
  const ByteCosts costs = {.seal = 1e-9, .open = 2e-9, .tcp = 3e-9, .sha256 = 4e-9};

  const Floor floor = FloorOfRound(costs, 0.5, 1'000'000, 4, 2);

  // One way: 4 sites of 4 MB. 2 x 16e6 x 6e-9 + 3 x 16e6 x 4e-9.
  CHECK(floor.wire_bytes == 32'000'000);
  CHECK(floor.cpu_seconds == doctest::Approx(0.384));
  CHECK(floor.seconds == doctest::Approx(0.384 / 2 + 0.5));
}

TEST_CASE("MeasureByteCosts: every part of the floor costs something") {
  const StatusOr<ByteCosts> costs = MeasureByteCosts();

  REQUIRE(costs.ok());
  CHECK(costs->seal > 0);
  CHECK(costs->open > 0);
  CHECK(costs->tcp > 0);
  CHECK(costs->sha256 > 0);
}

TEST_CASE(
    "CpuSecondsOf, PeakMibOf: this process has cost something, one that is not there is said") {
  volatile std::uint64_t work = 0;
  StatusOr<double> cpu = CpuSecondsOf(getpid());
  for (; cpu.ok() && *cpu < 0.02; cpu = CpuSecondsOf(getpid())) {
    work = work + 1;
  }

  REQUIRE(cpu.ok());
  CHECK(*cpu >= 0.02);
  const StatusOr<double> peak = PeakMibOf(getpid());
  REQUIRE(peak.ok());
  CHECK(*peak > 1);
  CHECK(*peak < 4096);
  CHECK(CpuSecondsOf(-2).status().code() == StatusCode::kNotFound);
}

}  // namespace domicile::bench

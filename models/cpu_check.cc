#include "models/cpu_check.h"

#include <string>

namespace domicile::models {

std::string_view KernelIsa() { return DOMICILE_ISA; }

Status CheckCpu() {
  std::string missing;
  const auto require = [&missing](bool present, std::string_view name) {
    if (!present) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  };
#if defined(__x86_64__)
  // The builtin also asks whether the operating system saves the wide registers.
  __builtin_cpu_init();
  const std::string_view isa = KernelIsa();
  if (isa == "x86-64-v3" || isa == "x86-64-v4") {
    require(__builtin_cpu_supports("avx") != 0, "AVX");
    require(__builtin_cpu_supports("avx2") != 0, "AVX2");
    require(__builtin_cpu_supports("fma") != 0, "FMA");
    require(__builtin_cpu_supports("bmi") != 0, "BMI1");
    require(__builtin_cpu_supports("bmi2") != 0, "BMI2");
  }
  if (isa == "x86-64-v4") {
    require(__builtin_cpu_supports("avx512f") != 0, "AVX-512F");
    require(__builtin_cpu_supports("avx512bw") != 0, "AVX-512BW");
    require(__builtin_cpu_supports("avx512cd") != 0, "AVX-512CD");
    require(__builtin_cpu_supports("avx512dq") != 0, "AVX-512DQ");
    require(__builtin_cpu_supports("avx512vl") != 0, "AVX-512VL");
  }
#endif
  if (missing.empty()) {
    return OkStatus();
  }
  return Error(StatusCode::kFailedPrecondition,
               "this program was built for `" + std::string(KernelIsa()) +
                   "`, and this processor lacks " + missing +
                   "; use a build configured with -DDOMICILE_ISA=x86-64");
}

}  // namespace domicile::models

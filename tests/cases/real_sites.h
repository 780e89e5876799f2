// Sites of a case that train for real, over tables of a few rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tests/cases/federation.h"

namespace domicile::test {

// A site with this table, whose policy lets jobs learn from a handful of rows. `more`: lines of its
// dataset.toml.
inline CaseSite TableSite(const std::string& name, const std::string& jurisdiction,
                          const std::string& csv, const std::string& more = "") {
  CaseSite site;
  site.name = name;
  site.jurisdiction = jurisdiction;
  site.data = TableData(csv, more);
  site.policy = {{"min_batch = 10", "min_batch = 1\nrequire.privacy.min_cohort = 1"},
                 {"min_local_steps = 5", "min_local_steps = 1"}};
  return site;
}

// A file of tests/golden/cases.
inline std::string CaseFile(const std::string& name) {
  return Must(ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/tests/golden/cases/" + name, 1 << 20));
}

// A job over `inputs` (`[[feature]]` tables and `[label]`), averaged by examples.
struct TrainingJob {
  std::string inputs;
  std::string model;     // lines of `[model]`
  std::string training;  // lines of `[training]`
  int rounds = 1;
};
inline std::string TrainingJobFile(const TrainingJob& job) {
  return "name = \"A case\"\npurpose = \"algorithm_testing\"\ndataset = \"numbers\"\n"
         "recipients = [\"sites\", \"operator\"]\n" +
         job.inputs + "[model]\n" + job.model + "[training]\n" + job.training +
         "[rounds]\ncount = " + std::to_string(job.rounds) +
         "\nquorum = 3\ndeadline_seconds = 120\nattempts = 1\n"
         "[update]\nview = \"plain\"\nweight = \"examples\"\nmax_weight = 1000\nmax_sites = 8\n"
         "clip_l2 = 64.0\nscale_bits = 24\n";
}

// Numbers that are so near each other as float32 and a grid of 2^-24 can be.
inline bool Near(const std::vector<float>& got, const std::vector<double>& wanted,
                 double most = 1e-5) {
  bool near = got.size() == wanted.size();
  for (std::size_t i = 0; near && i < got.size(); ++i) {
    const double apart = static_cast<double>(got[i]) - wanted[i];
    near = apart < most && -apart < most;
  }
  return near;
}

}  // namespace domicile::test

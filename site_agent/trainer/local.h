// `domicile-trainer --local`: what one person, who may see all the data, compares a federation
// with. Runs in one process without grant or network; used by the demo and by operators.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace domicile::site_agent {

struct LocalRequest {
  std::string plan_file;  // a job file (TOML) or a plan (canonical JSON)
  std::vector<std::string>
      datasets;  // description files, or NAME=FILE; the name defaults to the
                 // file's, without "dataset." and ".toml", or else its folder's
  std::optional<std::string> model_file;  // a federated model (safetensors)
  std::vector<std::string> pretrained;    // model files that the plan may name by their digest
  std::vector<std::string> vocabularies;  // vocabulary files likewise
  std::size_t threads = 1;
};

// Each dataset alone, all of them together (centralised) and, with a model file, the federated
// model and, for classes, the federated model with each site's own intercept; every model measured
// on all test rows and on each site's. Decimals are strings; an AUC without two classes is absent.
// Normalisation, where the plan asks for it, is that of all training rows together.
//
//   {"v": 1, "plan": NAME, "sites": [{"name", "training_rows", "test_rows", "dropped_rows"}, ...],
//    "models": [{"name": "local:cleveland" | "local at home" | "centralised" | "federated" |
//                        "federated, own intercept",
//                "all": {"examples", "accuracy", "majority", "log_loss", "auc"?} or, of a number,
//                       {"examples", "root_mean_square_error", "standard_deviation"},
//                "sites": {NAME: {the same}, ...}}, ...],
//    "own_intercepts": {NAME: [BIAS, ...], ...}?, "max_weight_difference": DECIMAL?}
//
// Errors: kInvalidArgument (local lines of the faults), kNotFound.
StatusOr<Json> RunLocal(const LocalRequest& request);

}  // namespace domicile::site_agent

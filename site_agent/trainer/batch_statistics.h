// Running statistics of batch norms. They describe records and never travel: a site forms them from
// its own training rows for the model that it was sent (models/layers/batch_norm.h).
#pragma once

#include "site_agent/datasets/dataset.h"
#include "site_agent/trainer/model_inputs.h"

namespace domicile::site_agent {

// Forms them in `model`, which must fit the rows; a model without batch norms, or no rows, is left
// as it is. The same rows and weights give the same bits.
void FormStatistics(const Rows& training, PreparedModel& model);

}  // namespace domicile::site_agent

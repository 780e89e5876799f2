// `domicile-trainer --check-data`: what the operator of a site sees of a dataset, and of how it
// fits a job, before any round. For the site's own eyes: it names columns, classes and counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace domicile::site_agent {

struct CheckRequest {
  std::string description;                // file
  std::optional<std::string> plan;        // a job file (TOML) or a plan (canonical JSON)
  std::vector<std::string> vocabularies;  // files, for jobs with a text
  bool show_values = false;               // whether faults may quote the cell
};

struct CheckReport {
  bool fits = false;  // the data can be read and, with a plan, is what the job expects
  // {"v": 1, "description": FILE, "alias"?, "version"?, "fits": BOOL, "rows": N,
  //  "columns": [{"name", "job_name"?, "missing": ROWS}, ...],
  //  "plan"?: {"name", "rows_read", "rows_used", "rows_dropped", "training_rows", "test_rows",
  //            "missing": [{"column", "rows"}, ...], "classes": [{"name", "rows"}, ...]},
  //  "faults": [LINE, ...], "notices": [LINE, ...]}; "rows" and "columns" where it can be read,
  // the counts of "plan" where it fits.
  Json json;
  std::string text;  // the same for a person
};

// Errors: kInvalidArgument, kNotFound: plan, description or vocabulary cannot be read or parsed.
StatusOr<CheckReport> CheckData(const CheckRequest& request);

}  // namespace domicile::site_agent

// What one federation of the demo is about: who takes part, with which data, for which job.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace domicile::cli {

struct DemoSite {
  std::string name;
  std::string jurisdiction;
  std::string organisation;
};

struct DemoCase {
  std::string federation;  // its trust domain
  std::string place;       // what a site is: "hospital"
  std::string opening;     // who takes part, in words
  std::vector<DemoSite> sites;
  std::string policies;   // folder of federation, aggregator and facts
  std::string job;        // the text of the job file
  std::string reference;  // what others have measured, for the end; may be empty
  // Of each site, by its name: the text of its policy, and its files below its data folder, among
  // them dataset.toml.
  std::map<std::string, std::string> site_policies;
  std::map<std::string, std::map<std::string, Bytes>> files;
  // Files that the sites have and the job names by digest.
  std::vector<std::string> pretrained;
  std::vector<std::string> vocabularies;
};

// Cleveland, Budapest, Zurich and Basel, Long Beach.
const std::vector<DemoSite>& HeartSites();

enum class Split : std::uint8_t { kNone = 0, kIid = 1, kDirichlet = 2, kTwoClasses = 3 };

struct CaseOptions {
  std::string examples;        // deploy/examples, or where it is installed
  std::uint32_t rounds = 0;    // 0: the job's own
  Split split = Split::kNone;  // fashion; none: IID
  std::uint32_t rows = 0;  // fashion: training pictures in all, reuters: texts; 0: the case's own
  bool adapters = false;   // reuters: adapters instead of the head alone
};

// Real records of four hospitals. Errors: those of files; kInvalidArgument: the files do not fit.
StatusOr<DemoCase> HeartCase(const CaseOptions& options);
// Fashion-MNIST cut up for five laboratories. Errors: kNotFound: the data set is not installed.
StatusOr<DemoCase> FashionCase(const CaseOptions& options);
// News for four laboratories. Errors: kNotFound: the texts or the pretrained model are not here.
StatusOr<DemoCase> ReutersCase(const CaseOptions& options);

// ---- for the cases ----

// A file of the examples, at most 4 MiB.
StatusOr<std::string> ReadExample(const CaseOptions& options, const std::string& name);
// The text with another `count` of rounds, if any is asked for.
StatusOr<std::string> WithRounds(std::string job, std::uint32_t rounds);
// A case of laboratories in the EEA on a dataset of this alias.
StatusOr<DemoCase> LaboratoryCase(const CaseOptions& options, const std::string& dataset,
                                  std::size_t sites);

}  // namespace domicile::cli

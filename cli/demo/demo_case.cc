#include "cli/demo/demo_case.h"

#include <string_view>

#include "base/file.h"

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestExample = std::uint64_t{4} << 20U;

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

Bytes BytesOf(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

const std::vector<DemoSite>& HeartSites() {
  static const std::vector<DemoSite> sites = {
      {.name = "cleveland", .jurisdiction = "US-OH", .organisation = "cleveland-clinic"},
      {.name = "budapest", .jurisdiction = "HU", .organisation = "hungarian-cardiology"},
      {.name = "zurich-basel", .jurisdiction = "CH", .organisation = "zurich-basel-hospitals"},
      {.name = "long-beach", .jurisdiction = "US-CA", .organisation = "va-long-beach"}};
  return sites;
}

StatusOr<std::string> ReadExample(const CaseOptions& options, const std::string& name) {
  return ReadFile(JoinPath(options.examples, name), kLargestExample);
}

StatusOr<std::string> WithRounds(std::string job, std::uint32_t rounds) {
  if (rounds == 0) {
    return job;
  }
  // The example's own count, replaced; everything else of the file stays as people can read it.
  static constexpr std::string_view kCount = "\ncount = ";
  const std::size_t at = job.find(kCount);
  if (at == std::string::npos) {
    return Error(StatusCode::kInvalidArgument, "the example job does not say `count = `");
  }
  const std::size_t begin = at + kCount.size();
  return job.replace(begin, job.find('\n', begin) - begin, std::to_string(rounds));
}

StatusOr<DemoCase> HeartCase(const CaseOptions& options) {
  DemoCase demo;
  demo.federation = "hearts.example";
  demo.place = "hospital";
  demo.opening = "an aggregator in Ireland and four hospitals in three countries";
  demo.sites = HeartSites();
  demo.policies = JoinPath(options.examples, "heart");
  ASSIGN_OR_RETURN(std::string job, ReadExample(options, "heart/job.toml"));
  ASSIGN_OR_RETURN(demo.job, WithRounds(std::move(job), options.rounds));
  for (const DemoSite& site : demo.sites) {
    ASSIGN_OR_RETURN(demo.site_policies[site.name],
                     ReadExample(options, "heart/site." + site.name + ".policy.toml"));
    ASSIGN_OR_RETURN(const std::string description,
                     ReadExample(options, "heart/dataset." + site.name + ".toml"));
    ASSIGN_OR_RETURN(const std::string table,
                     ReadExample(options, "heart/data/" + site.name + ".csv"));
    demo.files[site.name] = {{"dataset.toml", BytesOf(description)},
                             {"data/" + site.name + ".csv", BytesOf(table)}};
  }
  return demo;
}

StatusOr<DemoCase> LaboratoryCase(const CaseOptions& options, const std::string& dataset,
                                  std::size_t sites) {
  static const std::vector<DemoSite> all = {
      {.name = "munich", .jurisdiction = "DE", .organisation = "laboratory-munich"},
      {.name = "lyon", .jurisdiction = "FR", .organisation = "laboratory-lyon"},
      {.name = "delft", .jurisdiction = "NL", .organisation = "laboratory-delft"},
      {.name = "porto", .jurisdiction = "PT", .organisation = "laboratory-porto"},
      {.name = "oulu", .jurisdiction = "FI", .organisation = "laboratory-oulu"}};
  DOMICILE_CHECK(sites <= all.size());
  DemoCase demo;
  demo.federation = "laboratories.example";
  demo.place = "laboratory";
  demo.opening = "an aggregator in Ireland and " + std::to_string(sites) +
                 " laboratories in as many countries";
  demo.sites.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(sites));
  demo.policies = JoinPath(options.examples, "laboratories");
  ASSIGN_OR_RETURN(const std::string policy,
                   ReadExample(options, "laboratories/site.policy.toml.in"));
  for (const DemoSite& site : demo.sites) {
    std::string own = policy;
    ReplaceAll(own, "@SITE@", site.name);
    ReplaceAll(own, "@PLACE@", site.jurisdiction);
    ReplaceAll(own, "@DATASET@", dataset);
    demo.site_policies[site.name] = std::move(own);
  }
  return demo;
}

}  // namespace domicile::cli

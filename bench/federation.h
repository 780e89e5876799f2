// A federation of real programs on this machine, for measuring: one aggregator and some sites, all
// in Ireland, so that no border needs a ground; trainers that train nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "cli/demo/child.h"

namespace domicile::bench {

struct RoundShape {
  std::uint64_t parameters = 1'000'000;
  std::uint32_t sites = 3;   // organisations that contribute: a policy accepts no fewer than three
  std::uint32_t rounds = 5;  // after the one that warms up
};

// Keys, certificates and policies are made anew; every check of the product is in force. The
// policies are permissive by name: they put no limit on how much may leave, since nothing does.
// One thread at a time.
class BenchFederation {
 public:
  // `programs`: the folder of the programs. The folder must be there and empty.
  static StatusOr<BenchFederation> Create(const std::string& folder, const std::string& programs,
                                          const RoundShape& shape, const Clock& clock,
                                          Random& random);

  // Starts everything and waits until all sites are connected.
  Status Start();
  // Signs what waits for approval at any site.
  Status Approve();
  // Asks every program to stop, sites first, and waits.
  void Stop();

  const std::string& Address() const { return address_; }
  std::string OperatorIdentity() const { return Path("operator"); }
  std::string AggregatorLog() const { return Path("aggregator/state/aggregator.db"); }
  std::string JobFile() const;
  std::string Path(const std::string& name) const;

  pid_t Aggregator() const { return aggregator_->pid(); }
  std::vector<pid_t> Agents() const;
  std::vector<pid_t> Trainers() const;

 private:
  BenchFederation(std::string folder, std::string programs, RoundShape shape)
      : folder_(std::move(folder)), programs_(std::move(programs)), shape_(shape) {}
  std::string Site(std::uint32_t number) const;
  std::string SitePath(std::uint32_t number, const std::string& name) const;
  Status MakeIdentities(const Clock& clock, Random& random);
  Status WritePolicies(const std::string& folder, WallTime now) const;
  Status WriteSite(std::uint32_t number, WallTime now) const;
  Status WriteAgentConfig(std::uint32_t number) const;

  std::string folder_;
  std::string programs_;
  RoundShape shape_;
  std::string address_;
  std::map<std::uint32_t, std::string> approver_keys_;  // public, by number of the site
  std::optional<cli::Child> aggregator_;
  std::vector<cli::Child> trainers_;
  std::vector<cli::Child> agents_;
};

}  // namespace domicile::bench

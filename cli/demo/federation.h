// The demo's federation on disk and as processes: an authority, an aggregator, the sites of a case.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "cli/demo/child.h"
#include "cli/demo/demo_case.h"

namespace domicile::cli {

// A folder for each party, with its configuration, output and `audit/`. One thread at a time.
class DemoFederation {
 public:
  // Makes the folders, keys, certificates and configuration files of a new federation in `folder`.
  // `programs`: where the programs are.
  static StatusOr<DemoFederation> Create(const std::string& folder, DemoCase demo_case,
                                         const std::string& programs, const Clock& clock,
                                         Random& random);

  // Starts the aggregator and every site, and waits until all are connected.
  Status Start();
  // Writes every agent's configuration. Start() does, once the aggregator has said its address.
  Status WriteAgentConfigs(const std::string& address);
  // Asks every program to stop, sites first, and waits.
  void Stop();
  // Signs the policies and facts of a site again, after somebody has changed them.
  Status SignPolicies(const DemoSite& site) const;
  // Signs what waits for approval at a site, as its operator would; true if something was signed.
  StatusOr<bool> Approve(const DemoSite& site);

  const DemoCase& Case() const { return case_; }
  const std::string& Folder() const { return folder_; }
  std::string Address() const { return address_; }
  std::string OperatorIdentity() const { return Path("operator"); }
  std::string JobFile() const { return Path("operator/job.toml"); }
  std::string SitePath(const DemoSite& site, const std::string& name) const;
  std::string Path(const std::string& name) const;
  std::string Program(const std::string& name) const;
  // The log databases of all parties: aggregator first.
  std::vector<std::pair<std::string, std::string>> Logs() const;
  // The public key of a party's log.
  std::string LogKeyFile(const std::string& party) const;

 private:
  DemoFederation(std::string folder, DemoCase demo_case, std::string programs, WallTime now)
      : folder_(std::move(folder)),
        case_(std::move(demo_case)),
        programs_(std::move(programs)),
        now_(now) {}
  Status MakeIdentities(const Clock& clock, Random& random);
  Status WriteAggregator();
  Status WriteSite(const DemoSite& site);
  Status WriteAgentConfig(const DemoSite& site);
  // A policy or the facts of the case, with their dates moved to today.
  Status CopyPolicy(const std::string& name, const std::string& to);

  std::string folder_;
  DemoCase case_;
  std::string programs_;
  WallTime now_;
  std::string address_;
  std::map<std::string, std::string> approver_keys_;  // public, by site
  std::map<std::string, std::string> officer_keys_;   // likewise, of data protection officers
  std::string office_key_;                            // public, of the federation's office
  std::optional<Child> aggregator_;
  std::vector<Child> trainers_;
  std::vector<Child> agents_;
};

}  // namespace domicile::cli

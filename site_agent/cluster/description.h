// cluster.toml and TF_CONFIG: the hosts of a site that train together (docs/formats/cluster.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace domicile::site_agent {

inline constexpr std::size_t kMaxWorkers = 64;

struct WorkerAddress {
  std::string host;  // an address (IPv6 without its brackets) or a name
  std::uint16_t port = 0;
  std::string Text() const;  // as it is written
  friend bool operator==(const WorkerAddress&, const WorkerAddress&) = default;
};

// "HOST:PORT" or "[IPV6]:PORT". Errors: kInvalidArgument.
StatusOr<WorkerAddress> ParseWorkerAddress(std::string_view text);

struct ClusterDescription {
  std::string interface;
  std::string key_file;  // resolved beside the description
  std::size_t rank = 0;
  std::vector<WorkerAddress> workers;  // in order of rank; 0 is the chief
  std::chrono::seconds rendezvous{300};
  std::chrono::seconds silence{30};

  bool IsChief() const { return rank == 0; }
};

// `tf_config` is the variable's text where the environment has one. Errors: kInvalidArgument, with
// file, line and column, or naming TF_CONFIG and the field.
StatusOr<ClusterDescription> ParseClusterDescription(std::string_view toml, std::string_view file,
                                                     const std::optional<std::string>& tf_config);

}  // namespace domicile::site_agent

#include "site_agent/cluster/description.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/toml.h"

namespace domicile::site_agent {

namespace {

constexpr std::size_t kLongestInterface = 15;  // IFNAMSIZ without its zero

struct Roles {
  std::size_t rank = 0;
  std::vector<WorkerAddress> workers;
};

Status TfError(std::string_view what) {
  return Error(StatusCode::kInvalidArgument, "TF_CONFIG: " + std::string(what));
}

StatusOr<std::vector<WorkerAddress>> AddressesOf(const Json& cluster, const std::string& kind) {
  std::vector<WorkerAddress> addresses;
  const Json* const list = cluster.Find(kind);
  if (list == nullptr) {
    return addresses;
  }
  const Status bad = TfError("`cluster." + kind + "` must be a list of \"HOST:PORT\"");
  if (list->TryArray() == nullptr) {
    return bad;
  }
  for (const Json& entry : *list->TryArray()) {
    if (entry.TryString() == nullptr) {
      return bad;
    }
    StatusOr<WorkerAddress> address = ParseWorkerAddress(*entry.TryString());
    if (!address.ok()) {
      return Annotate(address.status(), "TF_CONFIG: `cluster." + kind + "`");
    }
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

Status CheckKinds(const JsonObject& cluster) {
  for (const auto& [kind, addresses] : cluster) {
    if (kind != "chief" && kind != "worker") {
      return TfError("`cluster." + kind + "`: only `chief` and `worker` train synchronously");
    }
  }
  return OkStatus();
}

// Other members of the object are TensorFlow's own and are left to it.
StatusOr<Roles> ReadTfConfig(std::string_view text) {
  const StatusOr<Json> json = ParseJson(text);
  if (!json.ok()) {
    return Annotate(json.status(), "TF_CONFIG");
  }
  const Json* const cluster = json->Find("cluster");
  const Json* const task = json->Find("task");
  if (cluster == nullptr || cluster->TryObject() == nullptr || task == nullptr) {
    return TfError("must be an object with the objects `cluster` and `task`");
  }
  RETURN_IF_ERROR(CheckKinds(*cluster->TryObject()));
  ASSIGN_OR_RETURN(std::vector<WorkerAddress> chief, AddressesOf(*cluster, "chief"));
  ASSIGN_OR_RETURN(const std::vector<WorkerAddress> workers, AddressesOf(*cluster, "worker"));
  if (chief.size() > 1) {
    return TfError("`cluster.chief` must have one address");
  }
  const Json* const type = task->Find("type");
  const std::string* const name = type != nullptr ? type->TryString() : nullptr;
  if (name == nullptr || (*name != "chief" && *name != "worker")) {
    return TfError("`task.type` must be `chief` or `worker`");
  }
  const bool is_worker = *name == "worker";
  const Json* const index = task->Find("index");
  const std::int64_t* const number = index != nullptr ? index->TryInt() : nullptr;
  const std::size_t count = is_worker ? workers.size() : chief.size();
  if (number == nullptr || *number < 0 || static_cast<std::uint64_t>(*number) >= count) {
    return TfError("`task.index` must count a task of `cluster`, from 0");
  }
  Roles roles;
  roles.rank = static_cast<std::size_t>(*number) + (is_worker ? chief.size() : 0);
  roles.workers = std::move(chief);
  roles.workers.insert(roles.workers.end(), workers.begin(), workers.end());
  return roles;
}

StatusOr<Roles> ReadRoles(TomlTable& root, TomlTable& cluster,
                          const std::optional<std::string>& tf_config) {
  Roles roles;
  std::vector<TomlTable> workers = root.Tables("worker");
  const std::optional<std::int64_t> rank =
      cluster.TryInt("rank", 0, static_cast<std::int64_t>(kMaxWorkers) - 1);
  if (tf_config) {
    if (rank || !workers.empty()) {
      cluster.Fail("rank", "and `[[worker]]` stand here and in the variable TF_CONFIG: remove one");
      return roles;
    }
    return ReadTfConfig(*tf_config);
  }
  if (!rank) {
    cluster.Fail("rank", "is missing, and so is the variable TF_CONFIG");
  }
  roles.rank = static_cast<std::size_t>(rank.value_or(0));
  for (TomlTable& worker : workers) {
    StatusOr<WorkerAddress> address = ParseWorkerAddress(worker.String("address"));
    if (address.ok()) {
      roles.workers.push_back(*std::move(address));
    } else {
      worker.Merge("address", address.status());
    }
  }
  return roles;
}

// What is wrong with the roles of a cluster, or nothing.
std::optional<std::string> FindRoleFault(const Roles& roles) {
  if (roles.workers.size() < 2 || roles.workers.size() > kMaxWorkers) {
    return "a cluster has 2 to " + std::to_string(kMaxWorkers) + " workers, not " +
           std::to_string(roles.workers.size());
  }
  if (roles.rank >= roles.workers.size()) {
    return "rank " + std::to_string(roles.rank) + " is beyond the " +
           std::to_string(roles.workers.size()) + " workers, which count from 0";
  }
  std::set<std::string> seen;
  for (const WorkerAddress& worker : roles.workers) {
    if (!seen.insert(worker.Text()).second) {
      return "`" + worker.Text() + "` stands twice";
    }
  }
  return std::nullopt;
}

}  // namespace

std::string WorkerAddress::Text() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

StatusOr<WorkerAddress> ParseWorkerAddress(std::string_view text) {
  const Status bad = Error(StatusCode::kInvalidArgument,
                           "must be `HOST:PORT` or `[IPV6]:PORT`, with a port of 1 to 65535");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return bad;
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  const bool fits = !host.empty() && host.size() <= 253 &&
                    (host.find(':') != std::string_view::npos) == bracketed &&
                    std::all_of(host.begin(), host.end(), [bracketed](unsigned char byte) {
                      return std::isalnum(byte) != 0 || byte == '.' || byte == '-' ||
                             (bracketed && (byte == ':' || byte == '%'));
                    });
  WorkerAddress address = {std::string(host), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (!fits || error != std::errc() || end != port.data() + port.size() || address.port == 0) {
    return bad;
  }
  return address;
}

StatusOr<ClusterDescription> ParseClusterDescription(std::string_view toml, std::string_view file,
                                                     const std::optional<std::string>& tf_config) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(toml, file));
  TomlTable root = document.Root();
  TomlTable cluster = root.Table("cluster");
  ClusterDescription description;
  description.interface = cluster.String("interface");
  if (description.interface.empty() || description.interface.size() > kLongestInterface ||
      description.interface.find_first_of("/ \t\n") != std::string::npos) {
    cluster.Fail("interface", "must be the name of one network interface, as `ip link` shows it");
  }
  description.key_file = ResolveBeside(file, cluster.String("key"));
  description.rendezvous =
      std::chrono::seconds(cluster.TryInt("rendezvous_seconds", 1, 86'400).value_or(300));
  description.silence =
      std::chrono::seconds(cluster.TryInt("silence_seconds", 1, 3'600).value_or(30));
  StatusOr<Roles> roles = ReadRoles(root, cluster, tf_config);
  RETURN_IF_ERROR(roles.status());
  RETURN_IF_ERROR(document.Finish());
  if (const std::optional<std::string> fault = FindRoleFault(*roles)) {
    return Error(StatusCode::kInvalidArgument,
                 (tf_config ? std::string("TF_CONFIG") : std::string(file)) + ": " + *fault);
  }
  description.rank = roles->rank;
  description.workers = std::move(roles->workers);
  return description;
}

}  // namespace domicile::site_agent

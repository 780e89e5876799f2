// The configuration of daemons whose files all lie in their own folder under their usual names, for
// whole federations on one machine. Page: docs/formats/daemon-config.md.
#pragma once

#include <string>

namespace domicile::cli {

std::string Quoted(const std::string& text);

// The table [aggregator]; it listens at any free port of loopback. More keys of it may follow.
std::string AggregatorTable();

// The table [agent], one approval wanted; `trainer_socket` from the agent's folder. More keys of it
// may follow.
std::string AgentTable(const std::string& address, const std::string& trainer_socket);

// The person who approves, as agent and trainer each read it from their own configuration.
std::string ApproverTable(const std::string& key);

}  // namespace domicile::cli

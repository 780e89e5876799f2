#include "cli/demo/daemon_files.h"

namespace domicile::cli {

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

std::string AggregatorTable() {
  return "[aggregator]\n"
         "identity = \"identity\"\n"
         "state = \"state\"\n"
         "listen = \"127.0.0.1:0\"\n"
         "federation_policy = \"federation.policy.toml\"\n"
         "aggregator_policy = \"aggregator.policy.toml\"\n"
         "legal_facts = \"legal-facts.toml\"\n";
}

std::string AgentTable(const std::string& address, const std::string& trainer_socket) {
  return "[agent]\n"
         "identity = \"identity\"\n"
         "state = \"state\"\n"
         "aggregator = " +
         Quoted(address) + "\ntrainer_socket = " + Quoted(trainer_socket) +
         "\n"
         "policy = \"site.policy.toml\"\n"
         "federation_policy = \"federation.policy.toml\"\n"
         "legal_facts = \"legal-facts.toml\"\n"
         "grants = \"grants\"\n"
         "requests = \"requests\"\n"
         "approvals = 1\n";
}

std::string ApproverTable(const std::string& key) {
  return "[[approver]]\nrole = \"operator\"\norganisation = \"data-office\"\nkey = " + Quoted(key) +
         "\n\n";
}

}  // namespace domicile::cli

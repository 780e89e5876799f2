// How commands reach an aggregator: as an operator, with an identity folder.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/command.h"
#include "contracts/identity.h"
#include "wire/admin_client.h"

namespace domicile::cli {

struct ConnectOptions {
  std::string aggregator;  // HOST:PORT
  std::string identity;    // folder of an operator
};

// Adds --aggregator and --identity, with DOMICILE_AGGREGATOR and DOMICILE_IDENTITY as their
// defaults.
void AddConnectOptions(CLI::App& command, ConnectOptions& options);

// Errors: those of LoadIdentity and AdminClient::Connect.
StatusOr<std::unique_ptr<wire::AdminClient>> ConnectAsOperator(const ConnectOptions& options,
                                                               const Clock& clock);

}  // namespace domicile::cli

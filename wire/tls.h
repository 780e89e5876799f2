// TLS 1.3 and nothing else, for every gRPC connection of the process.
//
// gRPC 1.51 has no setting for a lowest version. What it has is the list of suites for TLS 1.2 and
// below; with a suite in it that cannot be used, 1.2 finds "no shared cipher" and 1.3 keeps its own
// suites. The list comes from the environment, so it is set inside the program, whatever the
// environment says, and the effect is tested (CheckOnlyTls13), not assumed.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace domicile::wire {

// Call in `main` before any thread is started and before anything else of wire: gRPC reads its
// environment once. Also makes gRPC look names up as the system does (unless GRPC_DNS_RESOLVER is
// set), and sends its own log to the count below; it is printed only if the environment sets
// GRPC_VERBOSITY. Later calls do nothing.
// Errors: kFailedPrecondition if gRPC has already read its environment with another list.
Status RequireTls13();

// Tries the TLS server at `address` ("127.0.0.1:7443") twice: with a TLS 1.3 hello, which it must
// take, and with a TLS 1.2 hello, which it must refuse. No handshake is completed. FederationServer
// does this with itself at start. Blocks for at most ten seconds.
// Errors: kFailedPrecondition (1.2 was accepted), kUnavailable (no TLS server answers there).
Status CheckOnlyTls13(const std::string& address);

// How many TLS handshakes gRPC has given up in this process by its own rules (another authority, an
// expired certificate, none at all, TLS 1.2, no TLS). It knows no more about them than that they
// happened. Thread-safe.
std::uint64_t FailedHandshakes();

}  // namespace domicile::wire

// A TLS client that is not gRPC: for what a peer with another library can do.
#pragma once

#include <string>

#include "base/status.h"
#include "tests/support/test_certificates.h"

namespace domicile::test {

enum class TlsVersion : int { k12 = 0x0303, k13 = 0x0304 };

// Connects to 127.0.0.1:`port` with one version and HTTP/2 on top, shows the party's certificate,
// and waits for the first byte of the server: in TLS 1.3 only that tells that it has accepted.
// Returns the name of the version negotiated. Errors: kUnavailable (TCP), kUnauthenticated (the
// handshake failed, or the server closed without a word).
StatusOr<std::string> TlsConnect(int port, TlsVersion version, const TestParty& party);

}  // namespace domicile::test

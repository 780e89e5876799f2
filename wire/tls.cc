#include "wire/tls.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include "wire/address.h"
#include "wire/internal/hello_probe.h"

namespace domicile::wire {
namespace {

constexpr const char* kSuitesVariable = "GRPC_SSL_CIPHER_SUITES";
// A suite of TLS 1.2 that needs a key shared in advance, which gRPC never sets.
constexpr const char* kNoUsableSuite = "PSK-AES256-GCM-SHA384";
constexpr const char* kResolverVariable = "GRPC_DNS_RESOLVER";
constexpr const char* kVerbosityVariable = "GRPC_VERBOSITY";
constexpr auto kProbeTimeout = std::chrono::milliseconds(2500);

// gRPC calls a plain function, so what it needs is global: a count and a switch.
std::atomic<std::uint64_t> failed_handshakes{0};
std::atomic<bool> print_grpc_log{false};

void OnGrpcLog(gpr_log_func_args* entry) {
  if (std::strstr(entry->message, "Handshake failed") != nullptr) {
    failed_handshakes.fetch_add(1, std::memory_order_relaxed);
  }
  if (print_grpc_log.load(std::memory_order_relaxed)) {
    std::fprintf(stderr, "grpc %s:%d %s\n", entry->file, entry->line, entry->message);
  }
}

Status RequireOnce() {
  const char* before = std::getenv(kSuitesVariable);
  const bool was_ours = before != nullptr && std::string_view(before) == kNoUsableSuite;
  if (grpc_is_initialized() != 0 && !was_ours) {
    return Error(StatusCode::kFailedPrecondition,
                 "TLS 1.3 cannot be required any more: gRPC has already been started");
  }
  if (::setenv(kSuitesVariable, kNoUsableSuite, 1) != 0) {
    return Error(StatusCode::kInternal, "setting GRPC_SSL_CIPHER_SUITES failed");
  }
  // Names are looked up as by every other program of the host, unless the environment says how.
  if (::setenv(kResolverVariable, "native", 0) != 0) {
    return Error(StatusCode::kInternal, "setting GRPC_DNS_RESOLVER failed");
  }
  print_grpc_log = std::getenv(kVerbosityVariable) != nullptr;
  gpr_set_log_function(OnGrpcLog);
  if (!print_grpc_log) {
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // handshakes that fail are errors
  }
  return OkStatus();
}

}  // namespace

Status RequireTls13() {
  static const Status result = RequireOnce();
  return result;
}

Status CheckOnlyTls13(const std::string& address) {
  using internal::HelloAnswer;
  using internal::HelloVersion;
  ASSIGN_OR_RETURN(const Address where, ParseAddress(address));
  // The control first: a server that takes no hello at all would prove nothing.
  ASSIGN_OR_RETURN(const HelloAnswer to_13,
                   internal::TryHello(where, HelloVersion::kTls13, kProbeTimeout));
  if (to_13 != HelloAnswer::kTaken) {
    return Error(
        StatusCode::kUnavailable,
        "the server at `" + address + "` refuses TLS 1.3; are its key and its certificate a pair?");
  }
  ASSIGN_OR_RETURN(const HelloAnswer to_12,
                   internal::TryHello(where, HelloVersion::kTls12, kProbeTimeout));
  if (to_12 == HelloAnswer::kTaken) {
    return Error(StatusCode::kFailedPrecondition,
                 "the server at `" + address + "` accepts TLS 1.2; it must not serve");
  }
  return OkStatus();
}

std::uint64_t FailedHandshakes() { return failed_handshakes.load(std::memory_order_relaxed); }

}  // namespace domicile::wire

// The error type of every fallible function: Status, or StatusOr<T> for a value.
//
// The only header that names absl. The rest of the tree sees domicile::Status and std::string_view.
// Messages: lower case, no full stop, the thing named in backquotes, never a record, key or token.
//
// Codes tell the caller what to do:
//   kInvalidArgument     fix the input            kUnauthenticated   fix the certificate
//   kPermissionDenied    final, policy said no    kFailedPrecondition wrong state or round
//   kNotFound / kAlreadyExists / kOutOfRange      as they say
//   kUnavailable         retry with backoff       kResourceExhausted  disk, memory or a limit
//   kDataLoss            stop: a log or file is not what was written
//   kInternal            our bug
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <absl/status/status.h>
#include <absl/status/statusor.h>

namespace domicile {

using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <typename T>
using StatusOr = absl::StatusOr<T>;

inline Status OkStatus() { return absl::OkStatus(); }

Status Error(StatusCode code, std::string_view message);

// The message of a status, as a std::string_view that lives as long as the status.
std::string_view Message(const Status& status);

// The same status with "context: " before its message; OK stays OK.
Status Annotate(const Status& status, std::string_view context);

// `CODE: message` for people, for instance `INVALID_ARGUMENT: no such file`.
std::string ToString(const Status& status);

namespace internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);
}  // namespace internal

}  // namespace domicile

// Aborts, in every build, and only for a bug of ours: nothing a peer or a person sends can reach
// one.
#define DOMICILE_CHECK(condition)                                        \
  do {                                                                   \
    if (!(condition)) {                                                  \
      ::domicile::internal::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                                    \
  } while (false)

// A name of its own for each use: the expression may hold a lambda that uses the macro again.
#define RETURN_IF_ERROR(expr) \
  DOMICILE_RETURN_IF_ERROR_(DOMICILE_CONCAT_(status_, __COUNTER__), expr)
#define DOMICILE_RETURN_IF_ERROR_(name, expr)           \
  do {                                                  \
    if (::domicile::Status name = (expr); !name.ok()) { \
      return name;                                      \
    }                                                   \
  } while (false)

#define ASSIGN_OR_RETURN(declaration, expr) \
  DOMICILE_ASSIGN_OR_RETURN_(DOMICILE_CONCAT_(result_, __COUNTER__), declaration, expr)
#define DOMICILE_ASSIGN_OR_RETURN_(result, declaration, expr) \
  auto result = (expr);                                       \
  if (!result.ok()) {                                         \
    return std::move(result).status();                        \
  }                                                           \
  declaration = *std::move(result)
#define DOMICILE_CONCAT_(a, b) DOMICILE_CONCAT_INNER_(a, b)
#define DOMICILE_CONCAT_INNER_(a, b) a##b

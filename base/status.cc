#include "base/status.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace domicile {

namespace {

// absl here is built with its own string_view, which is not std::string_view.
absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Status Error(StatusCode code, std::string_view message) {
  DOMICILE_CHECK(code != StatusCode::kOk);
  return {code, ToAbsl(message)};
}

std::string_view Message(const Status& status) {
  return {status.message().data(), status.message().size()};
}

Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) {
    return status;
  }
  std::string message(context);
  message += ": ";
  message += Message(status);
  return Error(status.code(), message);
}

std::string ToString(const Status& status) { return status.ToString(); }

namespace internal {

void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "%s:%d: internal error, please report it: %s\n", file, line, expression);
  std::abort();
}

}  // namespace internal

}  // namespace domicile

#include "base/status.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>

namespace domicile {
namespace {

Status FailIf(bool fail) { return fail ? Error(StatusCode::kNotFound, "no `x`") : OkStatus(); }

StatusOr<std::unique_ptr<int>> Make(bool fail) {
  RETURN_IF_ERROR(FailIf(fail));
  return std::make_unique<int>(7);
}

StatusOr<int> Use(bool fail_first, bool fail_second) {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> first, Make(fail_first));
  ASSIGN_OR_RETURN(std::unique_ptr<int> second, Make(fail_second));
  return *first + *second;
}

TEST_CASE("ASSIGN_OR_RETURN and RETURN_IF_ERROR: pass values on and stop at the first error") {
  CHECK(Use(false, false).value() == 14);
  CHECK(Use(true, false).status().code() == StatusCode::kNotFound);
  CHECK(Use(false, true).status().code() == StatusCode::kNotFound);
}

TEST_CASE("Annotate: adds what the caller knows and keeps the code; OK stays OK") {
  const Status status = Annotate(Annotate(FailIf(true), "reading plan"), "job");

  CHECK(status.code() == StatusCode::kNotFound);
  CHECK(Message(status) == "job: reading plan: no `x`");
  CHECK(ToString(status) == "NOT_FOUND: job: reading plan: no `x`");
  CHECK(Annotate(OkStatus(), "job").ok());
}

}  // namespace
}  // namespace domicile

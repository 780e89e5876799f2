// What went wrong with a site's data, in two parts that must not be mixed: what the operator at the
// site reads, and what may travel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "policy/reason.h"

namespace domicile::site_agent {

// The part that may leave the trainer: a closed code, the alias, counts. Never a file name, a line,
// a column or a cell.
struct TravellingFault {
  policy::Reason reason = policy::Reason::kNone;
  DatasetAlias dataset;
  std::uint64_t rows_refused = 0;  // 0 where the fault is not about rows
};

// A fault with both parts. Immutable.
class Fault {
 public:
  Fault(TravellingFault travels, std::vector<std::string> local)
      : travels_(std::move(travels)), local_(std::move(local)) {}

  const TravellingFault& Travels() const { return travels_; }

  // For the site's own output only: "FILE:LINE: column 3 `crp`: ...", one entry a fault, the first
  // ones of many. Cell values appear only if the loader was told to show them.
  const std::vector<std::string>& LocalLines() const { return local_; }
  // The lines as one Status (kInvalidArgument), for a program that stays at the site.
  Status LocalStatus() const;

 private:
  TravellingFault travels_;
  std::vector<std::string> local_;
};

// A value or the fault that prevented it. There is on purpose no conversion to Status: which part
// of the fault goes where is decided each time.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  // NOLINTBEGIN(google-explicit-constructor): as StatusOr
  Outcome(T value) : value_(std::move(value)) {}
  Outcome(Fault fault) : fault_(std::move(fault)) {}
  // NOLINTEND(google-explicit-constructor)

  bool ok() const {  // NOLINT(readability-identifier-naming): as StatusOr
    return value_.has_value();
  }
  const Fault& TheFault() const { return *fault_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  std::optional<Fault> fault_;
};

}  // namespace domicile::site_agent

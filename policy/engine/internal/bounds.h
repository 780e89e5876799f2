// Values held against every bound that a rule sets.
#pragma once

#include <string>

#include "base/text.h"
#include "policy/engine/internal/evaluation.h"
#include "policy/language/duration.h"

namespace domicile::policy::internal {

inline std::string Show(std::uint64_t value) { return std::to_string(value); }
inline std::string Show(double value) { return PrintDouble(value); }
inline std::string Show(Duration value) {
  return value < Duration(1) ? "nothing" : "`" + PrintDuration(value) + "`";
}
template <typename E>
requires std::is_enum_v<E> std::string Show(E value) {
  const std::string_view code = Code(value);
  return code.empty() ? "unknown" : "`" + std::string(code) + "`";
}

template <typename T>
void Evaluation::WantAtMost(const Clauses<T>& clauses, T value, Reason reason,
                            std::string_view what, std::string_view key) {
  for (const auto& clause : clauses) {
    Bear(clause);
    if (!(value <= clause.value)) {
      Deny(
          reason, clause.origin,
          [&] {
            return std::string(what) + " " + Show(value) + ", more than " + std::string(key) +
                   " = " + Show(clause.value);
          },
          [&] {
            return "ask for at most " + Show(clause.value) + ", or raise " + std::string(key) +
                   " in " + policy::Print(clause.origin);
          });
    }
  }
}

template <typename T>
void Evaluation::WantAtLeast(const Clauses<T>& clauses, T value, Reason reason,
                             std::string_view what, std::string_view key) {
  for (const auto& clause : clauses) {
    Bear(clause);
    if (!(value >= clause.value)) {
      Deny(
          reason, clause.origin,
          [&] {
            return std::string(what) + " " + Show(value) + ", less than " + std::string(key) +
                   " = " + Show(clause.value);
          },
          [&] {
            return "give at least " + Show(clause.value) + ", or lower " + std::string(key) +
                   " in " + policy::Print(clause.origin);
          });
    }
  }
}

template <typename T>
void Evaluation::DenyUnknown(const Clauses<T>& clauses, Reason reason, std::string_view what,
                             std::string_view key) {
  for (const auto& clause : clauses) {
    Bear(clause);
    Deny(
        reason, clause.origin,
        [&] {
          return std::string(what) + " not known, and " + std::string(key) + " = " +
                 Show(clause.value) + " asks for it";
        },
        [&] {
          return "have it stated, or change " + std::string(key) + " in " +
                 policy::Print(clause.origin);
        });
  }
}

template <typename T, typename U>
void Evaluation::WantKnownAtMost(const Clauses<T>& clauses, const std::optional<U>& value,
                                 Reason reason, std::string_view what, std::string_view key) {
  if (value) {
    WantAtMost(clauses, static_cast<T>(*value), reason, what, key);
  } else {
    DenyUnknown(clauses, reason, what, key);
  }
}

template <typename T, typename U>
void Evaluation::WantKnownAtLeast(const Clauses<T>& clauses, const std::optional<U>& value,
                                  Reason reason, std::string_view what, std::string_view key) {
  if (value) {
    WantAtLeast(clauses, static_cast<T>(*value), reason, what, key);
  } else {
    DenyUnknown(clauses, reason, what, key);
  }
}

}  // namespace domicile::policy::internal

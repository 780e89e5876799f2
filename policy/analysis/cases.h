// Cases: decisions that must come out as written, in files that need no programmer. Grammar:
// tests/policy_corpus/README.md.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/engine/decide.h"
#include "policy/language/facts.h"
#include "policy/language/policy.h"

namespace domicile::policy::analysis {

// The text of a source, by its path as the case file has it.
using LoadText = std::function<StatusOr<std::string>(const std::string& path)>;

// The SHA-256 of a text, 64 hexadecimal digits: this folder does not hash.
using DigestText = std::function<std::string(std::string_view text)>;

// A policy that cases use.
struct CasePolicy {
  Policy policy;
  std::string text;
  bool is_file = false;  // not written out in the case file
};

struct Case {
  std::string name;
  std::string where;           // "heart.case:40"
  std::size_t federation = 0;  // in CaseBook::policies
  std::size_t aggregator = 0;
  std::size_t site = 0;
  std::size_t facts = 0;  // in CaseBook::facts
  Transfer transfer;
  Result expect = Result::kDeny;
  std::vector<Reason> reasons;  // all must be given, the first of them first
  std::string says;             // in the explanation
};

// A source that must not load.
struct Refusal {
  std::string name;
  std::string where;
  std::optional<PolicySource> source;  // empty: legal facts
  std::string text;
  std::string says;  // in the error
};

// The cases of several files, which share the policies that they name. One thread at a time.
class CaseBook {
 public:
  // Without `digest` the digests of legal facts are unknown, and a policy that names one denies.
  explicit CaseBook(DigestText digest = {}) : digest_(std::move(digest)) {}

  // Adds the cases of one file. Errors: kInvalidArgument, as "FILE:LINE:COLUMN: what" where the
  // place is known, for the file or for a source that does not load; those of `load`.
  Status Add(std::string_view text, const std::string& file, const LoadText& load);

  const std::vector<CasePolicy>& policies() const { return policies_; }
  const std::vector<Facts>& facts() const { return facts_; }
  const std::vector<Case>& cases() const { return cases_; }
  const std::vector<Refusal>& refusals() const { return refusals_; }

  // What Decide answers under the case's own policies, or with one of them exchanged.
  Decision Answer(const Case& each) const;
  Decision AnswerWith(const Case& each, std::size_t exchanged, const Policy& by) const;

 private:
  friend class CaseReader;
  DigestText digest_;
  std::vector<CasePolicy> policies_;
  std::vector<Facts> facts_;
  std::vector<std::string> facts_texts_;
  std::vector<Case> cases_;
  std::vector<Refusal> refusals_;
};

// Why the answer is not the one that the case wants; empty if it is.
std::string WhyFailed(const Case& each, const Decision& decision);
std::string WhyFailed(const Refusal& refusal);

}  // namespace domicile::policy::analysis

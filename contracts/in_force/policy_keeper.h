// Which versions of its policies and legal facts a program works under: what lies in the files is
// weighed against what is in force by signatures, version and what it allows
// (contracts/policy_life.h), and kept in the program's books with the leaf that says so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "audit/event.h"
#include "base/clock.h"
#include "base/status.h"
#include "contracts/in_force/policies.h"
#include "contracts/policy_life.h"
#include "crypto/note.h"

namespace domicile::contracts {

// The program's database and the log in it.
class PolicyBooks {
 public:
  virtual ~PolicyBooks() = default;
  // Nothing known: an empty life.
  virtual StatusOr<PolicyLife> Find(std::string_view source) = 0;
  // Life and leaf in one transaction.
  virtual Status Record(std::string_view source, const PolicyLife& life,
                        const StatusOr<audit::Event>& leaf) = 0;
  // The policies or statements of the sites that the program knows, each with an id of its own:
  // what another policy or the facts allow is asked of these.
  virtual StatusOr<std::vector<policy::Policy>> Sites() = 0;
};

// A file, with FILE.sig beside it.
struct PolicyFile {
  std::string name;  // in leaves and books: `federation`, `aggregator`, `site`, `facts`
  policy::PolicySource kind = policy::PolicySource::kNone;  // kNone: legal facts
  std::string file;
  std::vector<crypto::NoteVerifier> keys;  // whose signatures the program accepts
};

struct PolicyKeeperOptions {
  std::vector<PolicyFile> files;  // legal facts first: by them the others are compared
  bool are_unsigned = false;      // said by name in the configuration
  std::string jurisdiction;       // where the program's certificate places it
  // How a file is read; unset: by ReadFile. Errors of both: kNotFound and the like.
  std::function<StatusOr<std::string>(const std::string& file)> read = {};
};

// No longer policy, facts file or signature is read.
inline constexpr std::uint64_t kLargestPolicy = std::uint64_t{1} << 20U;

// One thread at a time.
class PolicyKeeper {
 public:
  // Borrows books and clock.
  PolicyKeeper(PolicyKeeperOptions options, PolicyBooks& books, const Clock& clock)
      : options_(std::move(options)), books_(books), clock_(clock) {}

  // Looks at the files and returns what is in force after that. A file that is refused changes
  // nothing, and is logged; it is an error only where no version of it was ever in force. Takes
  // what comparing takes: up to some tenths of a second a site. Errors: those of ReadFile and of
  // the parsers, kInvalidArgument (a site policy for another place), kUnauthenticated (not signed
  // by enough), kFailedPrecondition (older than the one in force); those of the books.
  StatusOr<PoliciesInForce> Look();

  // The first instant at which a version that waits may come into force; empty: none waits.
  std::optional<WallTime> NextLook() const { return next_look_; }

 private:
  struct Read;
  struct Weighed;
  StatusOr<std::string> ReadText(const std::string& file) const;
  StatusOr<Read> ReadFiles(const PolicyFile& source) const;
  StatusOr<bool> Loosens(const PolicyFile& source, const std::string& before,
                         const std::string& after, const PoliciesInForce& policies) const;
  StatusOr<Weighed> Weigh(const PolicyFile& source, PolicyLife life,
                          const PoliciesInForce& policies) const;
  Status Keep(const PolicyFile& source, const Weighed& weighed,
              const StatusOr<audit::Event>& loaded);
  // One file: weighed, kept, and what is in force after that put into `policies`.
  Status LookAt(const PolicyFile& source, PoliciesInForce& policies);

  const PolicyKeeperOptions options_;
  PolicyBooks& books_;
  const Clock& clock_;
  std::optional<WallTime> next_look_;
  std::set<std::string> told_;  // sources whose version in force this start has logged
};

}  // namespace domicile::contracts

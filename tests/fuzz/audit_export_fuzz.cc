// Property: an export that nothing is found wrong with consists of whole lines, each a leaf that
// prints back to itself, with one origin and numbers from 0; and the list of its own hashes changes
// nothing.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "audit/event.h"
#include "audit/verify.h"
#include "crypto/merkle.h"

namespace audit = domicile::audit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  audit::VerifyOptions options;
  std::istringstream in(bytes);
  const audit::VerifyReport report = audit::VerifyExport(in, options);
  DOMICILE_CHECK(!PrintReport(report).empty());
  DOMICILE_CHECK(!report.not_checked.empty());
  DOMICILE_CHECK(domicile::ParseCanonicalJson(PrintJson(ReportJson(report))).ok());
  if (!report.Intact()) {
    return 0;
  }
  options.leaf_hashes.emplace();
  std::string whole;
  std::istringstream lines(bytes);
  for (std::string line; std::getline(lines, line);) {
    const auto leaf = audit::ParseLeaf(line);
    DOMICILE_CHECK(leaf.ok() && leaf->frame.origin == report.origin);
    DOMICILE_CHECK(leaf->frame.seq == options.leaf_hashes->size());
    options.leaf_hashes->push_back(domicile::crypto::LeafHash(domicile::AsBytes(line)));
    whole += line + "\n";
  }
  DOMICILE_CHECK(whole == bytes && report.size == options.leaf_hashes->size());
  std::istringstream again(bytes);
  DOMICILE_CHECK(audit::VerifyExport(again, options).Intact());
  return 0;
}

// Vocabularies that jobs with texts name by the digest of their file.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "models/text/vocabulary.h"

namespace domicile::site_agent {

// Immutable once read.
class VocabularyFiles {
 public:
  VocabularyFiles() = default;
  // Errors: those of files; kInvalidArgument: not a vocabulary.
  static StatusOr<VocabularyFiles> Read(std::span<const std::string> paths);

  // The vocabulary of the file of that SHA-256; null if it is not here.
  const models::Vocabulary* Find(const Digest& digest) const;

 private:
  std::map<Digest, models::Vocabulary> vocabularies_;
};

}  // namespace domicile::site_agent

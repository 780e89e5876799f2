#include "site_agent/datasets/vocabulary_files.h"

#include <cstdint>
#include <utility>

#include "base/file.h"
#include "crypto/sha256.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint64_t kMaxVocabularyBytes = 64 << 20;

}  // namespace

StatusOr<VocabularyFiles> VocabularyFiles::Read(std::span<const std::string> paths) {
  VocabularyFiles read;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxVocabularyBytes));
    StatusOr<models::Vocabulary> vocabulary = models::Vocabulary::Parse(text);
    RETURN_IF_ERROR(Annotate(vocabulary.status(), path));
    read.vocabularies_.insert_or_assign(crypto::Sha256(AsBytes(text)), *std::move(vocabulary));
  }
  return read;
}

const models::Vocabulary* VocabularyFiles::Find(const Digest& digest) const {
  const auto found = vocabularies_.find(digest);
  return found == vocabularies_.end() ? nullptr : &found->second;
}

}  // namespace domicile::site_agent

#include "models/plans/pretrained.h"

#include <cstdint>
#include <utility>

#include "base/file.h"
#include "crypto/sha256.h"

namespace domicile::models {

namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{8} << 30U;

}  // namespace

StatusOr<PretrainedModels> PretrainedModels::Read(std::span<const std::string> paths) {
  PretrainedModels read;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kMaxFileBytes));
    StatusOr<std::vector<NamedTensor>> tensors = ParseSafetensors(AsBytes(file));
    if (!tensors.ok()) {
      return Annotate(tensors.status(), "`" + path + "`");
    }
    read.models_.insert_or_assign(PrintHex(crypto::Sha256(AsBytes(file))), *std::move(tensors));
  }
  return read;
}

const std::vector<NamedTensor>* PretrainedModels::Find(const Digest& digest) const {
  const auto found = models_.find(PrintHex(digest));
  return found == models_.end() ? nullptr : &found->second;
}

}  // namespace domicile::models

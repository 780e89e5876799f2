// Model files that are not sent: every party that needs one has it, and a plan names it by its
// digest.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "models/safetensors.h"

namespace domicile::models {

// Immutable once read.
class PretrainedModels {
 public:
  PretrainedModels() = default;
  // Reads safetensors files. Errors: those of files; kInvalidArgument: not a model file.
  static StatusOr<PretrainedModels> Read(std::span<const std::string> paths);

  // The tensors of the file of that SHA-256; null if it is not here.
  const std::vector<NamedTensor>* Find(const Digest& digest) const;

 private:
  std::map<std::string, std::vector<NamedTensor>> models_;  // by the digest in hexadecimal
};

}  // namespace domicile::models

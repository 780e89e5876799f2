// The editor's aid: a JSON schema of policy and legal facts files, made from the vocabulary.
#pragma once

#include <string>

namespace domicile::policy {

// JSON Schema (draft 7), indented, a newline at the end: what docs/formats/policy.schema.json is.
// For completion and early warnings in an editor of TOML. It knows keys, codes and simple ranges;
// `domicile policy check` is what decides, and it refuses more.
std::string PolicySchema();

}  // namespace domicile::policy

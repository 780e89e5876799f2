// A transfer as a person writes it: the [transfer] table of a request file (`domicile policy
// explain`) and of the policy corpus. Grammar: docs/formats/policy.md.
#pragma once

#include "base/toml.h"
#include "policy/engine/transfer.h"

namespace domicile::policy {

// Reads the keys that are present over `base`. Errors stick to the document; ask its Finish().
// Places and names are taken as they stand: refusing them is Decide's business.
Transfer ReadTransfer(TomlTable table, Transfer base);

}  // namespace domicile::policy

// Bytes that must not be left behind in memory, printed, or compared in variable time.
#pragma once

#include <string_view>

#include "base/bytes.h"

namespace domicile::crypto {

// Overwrites memory in a way that the compiler cannot remove.
void Wipe(void* memory, std::size_t size);

// Whether two byte strings are equal, in time that depends on their lengths only.
bool EqualInConstantTime(ByteSpan a, ByteSpan b);

// Owns secret bytes: a key, a salt, the text of a key file. Wiped when destroyed, overwritten or
// moved from. Move-only, has no `<<` and no `==`. One thread at a time.
class SecretBytes {
 public:
  SecretBytes() = default;
  explicit SecretBytes(ByteSpan bytes) : bytes_(bytes.begin(), bytes.end()) {}
  // Takes the buffer over; the caller's variable is left empty.
  explicit SecretBytes(Bytes&& bytes) : bytes_(std::move(bytes)) {}
  SecretBytes(SecretBytes&& other) noexcept;
  SecretBytes& operator=(SecretBytes&& other) noexcept;
  ~SecretBytes();

  // Borrowed; do not keep copies.
  ByteSpan Span() const { return bytes_; }
  std::string_view Text() const { return AsText(bytes_); }
  bool IsEmpty() const { return bytes_.empty(); }
  bool EqualTo(ByteSpan other) const { return EqualInConstantTime(bytes_, other); }

 private:
  Bytes bytes_;
};

}  // namespace domicile::crypto

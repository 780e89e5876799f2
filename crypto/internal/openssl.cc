#include "crypto/internal/openssl.h"

#include <limits>

namespace domicile::crypto::internal {

Buffer ReadBuffer(std::string_view text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return nullptr;
  }
  // OpenSSL refuses a null pointer, which is what an empty view may hold.
  return Buffer(
      BIO_new_mem_buf(text.data() == nullptr ? "" : text.data(), static_cast<int>(text.size())));
}

std::string TextOf(BIO* buffer) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(buffer, &data);  // NOLINT(google-runtime-int): OpenSSL's type
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace domicile::crypto::internal

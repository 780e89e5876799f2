#include "crypto/sha256.h"

#include <string>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include "crypto/secret.h"

namespace domicile::crypto {
namespace {

TEST_CASE("Sha256: the examples of FIPS 180-4 hold") {
  CHECK(PrintHex(Sha256({})) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(PrintHex(Sha256(AsBytes("abc"))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(PrintHex(Sha256(AsBytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("Sha256Hasher: pieces and the whole give the same digest, and Finish starts anew") {
  Sha256Hasher hasher;
  const std::string million(1'000'000, 'a');

  for (int i = 0; i < 10; ++i) {
    hasher.Update(AsBytes(million).subspan(static_cast<std::size_t>(i) * 100'000, 100'000));
  }

  CHECK(PrintHex(hasher.Finish()) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  hasher.Update(AsBytes("abc"));
  CHECK(hasher.Finish() == Sha256(AsBytes("abc")));
  CHECK(hasher.Finish() == Sha256({}));
}

TEST_CASE("HmacSha256: the test cases of RFC 4231 hold") {
  const Bytes key1(20, 0x0B);
  CHECK(PrintHex(HmacSha256(key1, AsBytes("Hi There"))) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(PrintHex(HmacSha256(AsBytes("Jefe"), AsBytes("what do ya want for nothing?"))) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const Bytes long_key(131, 0xAA);
  CHECK(PrintHex(HmacSha256(long_key, AsBytes("Test Using Larger Than Block-Size Key - Hash Key "
                                              "First"))) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("HmacSha256: an empty key is a key, not the last one used") {
  const Digest before = HmacSha256({}, AsBytes("x"));
  HmacSha256(AsBytes("another"), AsBytes("x"));
  CHECK(HmacSha256({}, AsBytes("x")) == before);
  CHECK(before != HmacSha256(AsBytes("another"), AsBytes("x")));
}

TEST_CASE("SecretBytes: moving leaves nothing behind, and only equal bytes are equal") {
  SecretBytes secret(AsBytes("a salt"));
  CHECK(secret.EqualTo(AsBytes("a salt")));
  CHECK_FALSE(secret.EqualTo(AsBytes("a sale")));
  CHECK_FALSE(secret.EqualTo(AsBytes("a sal")));

  const SecretBytes taken(std::move(secret));

  CHECK(taken.Text() == "a salt");
  CHECK(secret.IsEmpty());  // NOLINT(bugprone-use-after-move): what a moved-from secret holds
  static_assert(!std::is_copy_constructible_v<SecretBytes>);
  static_assert(!std::is_copy_assignable_v<SecretBytes>);
}

TEST_CASE("Wipe: the memory holds zeros afterwards") {
  Bytes bytes = ToBytes("key material");
  Wipe(bytes.data(), bytes.size());
  CHECK(bytes == Bytes(bytes.size(), 0));
}

}  // namespace
}  // namespace domicile::crypto

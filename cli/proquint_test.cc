#include "cli/proquint.h"

#include <doctest/doctest.h>

namespace domicile::cli {
namespace {

TEST_CASE("Proquints: the examples of the paper") {
  struct Case {
    Bytes address;
    const char* want;
  };
  const Case cases[] = {{{127, 0, 0, 1}, "lusab-babad"},      {{63, 84, 220, 193}, "gutih-tugad"},
                        {{63, 118, 7, 35}, "gutuk-bisog"},    {{140, 98, 193, 141}, "mudof-sakat"},
                        {{64, 255, 6, 200}, "haguz-biram"},   {{128, 30, 52, 45}, "mabiv-gibot"},
                        {{147, 67, 119, 2}, "natag-lisaf"},   {{212, 58, 253, 68}, "tibup-zujah"},
                        {{216, 35, 68, 215}, "tobog-higil"},  {{216, 68, 232, 21}, "todah-vobij"},
                        {{198, 81, 129, 136}, "sinid-makam"}, {{12, 110, 110, 204}, "budov-kuras"}};
  for (const Case& c : cases) {
    CHECK(Proquints(c.address) == c.want);
  }
  CHECK(Proquints({}).empty());
}

TEST_CASE("SpokenDigest: eight words, of the first sixteen bytes") {
  Digest digest;
  digest.bytes.fill(0xFF);
  digest.bytes[16] = 0;

  CHECK(SpokenDigest(digest) == "zuzuz-zuzuz-zuzuz-zuzuz-zuzuz-zuzuz-zuzuz-zuzuz");
  digest.bytes[15] = 0;
  CHECK(SpokenDigest(digest) == "zuzuz-zuzuz-zuzuz-zuzuz-zuzuz-zuzuz-zuzuz-zusab");
}

}  // namespace
}  // namespace domicile::cli

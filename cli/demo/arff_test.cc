#include "cli/demo/arff.h"

#include <string>

#include <doctest/doctest.h>

namespace domicile::cli {
namespace {

TEST_CASE("ARFF: texts are unescaped and become UTF-8") {
  const auto texts = ParseArffTexts(
      "@relation 'x'\n@attribute Text string\n\n@data\n\n% a comment\n"
      "'wheat\\nand \\'maize\\', 5\\\\6',1\n'caf\xE9, no grain',0 \r\n",
      "x.arff");

  REQUIRE(texts.ok());
  REQUIRE(texts->size() == 2);
  CHECK((*texts)[0].text == "wheat\nand 'maize', 5\\6");
  CHECK((*texts)[0].label == "1");
  CHECK((*texts)[1].text == "caf\xC3\xA9, no grain");
  CHECK((*texts)[1].label == "0");
}

TEST_CASE("ARFF: a line of another form is named") {
  for (const char* line : {"text,1", "'text", "'text'", "'text',", "'text';1", "'a\\"}) {
    CAPTURE(line);
    const auto texts = ParseArffTexts("@data\n'a',0\n" + std::string(line) + "\n", "x.arff");
    CHECK(texts.status().code() == StatusCode::kInvalidArgument);
    CHECK(Message(texts.status()).find("x.arff:3: ") == 0);
  }
  CHECK(ParseArffTexts("'a',0\n", "x.arff")->empty());
}

}  // namespace
}  // namespace domicile::cli

#include "models/text/wordpiece.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "models/text/basic_text.h"

namespace domicile::models {
namespace {

using Golden = nlohmann::json;

const Golden& Vectors() {
  static const Golden golden = [] {
    std::ifstream file(DOMICILE_SOURCE_DIR "/tests/golden/wordpiece.json");
    return Golden::parse(file);
  }();
  return golden;
}

// The tokens that the vectors' results are made of, in order of first use: where the whole
// vocabulary has a longest match, this one has the same.
std::vector<std::string> UsedTokens() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[",    "]",
                                     "cl",    "##s",   "mask",  "sep",   "first",  "text", "second",
                                     "one",   "x",     "two",   "three", "four",   "five", "six"};
  for (const Golden& c : Vectors().at("cases")) {
    for (const Golden& token : c.at("tokens")) {
      if (std::find(tokens.begin(), tokens.end(), token.get<std::string>()) == tokens.end()) {
        tokens.push_back(token.get<std::string>());
      }
    }
  }
  return tokens;
}

Vocabulary MakeVocabulary(const std::vector<std::string>& tokens) {
  std::string file;
  for (const std::string& token : tokens) {
    file += token + "\n";
  }
  auto vocabulary = Vocabulary::Parse(file);
  REQUIRE(vocabulary.ok());
  return *std::move(vocabulary);
}

std::vector<std::string> Names(const std::vector<std::string>& tokens,
                               const std::vector<std::uint32_t>& ids) {
  std::vector<std::string> names;
  for (const std::uint32_t id : ids) {
    names.push_back(tokens.at(id));
  }
  return names;
}

TEST_CASE("WordPiece: tokens agree with the reference tokenizer") {
  const std::vector<std::string> tokens = UsedTokens();
  const Vocabulary vocabulary = MakeVocabulary(tokens);
  const auto injections = Vectors().at("own_python_differs_on").get<std::vector<std::string>>();
  std::size_t compared = 0;
  for (const Golden& c : Vectors().at("cases")) {
    const auto text = c.at("text").get<std::string>();
    CAPTURE(text);
    if (std::find(injections.begin(), injections.end(), text) != injections.end()) {
      continue;  // the next test's
    }

    const EncodedText encoded = EncodeText(vocabulary, text, 512);

    CHECK(Names(tokens, encoded.ids) == c.at("tokens").get<std::vector<std::string>>());
    ++compared;
  }
  CHECK(compared >= 50);
}

TEST_CASE("WordPiece: what looks like a special token in a text is plain characters") {
  const std::vector<std::string> tokens = UsedTokens();
  const Vocabulary vocabulary = MakeVocabulary(tokens);

  CHECK(Names(tokens, WordPieces(vocabulary, "[CLS] [MASK][SEP]")) ==
        std::vector<std::string>{"[", "cl", "##s", "]", "[", "mask", "]", "[", "sep", "]"});
  for (const std::uint32_t id : WordPieces(vocabulary, "[PAD] [CLS] x [SEP] [MASK]")) {
    CHECK((id == vocabulary.unknown() || id >= 5));
  }
}

TEST_CASE("WordPiece: pairs have types, and what is too long is cut") {
  const std::vector<std::string> tokens = UsedTokens();
  const Vocabulary vocabulary = MakeVocabulary(tokens);
  using Names = std::vector<std::string>;
  const auto names = [&tokens](const EncodedText& text) {
    return domicile::models::Names(tokens, text.ids);
  };

  const EncodedText pair = EncodePair(vocabulary, "first text", "second one", 512);
  CHECK(names(pair) == Names{"[CLS]", "first", "text", "[SEP]", "second", "one", "[SEP]"});
  CHECK(pair.types == Vectors().at("pairs").at(0).at("type_ids").get<std::vector<std::uint32_t>>());
  CHECK(EncodePair(vocabulary, "", "x", 512).types ==
        Vectors().at("pairs").at(1).at("type_ids").get<std::vector<std::uint32_t>>());
  CHECK(names(EncodeText(vocabulary, "one two three four five six one", 8)) ==
        Names{"[CLS]", "one", "two", "three", "four", "five", "six", "[SEP]"});
  CHECK(names(EncodePair(vocabulary, "one two three four", "five six", 6)) ==
        Names{"[CLS]", "one", "two", "[SEP]", "five", "[SEP]"});
}

TEST_CASE("TokenBatch: shorter sequences are padded, and the mask says where") {
  const std::vector<std::string> tokens = UsedTokens();
  const Vocabulary vocabulary = MakeVocabulary(tokens);
  const std::vector<EncodedText> texts = {EncodeText(vocabulary, "one", 9),
                                          EncodePair(vocabulary, "one two", "x", 9)};

  const TokenBatch batch(vocabulary, texts);

  const TokenView view = batch.View();
  REQUIRE(view.length == 6);
  CHECK(view.NumSequences() == 2);
  const auto list = [](const auto& span) { return std::vector<int>(span.begin(), span.end()); };
  CHECK(list(view.mask) == std::vector<int>{1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1});
  CHECK(list(view.types) == std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1});
  CHECK(view.ids[4] == vocabulary.pad());
}

TEST_CASE("BasicWords: bytes that are not UTF-8 are dropped, and nothing is left of nothing") {
  CHECK(BasicWords("a\xff\xc3"
                   "b \xed\xa0\x80 \xe2\x82")
            .size() == 1);
  CHECK(BasicWords("a\xff\xc3"
                   "b")
            .at(0) == "ab");
  CHECK(BasicWords(std::string_view("\0\0 \x07", 4)).empty());
  CHECK_FALSE(IsUtf8("\xc0\xaf"));
  CHECK(IsUtf8("Zürich 中 😀"));
  CHECK(NumCharacters("Zürich 中 😀") == 10);
}

TEST_CASE("Vocabulary: files that are not one are refused, naming the line") {
  const std::string good = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nword\n";
  CHECK(Vocabulary::Parse(good).ok());
  CHECK(Vocabulary::Parse(good)->size() == 5);
  CHECK(Vocabulary::Parse(good.substr(0, good.size() - 1)).ok());  // the last line end may lack
  CHECK(Vocabulary::Parse(good)->Find("word") == 4U);
  CHECK_FALSE(Vocabulary::Parse(good)->Find("Word"));
  const struct {
    std::string file;
    const char* part;
  } bad[] = {
      {"", "[PAD]"},
      {"[PAD]\n[UNK]\n[CLS]\nword\n", "[SEP]"},
      {good + "\nother\n", "line 6"},
      {good + "word\n", "line 6"},
      {good + "two words\n", "line 6"},
      {"[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n", "line 1"},
      {good + "\xff\n", "line 6"},
      {good + std::string(401, 'x') + "\n", "line 6"},
  };
  for (const auto& c : bad) {
    CAPTURE(c.part);
    const auto status = Vocabulary::Parse(c.file).status();
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(ToString(status).find(c.part) != std::string::npos);
  }
}

}  // namespace
}  // namespace domicile::models

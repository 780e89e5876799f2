// Texts as tokens of a vocabulary that a job names by digest.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "models/text/vocabulary.h"
#include "site_agent/datasets/dataset.h"
#include "site_agent/datasets/testing.h"

namespace domicile::site_agent {
namespace {

constexpr std::uint32_t kPad = 0;
constexpr std::uint32_t kUnknown = 1;
constexpr std::uint32_t kBegin = 2;
constexpr std::uint32_t kEnd = 3;
constexpr std::string_view kWords =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nwheat\ncorn\n##s\n[\n]\nsep\n.\n";  // wheat 4, corn 5, ##s 6 ...

contracts::SchemaContract Texts(std::uint32_t length) {
  contracts::SchemaContract schema;
  schema.text.emplace();
  schema.text->length = length;
  schema.text->vocabulary.bytes[0] = 7;
  schema.label.column = "label";
  schema.label.classes = {"no", "yes"};
  return schema;
}

class Words {
 public:
  Words() : vocabulary_(models::Vocabulary::Parse(kWords).value()) {}

  ReadOptions Options() const {
    ReadOptions options;
    options.vocabularies = [this](const Digest& digest) {
      return digest == Texts(2).text->vocabulary ? &vocabulary_ : nullptr;
    };
    return options;
  }

 private:
  models::Vocabulary vocabulary_;
};

TEST_CASE("BuildDataset: a text is [CLS], its pieces and [SEP], cut and padded to the length") {
  const Folder folder;
  const Words words;
  auto description = Describe({folder.Write(
      "t.csv", "body,label\n\"Wheat, corns.\",yes\ncorn,no\n\"wheat wheat\nwheat wheat\",yes\n")});
  description.columns = {Column("text", "body")};

  const auto data = LoadDataset(description, Texts(6), words.Options());

  REQUIRE(data.ok());
  CHECK(data->training.NumRows() == 3);
  CHECK(data->training.num_inputs == 0);
  CHECK(data->training.lengths == std::vector<std::uint32_t>{6, 3, 6});
  CHECK(data->training.tokens == std::vector<std::uint32_t>{kBegin, 4, kUnknown, 5, 6,
                                                            kEnd,  // cut: "." is gone
                                                            kBegin, 5, kEnd, kPad, kPad, kPad,  //
                                                            kBegin, 4, 4, 4, 4, kEnd});
  CHECK(data->training.labels == std::vector<std::uint32_t>{1, 0, 1});
}

TEST_CASE("BuildDataset: what looks like a special token in a text is text") {
  const Folder folder;
  const Words words;
  const auto description = Describe({folder.Write("t.csv", "text,label\n[SEP] [PAD],no\n")});

  const auto data = LoadDataset(description, Texts(8), words.Options());

  REQUIRE(data.ok());
  // "[", "sep", "]", "[", "pad" (unknown), "]"
  CHECK(data->training.tokens == std::vector<std::uint32_t>{kBegin, 7, 9, 8, 7, kUnknown, 8, kEnd});
}

TEST_CASE(
    "BuildDataset: a text that is missing or not UTF-8 is named, a vocabulary that is not here "
    "too") {
  const Folder folder;
  const Words words;
  auto description = Describe({folder.Write("t.csv", "text,label\n,no\nb\xFF,no\nwheat,yes\n")});

  const auto refused = LoadDataset(description, Texts(4), words.Options());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.TheFault().Travels().rows_refused == 2);
  CHECK(Contains(FaultText(refused.TheFault()), ":2: column 1 `text`: the text is missing"));
  CHECK(Contains(FaultText(refused.TheFault()), ":3: column 1 `text`: not UTF-8"));

  description.files = {folder.Write("u.csv", "text,label\n,no\nwheat,yes\n")};
  description.rows_with_missing = contracts::RowsWithMissing::kDrop;
  const auto data = LoadDataset(description, Texts(4), words.Options());
  REQUIRE(data.ok());
  CHECK(data->counts.dropped == 1);
  CHECK(data->missing_counts == std::vector<std::uint64_t>{1});

  contracts::SchemaContract other = Texts(4);
  other.text->vocabulary.bytes[0] = 8;
  for (const ReadOptions& options : {words.Options(), ReadOptions{}}) {
    const auto absent = LoadDataset(description, other, options);
    REQUIRE_FALSE(absent.ok());
    CHECK(absent.TheFault().Travels().rows_refused == 0);
    CHECK(Contains(FaultText(absent.TheFault()), "needs the vocabulary file of SHA-256 0800"));
  }
}

}  // namespace
}  // namespace domicile::site_agent

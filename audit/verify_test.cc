#include "audit/verify.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "audit/export.h"
#include "crypto/merkle.h"
#include "tests/support/example_log.h"

namespace domicile::audit {
namespace {

using test::Must;

std::string ReadGolden(const std::string& name) {
  std::ifstream file(std::string(DOMICILE_SOURCE_DIR) + "/tests/golden/c33/" + name,
                     std::ios::binary);
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

VerifyReport Verify(const std::string& lines, const VerifyOptions& options) {
  std::istringstream in(lines);
  return VerifyExport(in, options);
}

bool Has(const VerifyReport& report, FindingKind kind) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& finding) { return finding.kind == kind; });
}

bool Says(const VerifyReport& report, std::string_view text) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
    return finding.text.find(text) != std::string::npos;
  });
}

// The smallest number of an entry that a finding names.
std::optional<std::uint64_t> FirstNamed(const VerifyReport& report) {
  std::optional<std::uint64_t> first;
  for (const Finding& finding : report.findings) {
    if (finding.seq && (!first || *finding.seq < *first)) {
      first = finding.seq;
    }
  }
  return first;
}

std::vector<Digest> HashesOf(const std::string& lines) {
  std::vector<Digest> hashes;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    hashes.push_back(crypto::LeafHash(AsBytes(line)));
  }
  return hashes;
}

// A head of case C33, kept outside: its root is the golden one.
std::string GoldenHead(const crypto::NoteSigner& signer, std::uint64_t size) {
  const auto roots = nlohmann::json::parse(ReadGolden("roots.json"));
  const auto hex = roots.at("roots").at(std::to_string(size)).get<std::string>();
  return Must(signer.Sign(crypto::PrintCheckpoint(
      {.origin = signer.Verifier().name(), .size = size, .root = Must(ParseDigest(hex))})));
}

VerifyOptions C33Options(const crypto::NoteSigner& signer, bool head) {
  VerifyOptions options;
  options.content = VerifyOptions::Content::kBytes;
  options.key = signer.Verifier();
  options.leaf_hashes = HashesOf(ReadGolden("log.jsonl"));
  if (head) {
    options.outside_heads.push_back(GoldenHead(signer, 7));
  }
  return options;
}

TEST_CASE("Verify: the roots of case C33 are those of an independent program, at every size") {
  const crypto::NoteSigner signer = test::ExampleSigner("c33");
  VerifyOptions options;
  options.content = VerifyOptions::Content::kBytes;
  options.key = signer.Verifier();
  for (std::uint64_t size = 0; size <= 7; ++size) {
    options.outside_heads.push_back(GoldenHead(signer, size));
  }

  const VerifyReport report = Verify(ReadGolden("log.jsonl"), options);

  CHECK(report.Intact());
  CHECK(report.heads_outside == 8);
  CHECK(report.proven_size == 7);
  CHECK(PrintHex(report.root) ==
        "80f4ad022875e76d435413b478a56ff2d3bd1a8a719ca7f56eee4623b63b583e");
  CHECK(PrintReport(report).find("the first 7 entries are those of the head given") !=
        std::string::npos);
}

TEST_CASE("Verify: with the noted head, every changed file of case C33 fails at the right entry") {
  struct Case {
    const char* file;
    FindingKind kind;
    std::optional<std::uint64_t> entry;
    const char* says;
  };
  const Case cases[] = {
      {"edited.jsonl", FindingKind::kLeafBytes, 2, "entry 2"},
      {"deleted_middle.jsonl", FindingKind::kSequence, 2,
       "entry 2: sequence number 3 found, 2 expected"},
      {"swapped.jsonl", FindingKind::kSequence, 3, "entry 3: sequence number 4 found"},
      {"prefix_cut.jsonl", FindingKind::kSequence, 0, "entry 0: sequence number 2 found"},
      {"tail_cut.jsonl", FindingKind::kHeadSize, 5, "head says 7 entries, log has 5"},
      {"empty.jsonl", FindingKind::kHeadSize, 0, "head says 7 entries, log has 0"},
      {"tail_cut_and_regrown.jsonl", FindingKind::kHeadRoot, 5, "the root differs"},
      {"torn_last_line.jsonl", FindingKind::kTornLine, 6, "it is not entry 6"},
      {"crlf.jsonl", FindingKind::kLineEnd, 0, "CR LF"},
  };
  const crypto::NoteSigner signer = test::ExampleSigner("c33");
  for (const Case& c : cases) {
    CAPTURE(c.file);
    const VerifyReport report = Verify(ReadGolden(c.file), C33Options(signer, true));

    CAPTURE(PrintReport(report));
    CHECK(!report.Intact());
    CHECK(Has(report, c.kind));
    CHECK(Says(report, c.says));
    CHECK(FirstNamed(report) == c.entry);
    CHECK(PrintReport(report).find("NOT what was written") != std::string::npos);
  }
}

TEST_CASE("Verify: the changed files of case C33 have the roots that case C33 gives") {
  const crypto::NoteSigner signer = test::ExampleSigner("c33");
  struct Case {
    const char* file;
    const char* root;
  };
  const Case cases[] = {{"edited.jsonl", "f837666577aa3835"},
                        {"deleted_middle.jsonl", "cf81ec16d3990a47"},
                        {"swapped.jsonl", "9e9991a347ba1520"},
                        {"tail_cut.jsonl", "ff745dbd796d802a"}};
  for (const Case& c : cases) {
    CAPTURE(c.file);
    const VerifyReport report = Verify(ReadGolden(c.file), C33Options(signer, true));
    CHECK(PrintHex(report.root).substr(0, 16) == c.root);
  }
}

TEST_CASE("Verify: without a head from outside it says what cannot be seen, and never just valid") {
  const crypto::NoteSigner signer = test::ExampleSigner("c33");
  VerifyOptions options = C33Options(signer, false);
  options.leaf_hashes.reset();

  for (const char* file : {"log.jsonl", "tail_cut.jsonl"}) {
    CAPTURE(file);
    const VerifyReport report = Verify(ReadGolden(file), options);
    CHECK(report.Intact());
    CHECK(report.proven_size == 0);
    const std::string text = PrintReport(report);
    CHECK(text.find("no earlier head given: removal at the end cannot be seen") !=
          std::string::npos);
    CHECK(text.find("valid") == std::string::npos);
  }
  CHECK(!Verify(ReadGolden("empty.jsonl"), options).Intact());
}

TEST_CASE("Verify: a torn last line is set aside, and the whole entries stay") {
  const crypto::NoteSigner signer = test::ExampleSigner("c33");
  VerifyOptions options = C33Options(signer, false);
  options.leaf_hashes.reset();
  options.outside_heads = {GoldenHead(signer, 6)};

  const VerifyReport report = Verify(ReadGolden("torn_last_line.jsonl"), options);

  CHECK(report.size == 6);
  CHECK(report.proven_size == 6);
  CHECK(report.findings.size() == 1);
  CHECK(report.findings[0].kind == FindingKind::kTornLine);
}

// Seven entries of our own and a head over them.
struct OwnLog {
  OwnLog() {
    std::vector<Event> events = test::SiteStory();
    events.push_back(test::SiteStarted());
    lines = test::LinesOf(test::LeavesOf(test::kSiteLog, events));
    head = Head(lines);
    options.key = signer.Verifier();
    options.outside_heads = {head};
  }
  std::string Head(const std::vector<std::string>& of) const {
    std::vector<Digest> hashes;
    for (const std::string& line : of) {
      hashes.push_back(crypto::LeafHash(AsBytes(line)));
    }
    return Must(signer.Sign(crypto::PrintCheckpoint(
        {.origin = test::kSiteLog, .size = of.size(), .root = crypto::RootOfLeaves(hashes)})));
  }
  crypto::NoteSigner signer = test::ExampleSigner(test::kSiteLog);
  std::vector<std::string> lines;
  std::string head;
  VerifyOptions options;
};

TEST_CASE("Verify: a log of our own holds against its head, and at every shorter one") {
  OwnLog own;
  for (std::size_t size = 1; size <= own.lines.size(); ++size) {
    own.options.outside_heads.push_back(
        own.Head({own.lines.begin(), own.lines.begin() + static_cast<std::ptrdiff_t>(size)}));
  }
  own.options.leaf_hashes = HashesOf(test::JoinLines(own.lines));

  const VerifyReport report = Verify(test::JoinLines(own.lines), own.options);

  CAPTURE(PrintReport(report));
  CHECK(report.Intact());
  CHECK(report.not_checked.empty());
  CHECK(report.origin == test::kSiteLog);
  CHECK(report.heads_outside == 8);
}

TEST_CASE("Verify: every single changed byte of an export is found, and its entry named") {
  OwnLog own;
  own.options.leaf_hashes = HashesOf(test::JoinLines(own.lines));
  const std::string good = test::JoinLines(own.lines);
  static constexpr std::array<char, 3> kFlips = {'\x01', '\x20', '\x7F'};
  std::uint64_t entry = 0;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ kFlips[i % kFlips.size()]);
    const VerifyReport report = Verify(bad, own.options);
    CHECK(!report.Intact());
    CHECK(FirstNamed(report) == entry);
    entry += good[i] == '\n' ? 1 : 0;
  }
}

TEST_CASE("Verify: every cut of an export is found") {
  const OwnLog own;
  const std::string good = test::JoinLines(own.lines);
  for (std::size_t length = 0; length < good.size(); ++length) {
    CHECK(!Verify(good.substr(0, length), own.options).Intact());
    CHECK(!Verify(good.substr(good.size() - length), own.options).Intact());
  }
}

TEST_CASE("Verify: removal, repetition and reordering of entries is found") {
  const OwnLog own;
  for (std::size_t i = 0; i < own.lines.size(); ++i) {
    CAPTURE(i);
    const auto at = static_cast<std::ptrdiff_t>(i);
    std::vector<std::string> lines = own.lines;
    lines.erase(lines.begin() + at);
    const VerifyReport removed = Verify(test::JoinLines(lines), own.options);
    CHECK(FirstNamed(removed) == i);

    lines = own.lines;
    lines.insert(lines.begin() + at, own.lines[i]);
    CHECK(FirstNamed(Verify(test::JoinLines(lines), own.options)) == i + 1);

    lines = own.lines;
    std::swap(lines[i], lines[(i + 1) % lines.size()]);
    CHECK(FirstNamed(Verify(test::JoinLines(lines), own.options)) ==
          std::min(i, (i + 1) % lines.size()));
  }
}

TEST_CASE("Verify: an entry made anew in good form is found by the heads around it") {
  OwnLog own;
  own.options.outside_heads = {own.Head({own.lines.begin(), own.lines.begin() + 3}), own.head};
  std::vector<Event> events = test::SiteStory();
  events.push_back(test::SiteStarted());
  events[4] = test::NotCounted(test::ExampleDigest(0x11));
  const auto lines = test::LinesOf(test::LeavesOf(test::kSiteLog, events));

  const VerifyReport report = Verify(test::JoinLines(lines), own.options);

  CHECK(report.findings.size() == 1);
  CHECK(report.findings[0].kind == FindingKind::kHeadRoot);
  CHECK(Says(report, "the change lies in entries 3 to 6"));
  CHECK(report.proven_size == 3);

  own.options.outside_heads = {own.Head({own.lines.begin(), own.lines.begin() + 4}),
                               own.Head({own.lines.begin(), own.lines.begin() + 5})};
  CHECK(FirstNamed(Verify(test::JoinLines(lines), own.options)) == 4);
}

TEST_CASE("Verify: unknown events, wrong times and strange entries are named") {
  OwnLog own;
  own.options.outside_heads.clear();
  std::vector<Leaf> leaves = test::LeavesOf(test::kSiteLog, test::SiteStory());
  leaves[2].frame.time -= std::chrono::seconds(5);
  CHECK(Has(Verify(test::JoinLines(test::LinesOf(leaves)), own.options), FindingKind::kTime));
  leaves = test::LeavesOf(test::kSiteLog, test::SiteStory());
  leaves[2].frame.mono_us = 0;
  CHECK(Has(Verify(test::JoinLines(test::LinesOf(leaves)), own.options), FindingKind::kTime));
  leaves[2].frame.boot = std::string(32, 'c');
  leaves[3].frame.boot = std::string(32, 'c');
  leaves[4].frame.boot = std::string(32, 'd');
  leaves[4].frame.mono_us = 0;
  leaves[5].frame.boot = std::string(32, 'e');
  CHECK(Verify(test::JoinLines(test::LinesOf(leaves)), own.options).Intact());
  leaves[1].frame.origin = "demo/site/bonn/log";
  const VerifyReport foreign = Verify(test::JoinLines(test::LinesOf(leaves)), own.options);
  CHECK(Has(foreign, FindingKind::kLeafForm));
  CHECK(FirstNamed(foreign) == 1);

  std::vector<std::string> lines = own.lines;
  lines[3] = std::string(70000, 'x');
  CHECK(Says(Verify(test::JoinLines(lines), own.options), "longer than an entry can be"));
  lines[3] = "";
  CHECK(FirstNamed(Verify(test::JoinLines(lines), own.options)) == 3);
  lines[3] = R"({"secret":"Frau Meier"})";
  const VerifyReport secret = Verify(test::JoinLines(lines), own.options);
  CHECK(!secret.Intact());
  CHECK(PrintReport(secret).find("Meier") == std::string::npos);
}

TEST_CASE("Verify: a changed byte of a head is found, with and without the key") {
  OwnLog own;
  const std::string good = test::JoinLines(own.lines);
  const std::size_t text_end = own.head.find("\n\n");
  for (std::size_t i = 0; i < own.head.size(); ++i) {
    CAPTURE(i);
    std::string bad = own.head;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    own.options.outside_heads = {bad};
    own.options.key = own.signer.Verifier();
    CHECK(!Verify(good, own.options).Intact());
    // Without the key only size and root can be compared.
    own.options.key.reset();
    const VerifyReport report = Verify(good, own.options);
    CHECK(report.not_checked.size() >= 1);
    if (i > own.head.find('\n') && i < text_end) {
      CHECK(!report.Intact());
    }
  }
}

TEST_CASE("Verify: the report for machines holds what the text says") {
  OwnLog own;
  own.lines.pop_back();
  const Json json = ReportJson(Verify(test::JoinLines(own.lines), own.options));

  CHECK(*json.Find("intact")->TryBool() == false);
  CHECK(*json.Find("entries")->TryInt() == 6);
  const Json& finding = (*json.Find("findings")->TryArray())[0];
  CHECK(*finding.Find("kind")->TryString() == "head_size");
  CHECK(*finding.Find("seq")->TryInt() == 6);
}

}  // namespace
}  // namespace domicile::audit

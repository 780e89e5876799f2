#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>

#include <doctest/doctest.h>

#include "audit/export.h"
#include "audit/leaves.h"
#include "audit/peer_heads.h"
#include "audit/verify.h"
#include "base/file.h"
#include "tests/support/example_log.h"

namespace domicile::audit {
namespace {

using test::ExampleLog;
using test::Must;

// A small log in a file, of six leaves unless told otherwise, heads after three and after all, one
// head of a peer.
class SmallLog {
 public:
  explicit SmallLog(const std::vector<Event>& story = test::SiteStory())
      : path_(folder_.File("agent.db")) {
    ExampleLog example(path_);
    example.Append({story.begin(), story.begin() + 3});
    Must(example.log->Head().status());
    example.Append({story.begin() + 3, story.end()});
    head_ = Must(example.log->Head()).note;
    ExampleLog peer(":memory:", test::kAggregatorLog);
    peer.Append(test::AggregatorStory());
    PeerHeads peers(example.db);
    Must(peers.Check(Must(peer.log->Head()).note, peer.signer.Verifier(), {}).status());
    options_.key = example.signer.Verifier();
    options_.outside_heads = {head_};
    Must(example.db.Execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE"));
  }

  VerifyReport Verify() const { return Must(VerifyLogFile(path_, options_)); }
  const std::string& path() const { return path_; }
  const std::string& head() const { return head_; }
  std::string File(const std::string& name) const { return folder_.File(name); }
  VerifyOptions& options() { return options_; }
  Database Open() const { return Must(Database::Open(path_, Database::Mode::kReadWrite)); }

 private:
  test::TempFolder folder_;
  std::string path_;
  std::string head_;
  VerifyOptions options_;
};

TEST_CASE("VerifyLogFile: a log that was not changed holds, inside and outside") {
  const SmallLog log;
  const VerifyReport report = log.Verify();

  CAPTURE(PrintReport(report));
  CHECK(report.Intact());
  CHECK(report.size == 6);
  CHECK(report.heads_inside == 2);
  CHECK(report.heads_outside == 1);
  CHECK(report.not_checked.empty());
}

// Changes each byte of one column of each row, one at a time, and puts it back.
void ChangeEveryByte(const SmallLog& log, const std::string& table, const std::string& column,
                     bool names_entry) {
  Database db = log.Open();
  Must(db.Execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF"));
  const std::string cell = "CAST(" + column + " AS BLOB)";
  const bool text = column == "note" || column == "origin";
  std::vector<std::pair<std::int64_t, Bytes>> cells;
  Statement read = Must(db.Prepare("SELECT " + std::string(names_entry ? "seq" : "0") + ", " +
                                   cell + " FROM " + table));
  while (Must(read.Step())) {
    cells.emplace_back(read.Int(0), read.Blob(1));
  }
  read.Reset();
  REQUIRE(!cells.empty());
  Statement write =
      Must(db.Prepare("UPDATE " + table + " SET " + column + " = " +
                      (text ? "CAST(?1 AS TEXT)" : "?1") + " WHERE " + cell + " = ?2"));
  const auto set = [&](const Bytes& from, const Bytes& to) {
    write.Bind(1, ByteSpan(to)).Bind(2, ByteSpan(from));
    Must(write.Run());
    REQUIRE(db.Changes() == 1);
    write.Reset();
  };
  for (const auto& cell_of_row : cells) {
    const std::int64_t row = cell_of_row.first;
    const Bytes& good = cell_of_row.second;
    for (std::size_t i = 0; i < good.size(); ++i) {
      Bytes bad = good;
      bad[i] ^= 1;
      set(good, bad);
      const VerifyReport report = log.Verify();
      CAPTURE(table);
      CAPTURE(column);
      CAPTURE(row);
      CAPTURE(i);
      CAPTURE(PrintReport(report));
      CHECK(!report.Intact());
      if (names_entry) {
        CHECK(report.findings[0].seq == static_cast<std::uint64_t>(row));
      }
      set(bad, good);
    }
  }
  CHECK(log.Verify().Intact());
}

TEST_CASE("VerifyLogFile: every changed byte of a leaf is found, and the leaf named") {
  const std::vector<Event> story = test::SiteStory();
  ChangeEveryByte(SmallLog({story[0], story[3], story[4], story[5]}), "log_leaf", "bytes", true);
}

TEST_CASE("VerifyLogFile: every changed byte of a stored hash is found, and the leaf named") {
  ChangeEveryByte(SmallLog(), "log_leaf", "hash", true);
}

TEST_CASE("VerifyLogFile: every changed byte of a stored subtree hash is found") {
  ChangeEveryByte(SmallLog(), "log_subtree", "hash", false);
}

TEST_CASE("VerifyLogFile: every changed byte of a stored head is found") {
  ChangeEveryByte(SmallLog(), "log_head", "root", false);
  ChangeEveryByte(SmallLog(), "log_head", "note", false);
}

TEST_CASE("VerifyLogFile: a changed head of a peer is found") {
  ChangeEveryByte(SmallLog(), "log_peer_head", "root", false);
  ChangeEveryByte(SmallLog(), "log_peer_head", "origin", false);
}

TEST_CASE("VerifyLogFile: says whether the bytes or the stored hash of a leaf were changed") {
  const SmallLog log;
  Database db = log.Open();
  Must(db.Execute("UPDATE log_leaf SET hash = zeroblob(32) WHERE seq = 1"));
  CHECK(log.Verify().findings[0].text.find("so the stored hash was changed") != std::string::npos);
  Must(
      db.Execute("UPDATE log_leaf SET hash = (SELECT hash FROM log_leaf WHERE seq = 2), "
                 "bytes = (SELECT bytes FROM log_leaf WHERE seq = 2) WHERE seq = 1"));
  // Both changed, so that they fit: the heads and the number in the leaf tell.
  const VerifyReport both = log.Verify();
  CHECK(both.findings[0].seq == 1);
}

TEST_CASE("VerifyLogFile: rows that were changed, removed or added are named") {
  struct Case {
    const char* name;
    const char* sql;
    FindingKind kind;
    const char* says;
  };
  const Case cases[] = {
      {"bytes",
       "UPDATE log_leaf SET bytes = CAST(replace(bytes, 'heart', 'brain') AS BLOB) WHERE seq = 2",
       FindingKind::kLeafBytes, "a head agrees with the stored hash, so the bytes were changed"},
      {"leaf removed", "DELETE FROM log_leaf WHERE seq = 2", FindingKind::kSequence,
       "entry 2 is missing: entry 3 follows"},
      {"first removed", "DELETE FROM log_leaf WHERE seq = 0", FindingKind::kSequence,
       "entry 0 is missing"},
      {"renumbered", "UPDATE log_leaf SET seq = 9 WHERE seq = 5", FindingKind::kSequence,
       "entry 5 is missing: entry 9 follows"},
      {"negative number", "UPDATE log_leaf SET seq = -1 WHERE seq = 5", FindingKind::kSequence,
       "entry 0 is missing"},
      {"tail removed", "DELETE FROM log_leaf WHERE seq > 3", FindingKind::kHeadSize,
       "head says 6 entries, log has 4"},
      {"all removed", "DELETE FROM log_leaf; DELETE FROM log_subtree; DELETE FROM log_head",
       FindingKind::kHeadSize, "head says 6 entries, log has 0"},
      {"subtree removed", "DELETE FROM log_subtree WHERE level = 2", FindingKind::kSubtree,
       "level 2, index 0 (completed by entry 3) is missing"},
      {"subtree added", "INSERT INTO log_subtree VALUES (1, 3, zeroblob(32))",
       FindingKind::kSubtree, "1 stored hashes are of no subtree"},
      {"level added", "INSERT INTO log_subtree VALUES (7, 0, zeroblob(32))", FindingKind::kSubtree,
       "1 stored hashes are of no subtree"},
      {"head size", "UPDATE log_head SET size = 5 WHERE size = 6", FindingKind::kHeadForm,
       "the stored head of 5 entries"},
      {"head added", "INSERT INTO log_head SELECT 4, root, note FROM log_head WHERE size = 6",
       FindingKind::kHeadForm, "another size or root than its row"},
      {"table dropped", "DROP TABLE log_subtree", FindingKind::kDamage,
       "has not the tables of a log"},
      {"view instead", "DROP TABLE log_head; CREATE VIEW log_head AS SELECT 1 AS size",
       FindingKind::kDamage, "has not the tables of a log"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const SmallLog log;
    {
      Database db = log.Open();
      Must(db.Execute(c.sql));
    }
    const VerifyReport report = log.Verify();
    CAPTURE(PrintReport(report));
    const auto found =
        std::find_if(report.findings.begin(), report.findings.end(), [&](const Finding& finding) {
          return finding.kind == c.kind && finding.text.find(c.says) != std::string::npos;
        });
    CHECK(found != report.findings.end());
    CHECK(!PrintJson(ReportJson(report)).empty());
  }
}

TEST_CASE("VerifyLogFile: a log rewritten with the right key but without its last head is found") {
  const SmallLog log;
  Database db = log.Open();
  Must(
      db.Execute("DELETE FROM log_leaf WHERE seq > 2; DELETE FROM log_subtree WHERE level > 1; "
                 "DELETE FROM log_subtree WHERE idx > 0; DELETE FROM log_head WHERE size > 3"));

  // In itself it is a good log; only the head that was kept elsewhere tells.
  VerifyOptions inside = SmallLog().options();
  inside.outside_heads.clear();
  const VerifyReport alone = Must(VerifyLogFile(log.path(), inside));
  CAPTURE(PrintReport(alone));
  CHECK(alone.Intact());
  CHECK(alone.not_checked.size() == 1);
  CHECK(!log.Verify().Intact());
}

TEST_CASE("VerifyLogFile: a changed byte of the file is found, or changed nothing of the log") {
  const SmallLog log;
  const std::string good = Must(ReadFile(log.path(), 1U << 22U));
  const std::string copy = log.File("copy.db");
  const auto leaves_of = [](const std::string& path) {
    std::vector<std::string> lines;
    const Status read = ForEachLeaf(path, [&](const Leaf& leaf) {
      lines.push_back(Must(PrintLeaf(leaf.frame, leaf.event)));
      return OkStatus();
    });
    return read.ok() ? lines : std::vector<std::string>();
  };
  const auto wanted = leaves_of(log.path());
  REQUIRE(wanted.size() == 6);
  int found = 0;
  for (std::size_t i = 0; i < good.size(); i += 37) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x21);
    std::ofstream(copy, std::ios::binary) << bad;
    VerifyOptions options;
    options.outside_heads = {log.head()};
    const auto report = VerifyLogFile(copy, options);
    if (report.ok() && report->Intact()) {
      CAPTURE(i);
      CHECK(leaves_of(copy) == wanted);
    } else {
      ++found;
    }
  }
  CHECK(found > 20);
}

TEST_CASE("VerifyLogFile: a file cut at any page is damage, a missing one an error") {
  const SmallLog log;
  const std::string good = Must(ReadFile(log.path(), 1U << 22U));
  const std::string copy = log.File("copy.db");
  for (std::size_t length = 16; length < good.size(); length += 1024) {
    std::ofstream(copy, std::ios::binary) << good.substr(0, length);
    const auto report = VerifyLogFile(copy, {});
    CAPTURE(length);
    CHECK((!report.ok() || !report->Intact()));
  }
  CHECK(VerifyLogFile(log.File("none.db"), {}).status().code() == StatusCode::kNotFound);
}

TEST_CASE("VerifyLogFile: while its owner has an open transaction, it sees what was committed") {
  const test::TempFolder folder;
  ExampleLog example(folder.File("agent.db"));
  example.Append(test::SiteStory());
  Must(example.log->Head().status());
  Transaction open = Must(Transaction::Begin(example.db));
  Must(example.log->Append(test::SiteStarted()).status());

  const VerifyReport report = Must(VerifyLogFile(folder.File("agent.db"), {}));

  CHECK(report.Intact());
  CHECK(report.size == 6);
}

TEST_CASE("ExportLog: writes the exact leaves, their hashes and the head, and verifies") {
  const SmallLog log;
  const std::string file = log.File("log.jsonl");
  const std::string head = log.File("head");
  {
    ExampleLog again(log.path());
    again.Append(test::SiteStarted());  // under no head yet
  }

  const ExportResult with_head = Must(ExportLog(log.path(), file, head));
  CHECK(with_head.leaves == 6);
  CHECK(with_head.head_size == 6);
  CHECK(Must(ReadFile(head, 1 << 16)) == log.head());
  VerifyOptions options = SmallLog().options();
  options.leaf_hashes = Must(ParseLeafHashes(Must(ReadFile(file + ".hashes", 1 << 16))));
  const VerifyReport report = Must(VerifyLogFile(file, options));
  CAPTURE(PrintReport(report));
  CHECK(report.Intact());
  CHECK(report.proven_size == 6);

  const ExportResult all = Must(ExportLog(log.path(), file, ""));
  CHECK(all.leaves == 7);
  std::string lines;
  Must(ForEachLeaf(log.path(), [&](const Leaf& leaf) {
    lines += Must(PrintLeaf(leaf.frame, leaf.event)) + "\n";
    return OkStatus();
  }));
  CHECK(Must(ReadFile(file, 1 << 16)) == lines);
  CHECK(!FileExists(file + ".tmp"));
}

TEST_CASE(
    "ExportLog: a cut log, a log without a head and a bad folder are errors, without a file") {
  const SmallLog log;
  const std::string file = log.File("log.jsonl");
  {
    Database db = log.Open();
    Must(db.Execute("DELETE FROM log_leaf WHERE seq = 5"));
  }
  CHECK(ExportLog(log.path(), file, log.File("head")).status().code() == StatusCode::kDataLoss);
  {
    Database db = log.Open();
    Must(db.Execute("DELETE FROM log_head"));
  }
  CHECK(ExportLog(log.path(), file, log.File("head")).status().code() ==
        StatusCode::kFailedPrecondition);
  CHECK(!ExportLog(log.path(), log.File("no/such/folder"), "").ok());
  CHECK(!FileExists(file));
  CHECK(!FileExists(file + ".tmp"));
}

TEST_CASE("ParseLeafHashes: takes whole lines of hexadecimal digits alone") {
  const std::string line = PrintHex(test::ExampleDigest(0xAB)) + "\n";

  CHECK(Must(ParseLeafHashes(line + line)).size() == 2);
  CHECK(Must(ParseLeafHashes("")).empty());
  CHECK(!ParseLeafHashes(line.substr(0, 64)).ok());
  CHECK(!ParseLeafHashes("\n").ok());
  CHECK(!ParseLeafHashes(line + "zz\n").ok());
}

TEST_CASE("LeafReader: torn lines and CR LF are errors that name the line") {
  const test::TempFolder folder;
  const std::string path = folder.File("log.jsonl");
  const auto error_of = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    const Status status = ForEachLeaf(path, [](const Leaf&) { return OkStatus(); });
    return std::string(Message(status));
  };
  const std::string good = test::JoinLines(
      test::LinesOf(test::LeavesOf(test::kSiteLog, {test::SiteStarted(), test::SiteStarted()})));

  CHECK(error_of(good).empty());
  CHECK(error_of("").empty());
  CHECK(error_of(good + "{").find("line 3 is torn") != std::string::npos);
  CHECK(error_of(good.substr(0, good.find('\n')) + "\r\n").find("CR LF") != std::string::npos);
  CHECK(error_of(good + "{}\n").find("leaf 2") != std::string::npos);
}

}  // namespace
}  // namespace domicile::audit

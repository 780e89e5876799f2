#include "audit/recovery.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <sstream>

#include <doctest/doctest.h>

#include "audit/log.h"
#include "audit/verify.h"
#include "tests/support/example_log.h"

namespace domicile::audit {
namespace {

using test::ExampleLog;
using test::Must;

LogRecovered RecordOf(ExampleLog& log, const crypto::Checkpoint& remembered) {
  const std::uint64_t size = Must(log.log->Size());
  return {.operator_name = "ada",
          .instance = 7,
          .size = size,
          .root = Must(log.log->RootAt(size)),
          .kept = 6,
          .remembered_size = remembered.size,
          .remembered_root = remembered.root,
          .datasets = {Must(DatasetAlias::Parse("heart"))}};
}

RecoveryClaim ClaimOf(ExampleLog& log, std::uint64_t index, const crypto::Checkpoint& remembered) {
  const ProvenLeaf proven = Must(log.log->LeafWithProof(index));
  RecoveryClaim claim{.index = index,
                      .leaf = proven.leaf,
                      .proof = proven.proof,
                      .head_note = proven.head.note,
                      .root_then = {},
                      .consistency = {}};
  if (index >= remembered.size) {
    claim.root_then = Must(log.log->RootAt(remembered.size));
    claim.consistency =
        Must(log.log->ConsistencyProof(remembered.size, proven.head.checkpoint.size));
  }
  return claim;
}

// A log that was copied at six entries and went on to `grown`, and the copy, which has `since`
// entries more.
struct Restored {
  explicit Restored(int grown, int since) {
    ExampleLog original;
    original.Append(test::SiteStory());
    copy.Append(test::SiteStory());
    for (int i = 0; i < grown - 6; ++i) {
      original.Append(test::AggregatorStarted());
    }
    head = Must(original.log->Head());
    for (int i = 0; i < since; ++i) {
      copy.Append(test::SiteStarted());
    }
  }
  std::uint64_t Recover(const crypto::Checkpoint& remembered) {
    return Must(copy.log->Append(Must(ToEvent(RecordOf(copy, remembered)))));
  }
  ExampleLog copy;
  SignedHead head;  // of the original
};

TEST_CASE("Recovery: an entry that names the remembered head is taken, shorter log or longer") {
  for (const int since : {0, 2, 9}) {
    CAPTURE(since);
    Restored restored(10, since);
    const std::uint64_t index = restored.Recover(restored.head.checkpoint);
    restored.copy.Append(test::SiteStarted());
    ExampleLog keeper(":memory:", test::kAggregatorLog);
    PeerHeads peers(keeper.db);
    const crypto::NoteVerifier key = restored.copy.signer.Verifier();
    Must(peers.Check(restored.head.note, key, {}).status());
    const RecoveryClaim claim = ClaimOf(restored.copy, index, restored.head.checkpoint);

    const CheckedRecovery taken = Must(TakeRecovery(keeper.db, claim, key));

    CHECK(taken.index == index);
    CHECK(taken.record.operator_name == "ada");
    CHECK(taken.record.datasets.size() == 1);
    CHECK(*Must(peers.Last(test::kSiteLog)) == Must(restored.copy.log->Head()).checkpoint);
    // Once: the head that it names is remembered no more, and neither is another one of that past.
    CHECK(TakeRecovery(keeper.db, claim, key).status().code() == StatusCode::kFailedPrecondition);
    const std::uint64_t again = restored.Recover(restored.head.checkpoint);
    CHECK(TakeRecovery(keeper.db, ClaimOf(restored.copy, again, restored.head.checkpoint), key)
              .status()
              .code() == StatusCode::kFailedPrecondition);
    CHECK_FALSE(peers.Check(restored.head.note, key, {}).ok());
  }
}

TEST_CASE("Recovery: a log that was not behind has nothing to recover") {
  ExampleLog log;
  log.Append(test::SiteStory());
  const crypto::Checkpoint head = Must(log.log->Head()).checkpoint;
  log.Append(test::SiteStarted());
  const std::uint64_t index = Must(log.log->Append(Must(ToEvent(RecordOf(log, head)))));
  const crypto::NoteVerifier key = log.signer.Verifier();
  const RecoveryClaim claim = ClaimOf(log, index, head);

  CHECK(CheckRecovery(claim, key, head).status().code() == StatusCode::kFailedPrecondition);
  // Nor by a root that was never there, with or without a proof.
  RecoveryClaim invented = claim;
  invented.root_then = test::ExampleDigest(3);
  CHECK(CheckRecovery(invented, key, head).status().code() == StatusCode::kDataLoss);
  invented.consistency.clear();
  CHECK(CheckRecovery(invented, key, head).status().code() == StatusCode::kDataLoss);
}

TEST_CASE("Recovery: what is not proven, or says other things, is refused") {
  struct Case {
    const char* name;
    std::function<void(RecoveryClaim&)> change;
    StatusCode want;
  };
  const Case cases[] = {
      {"another leaf", [](auto& claim) { claim.leaf.replace(claim.leaf.find("ada"), 3, "eve"); },
       StatusCode::kDataLoss},
      {"another place", [](auto& claim) { ++claim.index; }, StatusCode::kDataLoss},
      {"no proof", [](auto& claim) { claim.proof.clear(); }, StatusCode::kDataLoss},
      {"a head without its signature",
       [](auto& claim) { claim.head_note.resize(claim.head_note.size() - 8); },
       StatusCode::kInvalidArgument},
  };
  Restored restored(10, 1);
  const std::uint64_t index = restored.Recover(restored.head.checkpoint);
  const crypto::NoteVerifier key = restored.copy.signer.Verifier();
  const RecoveryClaim good = ClaimOf(restored.copy, index, restored.head.checkpoint);
  REQUIRE(CheckRecovery(good, key, restored.head.checkpoint).ok());
  for (const Case& c : cases) {
    CAPTURE(c.name);
    RecoveryClaim claim = good;
    c.change(claim);
    CHECK(CheckRecovery(claim, key, restored.head.checkpoint).status().code() == c.want);
  }
  CHECK(CheckRecovery(good, test::ExampleSigner(test::kSiteLog, 3).Verifier(),
                      restored.head.checkpoint)
            .status()
            .code() == StatusCode::kUnauthenticated);
  crypto::Checkpoint other = restored.head.checkpoint;
  other.size += 1;
  CHECK(CheckRecovery(good, key, other).status().code() == StatusCode::kFailedPrecondition);
  // An entry of another type, and one that misstates its place.
  CHECK(CheckRecovery(ClaimOf(restored.copy, 0, restored.head.checkpoint), key,
                      restored.head.checkpoint)
            .status()
            .code() == StatusCode::kInvalidArgument);
  LogRecovered wrong = RecordOf(restored.copy, restored.head.checkpoint);
  wrong.size -= 1;
  const std::uint64_t misplaced = Must(restored.copy.log->Append(Must(ToEvent(wrong))));
  CHECK(CheckRecovery(ClaimOf(restored.copy, misplaced, restored.head.checkpoint), key,
                      restored.head.checkpoint)
            .status()
            .code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Recovery: the verifier reports it, explains the head it names, and no other") {
  const test::TempFolder folder;
  const std::string path = folder.File("agent.db");
  std::string between;
  std::string last;
  {
    ExampleLog log(path);
    log.Append(test::SiteStory());
  }
  std::filesystem::copy_file(path, folder.File("copy.db"));
  crypto::Checkpoint remembered;
  {
    ExampleLog log(path);
    log.Append(test::SiteStarted());
    between = Must(log.log->Head()).note;
    log.Append(test::SiteStarted());
    log.Append(test::SiteStarted());
    last = Must(log.log->Head()).note;
    remembered = Must(log.log->Head()).checkpoint;
  }
  {
    ExampleLog copy(folder.File("copy.db"));
    copy.clock.Advance(std::chrono::minutes(1));  // every fake boot looks the same
    copy.Append(test::AggregatorStarted());
    Must(copy.log->Append(Must(ToEvent(RecordOf(copy, remembered)))).status());
    for (int i = 0; i < 4; ++i) {
      copy.Append(test::SiteStarted());
    }
    Must(copy.log->Head().status());
  }
  const auto verify = [&](const std::vector<std::string>& heads) {
    return Must(VerifyLogFile(folder.File("copy.db"),
                              {.outside_heads = heads,
                               .key = test::ExampleSigner(test::kSiteLog).Verifier(),
                               .leaf_hashes = {},
                               .content = VerifyOptions::Content::kEvents,
                               .progress = {}}));
  };

  const VerifyReport explained = verify({last});
  CHECK_MESSAGE(explained.Intact(), PrintReport(explained));
  REQUIRE(explained.recoveries.size() == 1);
  CHECK(explained.recoveries[0].seq == 7);
  CHECK(explained.recoveries[0].seen_outside);
  CHECK(PrintReport(explained).find("recovered entry 7: operator ada") != std::string::npos);
  CHECK(PrintReport(explained).find("entries 6 to 8 of the history before are lost") !=
        std::string::npos);
  CHECK_FALSE(verify({}).recoveries[0].seen_outside);

  // A head of the lost time that no recovery names is a fork.
  const VerifyReport fork = verify({last, between});
  REQUIRE(fork.findings.size() == 1);
  CHECK(fork.findings[0].kind == FindingKind::kHeadRoot);
}

TEST_CASE("Recovery: an entry about other entries than those before it is a finding") {
  for (const bool other_root : {false, true}) {
    Restored restored(10, 1);
    LogRecovered wrong = RecordOf(restored.copy, restored.head.checkpoint);
    if (other_root) {
      wrong.root.bytes[0] ^= 1U;
    } else {
      wrong.size += 1;
    }
    Must(restored.copy.log->Append(Must(ToEvent(wrong))).status());
    std::stringstream lines;
    for (std::uint64_t i = 0; i < Must(restored.copy.log->Size()); ++i) {
      lines << Must(restored.copy.log->LeafBytes(i)) << "\n";
    }

    const VerifyReport report = VerifyExport(lines, {});

    REQUIRE(report.findings.size() == 1);
    CHECK(report.findings[0].kind == FindingKind::kLeafForm);
    CHECK(report.findings[0].seq == 7);
  }
}

}  // namespace
}  // namespace domicile::audit

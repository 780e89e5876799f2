#include "audit/log.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "audit/peer_heads.h"
#include "crypto/merkle.h"
#include "tests/support/example_log.h"

namespace domicile::audit {
namespace {

using test::ExampleLog;
using test::Must;

Status Reopen(Database& db, const crypto::NoteSigner& signer) {
  FakeClock clock(test::kExampleTime);
  SeededRandom random(9);
  return Log::Open(db, signer, clock, random).status();
}

TEST_CASE("Log: leaves are numbered from 0, and read back as they were written") {
  ExampleLog example;
  example.Append(test::SiteStory());

  CHECK(Must(example.log->Size()) == test::SiteStory().size());
  const Leaf leaf = Must(ParseLeaf(Must(example.log->LeafBytes(3))));
  CHECK(leaf.frame.seq == 3);
  CHECK(leaf.frame.origin == test::kSiteLog);
  CHECK(leaf.event == test::SiteStory()[3]);
  CHECK(example.log->LeafBytes(6).status().code() == StatusCode::kNotFound);
}

TEST_CASE("Log: a head is over committed leaves, and made once for them") {
  ExampleLog example;
  const SignedHead empty = Must(example.log->Head());
  CHECK(empty.checkpoint.root == crypto::EmptyRoot());
  example.Append(test::SiteStarted());

  const SignedHead head = Must(example.log->Head());
  CHECK(head.checkpoint.size == 1);
  CHECK(Must(crypto::OpenCheckpoint(head.note, example.signer.Verifier())) == head.checkpoint);
  CHECK(Must(example.log->Head()) == head);

  Transaction transaction = Must(Transaction::Begin(example.db));
  Must(example.log->Append(test::SiteStarted()).status());
  CHECK(example.log->Head().status().code() == StatusCode::kFailedPrecondition);
  CHECK(example.log->LeafWithProof(0).status().code() == StatusCode::kFailedPrecondition);
  Must(transaction.Commit());
  CHECK(Must(example.log->Head()).checkpoint.size == 2);
}

TEST_CASE("Log: leaves of a transaction that was rolled back never were") {
  ExampleLog example;
  example.Append(test::SiteStory());
  const SignedHead before = Must(example.log->Head());
  {
    Transaction transaction = Must(Transaction::Begin(example.db));
    CHECK(Must(example.log->Append(test::SiteStarted())) == 6);
    CHECK(Must(example.log->Append(test::SiteStarted())) == 7);
    CHECK(Must(example.log->Size()) == 8);
  }

  CHECK(Must(example.log->Size()) == 6);
  CHECK(Must(example.log->Head()) == before);
  CHECK(Must(example.log->Append(test::SiteStarted())) == 6);
  CHECK(Must(example.log->RootAt(6)) == before.checkpoint.root);
  CHECK(Reopen(example.db, example.signer).ok());
}

TEST_CASE("Log: a process killed within a transaction leaves a log that opens") {
  const test::TempFolder folder;
  const std::string path = folder.File("agent.db");
  {
    ExampleLog example(path);
    example.Append(test::SiteStory());
    Must(example.log->Head().status());
    // The connection goes away without a commit, as it does when the process is killed.
    Must(example.db.Execute("BEGIN IMMEDIATE"));
    Must(example.log->Append(test::SiteStarted()).status());
    example.log.reset();
    example.db = Must(Database::Open(":memory:", Database::Mode::kCreate));
  }

  ExampleLog again(path);
  CHECK(again.log->Opened().size == 6);
  CHECK(again.log->Opened().last_signed_size == 6);
  CHECK(Must(again.log->Append(test::SiteStarted())) == 6);
}

TEST_CASE("Log: time never goes back in it, and the monotonic clock shows that it did") {
  ExampleLog example;
  example.Append(test::SiteStarted());
  example.clock.SetWall(test::kExampleTime - std::chrono::hours(24));
  example.Append(test::SiteStarted());

  const Frame first = Must(ParseLeaf(Must(example.log->LeafBytes(0)))).frame;
  const Frame second = Must(ParseLeaf(Must(example.log->LeafBytes(1)))).frame;
  CHECK(second.time == first.time);
  CHECK(second.mono_us > first.mono_us);

  // The floor holds over a restart.
  example.log = std::make_unique<Log>(
      Must(Log::Open(example.db, example.signer, example.clock, example.random)));
  example.Append(test::SiteStarted());
  const Frame third = Must(ParseLeaf(Must(example.log->LeafBytes(2)))).frame;
  CHECK(third.time == first.time);
  CHECK(third.boot != first.boot);
}

TEST_CASE("Log: proofs hold for every leaf and every pair of sizes") {
  ExampleLog example;
  std::vector<Digest> hashes;
  std::vector<Digest> roots = {crypto::EmptyRoot()};
  for (std::uint64_t i = 0; i < 20; ++i) {
    example.Append(test::Counted(test::ExampleDigest(0x11), i));
    hashes.push_back(crypto::LeafHash(AsBytes(Must(example.log->LeafBytes(i)))));
    roots.push_back(crypto::RootOfLeaves(hashes));
  }

  for (std::uint64_t size = 1; size <= 20; ++size) {
    CHECK(Must(example.log->RootAt(size)) == roots[size]);
    for (std::uint64_t index = 0; index < size; ++index) {
      const auto proof = Must(example.log->InclusionProof(index, size));
      CHECK(crypto::VerifyInclusion(hashes[index], index, size, roots[size], proof).ok());
      if (index == 0) {
        CHECK(Must(example.log->ConsistencyProof(0, size)).empty());
        continue;
      }
      const auto consistency = Must(example.log->ConsistencyProof(index, size));
      CHECK(crypto::VerifyConsistency(index, roots[index], size, roots[size], consistency).ok());
    }
  }
  CHECK(example.log->InclusionProof(0, 21).status().code() == StatusCode::kOutOfRange);
  CHECK(example.log->InclusionProof(20, 20).status().code() == StatusCode::kOutOfRange);
  CHECK(example.log->ConsistencyProof(3, 21).status().code() == StatusCode::kOutOfRange);
  CHECK(example.log->ConsistencyProof(5, 4).status().code() == StatusCode::kOutOfRange);
}

TEST_CASE(
    "Log: whatever is appended, rolled back or restarted, each head extends those before it") {
  const bool held = rc::check([] {
    ExampleLog example;
    ExampleLog other(":memory:", test::kAggregatorLog);
    PeerHeads peers(other.db);
    const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12));
    std::uint64_t seen = 0;
    std::uint64_t expected = 0;
    for (const int step : steps) {
      if (step == 0) {
        example.log = std::make_unique<Log>(
            Must(Log::Open(example.db, example.signer, example.clock, example.random)));
      } else if (step <= 3) {
        const SignedHead head = Must(example.log->Head());
        RC_ASSERT(head.checkpoint.size == expected);
        const auto proof = Must(example.log->ConsistencyProof(seen, head.checkpoint.size));
        RC_ASSERT(peers.Check(head.note, example.signer.Verifier(), proof).ok());
        RC_ASSERT(example.log->CheckRemembered(head.checkpoint).ok());
        seen = head.checkpoint.size;
      } else {
        Transaction transaction = Must(Transaction::Begin(example.db));
        for (int i = 0; i < step; ++i) {
          Must(example.log->Append(test::SiteStarted()).status());
        }
        if (step % 2 == 0) {
          Must(transaction.Commit());
          expected += static_cast<std::uint64_t>(step);
        }
      }
    }
    RC_ASSERT(Reopen(example.db, example.signer).ok());
  });
  CHECK(held);
}

TEST_CASE("Log: opening refuses a log that is not what was written, and names the entry") {
  struct Case {
    const char* name;
    const char* sql;
    StatusCode code;
    const char* says;
  };
  const Case cases[] = {
      {"edited leaf", "UPDATE log_leaf SET bytes = x'7B7D' WHERE seq = 2", StatusCode::kDataLoss,
       "entry 2: its bytes do not have the stored hash"},
      {"edited hash", "UPDATE log_leaf SET hash = zeroblob(32) WHERE seq = 4",
       StatusCode::kDataLoss, "entry 4"},
      {"removed leaf", "DELETE FROM log_leaf WHERE seq = 3", StatusCode::kDataLoss,
       "entry 3 is missing"},
      {"removed tail", "DELETE FROM log_leaf WHERE seq >= 5", StatusCode::kDataLoss,
       "head says 6 entries, log has 5"},
      {"emptied", "DELETE FROM log_leaf; DELETE FROM log_subtree", StatusCode::kDataLoss,
       "head says 6 entries, log has 0"},
      {"removed subtree", "DELETE FROM log_subtree WHERE level = 1 AND idx = 0",
       StatusCode::kDataLoss, "level 1, index 0 is missing"},
      {"changed subtree", "UPDATE log_subtree SET hash = zeroblob(32) WHERE level = 2",
       StatusCode::kDataLoss, "entry 3: the stored hash of the subtree of level 2"},
      {"changed head size", "UPDATE log_head SET size = 5", StatusCode::kDataLoss,
       "stored beside another size or root"},
      {"changed head root", "UPDATE log_head SET root = zeroblob(32)", StatusCode::kDataLoss,
       "stored beside another size or root"},
      {"changed head note", "UPDATE log_head SET note = replace(note, 'demo', 'oemd')",
       StatusCode::kDataLoss, "the last signed head"},
      {"dropped table", "DROP TABLE log_head", StatusCode::kFailedPrecondition,
       "lacks the tables of a log"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    ExampleLog example;
    example.Append(test::SiteStory());
    Must(example.log->Head().status());
    REQUIRE(Reopen(example.db, example.signer).ok());

    Must(example.db.Execute(c.sql));
    const Status status = Reopen(example.db, example.signer);

    CHECK(status.code() == c.code);
    CAPTURE(ToString(status));
    CHECK(Message(status).find(c.says) != std::string_view::npos);
  }
}

TEST_CASE("Log: the key of another log is refused") {
  ExampleLog example;
  example.Append(test::SiteStarted());

  CHECK(Reopen(example.db, test::ExampleSigner("demo/site/bonn/log")).code() ==
        StatusCode::kFailedPrecondition);
  Must(example.log->Head().status());
  CHECK(Reopen(example.db, test::ExampleSigner(test::kSiteLog, 2)).code() == StatusCode::kDataLoss);
  CHECK(Reopen(example.db, test::ExampleSigner("a~b")).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Log: a restored backup does not contain the head that somebody remembers") {
  const test::TempFolder folder;
  const std::string path = folder.File("agent.db");
  crypto::Checkpoint old_head;
  {
    ExampleLog example(path);
    example.Append(test::SiteStory());
    old_head = Must(example.log->Head()).checkpoint;
  }
  std::filesystem::copy_file(path, folder.File("backup.db"));
  crypto::Checkpoint new_head;
  {
    ExampleLog example(path);
    example.Append(test::SiteStory());
    new_head = Must(example.log->Head()).checkpoint;
  }

  ExampleLog restored(folder.File("backup.db"));
  CHECK(restored.log->CheckRemembered(old_head).ok());
  const Status shorter = restored.log->CheckRemembered(new_head);
  CHECK(shorter.code() == StatusCode::kDataLoss);
  CHECK(Message(shorter).find("an older state of this folder was restored") !=
        std::string_view::npos);
  for (int i = 0; i < 10; ++i) {
    restored.Append(test::SiteStarted());
  }
  CHECK(restored.log->CheckRemembered(new_head).code() == StatusCode::kDataLoss);
  CHECK(restored.log->CheckRemembered({"demo/site/bonn/log", 1, {}}).code() ==
        StatusCode::kInvalidArgument);
}

TEST_CASE("PeerHeads: a shrunk, forked or unproven log is refused, and the good head stays") {
  ExampleLog keeper(":memory:", test::kAggregatorLog);
  ExampleLog original;
  ExampleLog fork;  // the same key, another history
  original.Append(test::SiteStory());
  fork.Append(test::SiteStory());
  PeerHeads peers(keeper.db);
  const crypto::NoteVerifier key = original.signer.Verifier();
  CHECK(!Must(peers.Last(test::kSiteLog)));
  const SignedHead first = Must(original.log->Head());
  Must(peers.Check(first.note, key, {}).status());
  CHECK(*Must(peers.Last(test::kSiteLog)) == first.checkpoint);
  CHECK(Must(peers.LastNote(test::kSiteLog)) == first.note);
  CHECK(peers.Check(first.note, key, {}).ok());

  original.Append(test::SiteStarted());
  fork.Append(test::AggregatorStarted());
  const SignedHead second = Must(original.log->Head());
  const SignedHead forked = Must(fork.log->Head());
  const auto proof = Must(original.log->ConsistencyProof(6, 7));

  CHECK(peers.Check(second.note, key, {}).status().code() == StatusCode::kFailedPrecondition);
  CHECK(peers.Check(second.note, test::ExampleSigner(test::kSiteLog, 5).Verifier(), proof)
            .status()
            .code() == StatusCode::kUnauthenticated);
  std::vector<Digest> bad = proof;
  bad[0].bytes[0] ^= 1;
  CHECK(peers.Check(second.note, key, bad).status().code() == StatusCode::kDataLoss);
  CHECK(*Must(peers.Last(test::kSiteLog)) == first.checkpoint);
  CHECK(Must(peers.Check(second.note, key, proof)) == second.checkpoint);

  const Status fork_seen = peers.Check(forked.note, key, {}).status();
  CHECK(fork_seen.code() == StatusCode::kDataLoss);
  CHECK(Message(fork_seen).find(PrintHex(second.checkpoint.root)) != std::string_view::npos);
  CHECK(Message(fork_seen).find(PrintHex(forked.checkpoint.root)) != std::string_view::npos);
  const Status shrunk = peers.Check(first.note, key, {}).status();
  CHECK(shrunk.code() == StatusCode::kDataLoss);
  CHECK(Message(shrunk).find("shrank") != std::string_view::npos);
  // The same head as a message that was overtaken.
  CHECK(peers.CheckOlder(first.note, key, proof).ok());
  CHECK(peers.CheckOlder(first.note, key, {}).status().code() == StatusCode::kFailedPrecondition);
  CHECK(*Must(peers.Last(test::kSiteLog)) == second.checkpoint);
}

TEST_CASE("CheckLeaf: a proven leaf is taken, and no other") {
  ExampleLog example;
  example.Append(test::SiteStory());
  const ProvenLeaf proven = Must(example.log->LeafWithProof(2));
  const crypto::NoteVerifier key = example.signer.Verifier();
  const LeafClaim claim{proven.index, proven.leaf, proven.proof, proven.head.note};

  const CheckedLeaf checked = Must(CheckLeaf(claim, key));
  CHECK(checked.leaf.event == test::SiteStory()[2]);
  CHECK(checked.head == proven.head.checkpoint);

  const auto refused = [&](LeafClaim bad) { return CheckLeaf(bad, key).status().code(); };
  LeafClaim moved = claim;
  moved.index = 3;
  CHECK(refused(moved) == StatusCode::kDataLoss);
  LeafClaim cut = claim;
  cut.proof = cut.proof.subspan(1);
  CHECK(refused(cut) == StatusCode::kDataLoss);
  const std::string other = Must(example.log->LeafBytes(3));
  LeafClaim swapped = claim;
  swapped.leaf = other;
  CHECK(refused(swapped) == StatusCode::kDataLoss);
  CHECK(CheckLeaf(claim, test::ExampleSigner(test::kSiteLog, 3).Verifier()).status().code() ==
        StatusCode::kUnauthenticated);
}

}  // namespace
}  // namespace domicile::audit

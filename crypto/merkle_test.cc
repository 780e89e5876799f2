#include "crypto/merkle.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

namespace domicile::crypto {
namespace {

// Made by an independent implementation; see `how` in the file.
const nlohmann::json& Golden() {
  static const nlohmann::json kGolden =
      nlohmann::json::parse(std::ifstream(DOMICILE_SOURCE_DIR "/tests/golden/merkle_rfc9162.json"));
  return kGolden;
}

Digest FromHex(const nlohmann::json& hex) { return *ParseDigest(hex.get<std::string>()); }

std::vector<Digest> ListFromHex(const nlohmann::json& list) {
  std::vector<Digest> digests;
  for (const auto& hex : list) {
    digests.push_back(FromHex(hex));
  }
  return digests;
}

// "leaf-<i>", as the golden file says.
std::vector<Digest> Leaves(std::size_t count) {
  std::vector<Digest> leaves;
  for (std::size_t i = 0; i < count; ++i) {
    leaves.push_back(LeafHash(AsBytes("leaf-" + std::to_string(i))));
  }
  return leaves;
}

Digest RootOf(std::size_t count) { return RootOfLeaves(Leaves(count)); }

// A store of nodes as a log keeps it, filled by a frontier.
struct NodeStore {
  std::map<NodePlace, Digest> nodes;
  MerkleFrontier frontier;
  mutable int reads = 0;

  void Append(const Digest& leaf) {
    for (const Node& node : frontier.Append(leaf)) {
      nodes[node.place] = node.hash;
    }
  }
  NodeReader Reader() const {
    return [this](const NodePlace& place) -> StatusOr<Digest> {
      ++reads;
      const auto found = nodes.find(place);
      if (found == nodes.end()) {
        return Error(StatusCode::kNotFound, "no such node");
      }
      return found->second;
    };
  }
};

NodeStore StoreOf(std::size_t count) {
  NodeStore store;
  for (const Digest& leaf : Leaves(count)) {
    store.Append(leaf);
  }
  return store;
}

TEST_CASE("Merkle: leaf hashes and roots are those of the golden file") {
  const std::vector<Digest> leaves = Leaves(1000);
  for (std::size_t i = 0; i < Golden()["leaf_hashes_0_to_16"].size(); ++i) {
    CHECK(leaves[i] == FromHex(Golden()["leaf_hashes_0_to_16"][i]));
  }
  REQUIRE(Golden()["roots"].size() == 48);
  const NodeReader read = ReadNodesOf(leaves);
  for (const auto& c : Golden()["roots"]) {
    const auto n = c["n"].get<std::size_t>();
    CAPTURE(n);
    CHECK(RootOfLeaves(std::span(leaves).first(n)) == FromHex(c["root"]));
    CHECK(*RootAt(n, read) == FromHex(c["root"]));
  }
}

TEST_CASE("Merkle: the trees of public Certificate Transparency tests have their known roots") {
  std::vector<Digest> leaves;
  const auto& roots = Golden()["ct_roots_n0_to_n8"];
  CHECK(RootOfLeaves(leaves) == FromHex(roots[0]));
  for (const auto& hex : Golden()["ct_leaves_hex"]) {
    leaves.push_back(LeafHash(*ParseHex(hex.get<std::string>())));
    CHECK(RootOfLeaves(leaves) == FromHex(roots[leaves.size()]));
  }
}

TEST_CASE("InclusionProof: paths are those of the golden file and verify") {
  const std::vector<Digest> leaves = Leaves(1000);
  const NodeStore store = StoreOf(1000);
  REQUIRE(Golden()["inclusion"].size() == 94);
  for (const auto& c : Golden()["inclusion"]) {
    const auto index = c["leaf_index"].get<std::uint64_t>();
    const auto size = c["tree_size"].get<std::uint64_t>();
    CAPTURE(index);
    CAPTURE(size);
    const auto proof = InclusionProof(index, size, store.Reader());
    REQUIRE(proof.ok());
    CHECK(*proof == ListFromHex(c["path"]));
    CHECK(VerifyInclusion(leaves[index], index, size, RootOf(size), *proof).ok());
  }
}

TEST_CASE("ConsistencyProof: proofs are those of the golden file and verify") {
  const NodeStore store = StoreOf(1000);
  REQUIRE(Golden()["consistency"].size() == 102);
  for (const auto& c : Golden()["consistency"]) {
    const auto first = c["first"].get<std::uint64_t>();
    const auto second = c["second"].get<std::uint64_t>();
    CAPTURE(first);
    CAPTURE(second);
    const auto proof = ConsistencyProof(first, second, store.Reader());
    REQUIRE(proof.ok());
    CHECK(*proof == ListFromHex(c["proof"]));
    CHECK(VerifyConsistency(first, RootOf(first), second, RootOf(second), *proof).ok());
  }
}

Status VerifyGolden(const nlohmann::json& c) {
  if (c["kind"] == "inclusion") {
    return VerifyInclusion(FromHex(c["leaf_hash"]), c["leaf_index"].get<std::uint64_t>(),
                           c["tree_size"].get<std::uint64_t>(), FromHex(c["root"]),
                           ListFromHex(c["path"]));
  }
  return VerifyConsistency(c["first"].get<std::uint64_t>(), FromHex(c["first_root"]),
                           c["second"].get<std::uint64_t>(), FromHex(c["second_root"]),
                           ListFromHex(c["proof"]));
}

TEST_CASE("Merkle: every forged proof of the golden file is refused") {
  REQUIRE(Golden()["must_fail"].size() == 26);
  for (const auto& c : Golden()["must_fail"]) {
    CAPTURE(c["why"].get<std::string>());
    CHECK(VerifyGolden(c).code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("VerifyConsistency: it cannot bind the size, as the golden file shows") {
  REQUIRE(Golden()["accepted_though_size_is_wrong"].size() == 1);
  for (const auto& c : Golden()["accepted_though_size_is_wrong"]) {
    CHECK(VerifyGolden(c).ok());
  }
}

TEST_CASE("Merkle: proofs longer than any tree's are refused before they are hashed") {
  const std::vector<Digest> nodes(kLongestProof + 1);
  const auto inclusion = VerifyInclusion({}, 0, UINT64_MAX, {}, nodes);
  const auto consistency = VerifyConsistency(1, {}, UINT64_MAX, {}, nodes);
  CHECK(Message(inclusion).find("too long") != std::string_view::npos);
  CHECK(Message(consistency).find("too long") != std::string_view::npos);
}

TEST_CASE("Merkle: indices beyond the tree and sizes in the wrong order are errors") {
  const NodeStore store = StoreOf(5);
  CHECK(InclusionProof(5, 5, store.Reader()).status().code() == StatusCode::kOutOfRange);
  CHECK(InclusionProof(0, 0, store.Reader()).status().code() == StatusCode::kOutOfRange);
  CHECK(ConsistencyProof(6, 5, store.Reader()).status().code() == StatusCode::kOutOfRange);
  CHECK(InclusionProof(0, 9, store.Reader()).status().code() == StatusCode::kNotFound);
}

TEST_CASE("ReadNodesOf: a place outside the leaves is an error, also at the ends of the types") {
  const std::vector<Digest> leaves = Leaves(5);
  const NodeReader read = ReadNodesOf(leaves);
  CHECK(read({.level = 2, .index = 0}).ok());
  CHECK(read({.level = 0, .index = 4}).ok());
  CHECK_FALSE(read({.level = 2, .index = 1}).ok());
  CHECK_FALSE(read({.level = 0, .index = 5}).ok());
  CHECK_FALSE(read({.level = 63, .index = 1}).ok());
  CHECK_FALSE(read({.level = 64, .index = 0}).ok());
  CHECK_FALSE(read({.level = 1, .index = UINT64_MAX}).ok());
}

TEST_CASE("MerkleFrontier: a restored one goes on like the one that never stopped") {
  for (const std::size_t stop : {0U, 1U, 6U, 8U, 99U}) {
    CAPTURE(stop);
    const NodeStore before = StoreOf(stop);
    std::vector<Digest> peaks;
    for (const NodePlace& place : PeakPlaces(stop)) {
      peaks.push_back(*before.Reader()(place));
    }
    CHECK(peaks == before.frontier.Peaks());
    auto restored = MerkleFrontier::Restore(stop, peaks);
    REQUIRE(restored.ok());
    CHECK(restored->Root() == RootOf(stop));

    restored->Append(LeafHash(AsBytes("leaf-" + std::to_string(stop))));

    CHECK(restored->Size() == stop + 1);
    CHECK(restored->Root() == RootOf(stop + 1));
  }
  CHECK_FALSE(MerkleFrontier::Restore(5, std::vector<Digest>(3)).ok());
}

TEST_CASE("Merkle: a proof from a store reads O(log^2 n) nodes") {
  const NodeStore store = StoreOf(1000);
  store.reads = 0;
  CHECK(InclusionProof(0, 999, store.Reader()).ok());
  CHECK(ConsistencyProof(511, 999, store.Reader()).ok());
  CHECK(store.reads < 100);
}

TEST_CASE("Merkle: any leaf of any tree proves itself, and no changed proof does") {
  const std::vector<Digest> leaves = Leaves(300);
  const NodeStore store = StoreOf(300);
  CHECK(rc::check("inclusion", [&] {
    const auto size = *rc::gen::inRange<std::uint64_t>(1, 301);
    const auto index = *rc::gen::inRange<std::uint64_t>(0, size);
    auto proof = *InclusionProof(index, size, store.Reader());
    const Digest root = *RootAt(size, store.Reader());
    RC_ASSERT(VerifyInclusion(leaves[index], index, size, root, proof).ok());
    RC_ASSERT(!VerifyInclusion(leaves[(index + 1) % 300], index, size, root, proof).ok());
    proof.push_back(root);
    RC_ASSERT(!VerifyInclusion(leaves[index], index, size, root, proof).ok());
    proof.pop_back();
    if (!proof.empty()) {
      const auto at = *rc::gen::inRange<std::size_t>(0, proof.size());
      proof[at].bytes[*rc::gen::inRange<std::size_t>(0, 32)] ^= 1U;
      RC_ASSERT(!VerifyInclusion(leaves[index], index, size, root, proof).ok());
    }
  }));
}

TEST_CASE("Merkle: every tree extends its own past, and no other tree does") {
  const NodeStore store = StoreOf(200);
  CHECK(rc::check("consistency", [&] {
    const auto second = *rc::gen::inRange<std::uint64_t>(1, 201);
    const auto first = *rc::gen::inRange<std::uint64_t>(1, second + 1);
    const auto proof = *ConsistencyProof(first, second, store.Reader());
    const Digest first_root = *RootAt(first, store.Reader());
    const Digest second_root = *RootAt(second, store.Reader());
    RC_ASSERT(VerifyConsistency(first, first_root, second, second_root, proof).ok());
    // The same log with one leaf of its past rewritten.
    auto forged = Leaves(second);
    forged[*rc::gen::inRange<std::uint64_t>(0, first)] = LeafHash(AsBytes("rewritten"));
    const NodeReader read = ReadNodesOf(forged);
    const auto forged_proof = *ConsistencyProof(first, second, read);
    RC_ASSERT(
        !VerifyConsistency(first, first_root, second, RootOfLeaves(forged), forged_proof).ok());
  }));
}

}  // namespace
}  // namespace domicile::crypto

#include "audit/log.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "audit/internal/event_fields.h"
#include "crypto/merkle.h"

namespace domicile::audit {

namespace {

// A statement that is used again and again. Reset after every use: a SELECT left open would hold
// its snapshot, and with it every later checkpoint of the database.
class Use {
 public:
  explicit Use(Statement& statement) : statement_(&statement) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { statement_->Reset(); }
  Statement* operator->() const { return statement_; }

 private:
  Statement* statement_;
};

std::int64_t Sql(std::uint64_t number) { return static_cast<std::int64_t>(number); }

std::string DrawBoot(Random& random) {
  std::array<std::uint8_t, 16> bytes{};
  random.Fill(bytes);
  return PrintHex(bytes);
}

std::string Describe(const crypto::Checkpoint& head) {
  return std::to_string(head.size) + " entries with root " + PrintHex(head.root);
}

}  // namespace

struct Log::State {
  Database* db;
  const crypto::NoteSigner* signer;
  const Clock* clock;
  std::string origin;
  std::string boot;
  OpenReport opened;

  Statement last_seq;
  Statement insert_leaf;
  Statement insert_subtree;
  Statement read_leaf;
  Statement read_leaf_hash;
  Statement read_subtree;

  // The tree of the rows, unless a transaction was rolled back since: compare its size with
  // last_seq.
  crypto::MerkleFrontier frontier;
  // No leaf is earlier than the one before it, whatever the wall clock does.
  WallTime last_time;
  std::optional<SignedHead> head;

  static StatusOr<std::unique_ptr<State>> Make(Database& db);
  StatusOr<std::uint64_t> Size();
  StatusOr<Digest> Node(const crypto::NodePlace& place);
  crypto::NodeReader Reader() {
    return [this](const crypto::NodePlace& place) { return Node(place); };
  }
  Status CatchUp();
  Status Insert(std::uint64_t seq, std::string_view bytes);
  Status CheckRows();
  Status CheckLeafRow(const Statement& row, std::uint64_t seq);
  Status CheckLastFrame();
  StatusOr<std::optional<SignedHead>> ReadLastHead();
};

StatusOr<std::unique_ptr<Log::State>> Log::State::Make(Database& db) {
  ASSIGN_OR_RETURN(Statement tables,
                   db.Prepare("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN "
                              "('log_leaf', 'log_subtree', 'log_head', 'log_peer_head')"));
  ASSIGN_OR_RETURN(const bool row, tables.Step());
  if (!row || tables.Int(0) != 4) {
    return Error(StatusCode::kFailedPrecondition,
                 "database `" + db.path() +
                     "` lacks the tables of a log; they are made when the database is, so a file "
                     "that had them was changed");
  }
  ASSIGN_OR_RETURN(Statement last_seq, db.Prepare("SELECT max(seq) FROM log_leaf"));
  ASSIGN_OR_RETURN(Statement insert_leaf,
                   db.Prepare("INSERT INTO log_leaf (seq, bytes, hash) VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(Statement insert_subtree,
                   db.Prepare("INSERT INTO log_subtree (level, idx, hash) VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(Statement read_leaf, db.Prepare("SELECT bytes FROM log_leaf WHERE seq = ?"));
  ASSIGN_OR_RETURN(Statement read_leaf_hash, db.Prepare("SELECT hash FROM log_leaf WHERE seq = ?"));
  ASSIGN_OR_RETURN(Statement read_subtree,
                   db.Prepare("SELECT hash FROM log_subtree WHERE level = ? AND idx = ?"));
  return std::make_unique<State>(State{.db = &db,
                                       .signer = nullptr,
                                       .clock = nullptr,
                                       .origin = {},
                                       .boot = {},
                                       .opened = {},
                                       .last_seq = std::move(last_seq),
                                       .insert_leaf = std::move(insert_leaf),
                                       .insert_subtree = std::move(insert_subtree),
                                       .read_leaf = std::move(read_leaf),
                                       .read_leaf_hash = std::move(read_leaf_hash),
                                       .read_subtree = std::move(read_subtree),
                                       .frontier = {},
                                       .last_time = {},
                                       .head = {}});
}

StatusOr<std::uint64_t> Log::State::Size() {
  const Use query(last_seq);
  ASSIGN_OR_RETURN(const bool row, query->Step());
  return !row || query->IsNull(0) ? 0 : static_cast<std::uint64_t>(query->Int(0)) + 1;
}

StatusOr<Digest> Log::State::Node(const crypto::NodePlace& place) {
  const Use query(place.level == 0 ? read_leaf_hash : read_subtree);
  if (place.level == 0) {
    query->Bind(1, Sql(place.index));
  } else {
    query->Bind(1, std::int64_t{place.level}).Bind(2, Sql(place.index));
  }
  ASSIGN_OR_RETURN(const bool row, query->Step());
  if (!row) {
    return Error(StatusCode::kDataLoss, "log `" + db->path() + "`: the stored hash of level " +
                                            std::to_string(place.level) + ", index " +
                                            std::to_string(place.index) + " is missing");
  }
  return DigestFromBytes(query->Blob(0));
}

// Makes the frontier that of the rows again after a rollback.
Status Log::State::CatchUp() {
  ASSIGN_OR_RETURN(const std::uint64_t size, Size());
  if (size == frontier.Size()) {
    return OkStatus();
  }
  std::vector<Digest> peaks;
  for (const crypto::NodePlace& place : crypto::PeakPlaces(size)) {
    ASSIGN_OR_RETURN(peaks.emplace_back(), Node(place));
  }
  ASSIGN_OR_RETURN(frontier, crypto::MerkleFrontier::Restore(size, std::move(peaks)));
  return OkStatus();
}

Status Log::State::Insert(std::uint64_t seq, std::string_view bytes) {
  const Digest hash = crypto::LeafHash(AsBytes(bytes));
  {
    const Use insert(insert_leaf);
    insert->Bind(1, Sql(seq)).Bind(2, AsBytes(bytes)).Bind(3, ByteSpan(hash.bytes));
    RETURN_IF_ERROR(insert->Run());
  }
  for (const crypto::Node& node : frontier.Append(hash)) {
    if (node.place.level == 0) {
      continue;
    }
    const Use insert(insert_subtree);
    insert->Bind(1, std::int64_t{node.place.level})
        .Bind(2, Sql(node.place.index))
        .Bind(3, ByteSpan(node.hash.bytes));
    RETURN_IF_ERROR(insert->Run());
  }
  return OkStatus();
}

Status Log::State::CheckLeafRow(const Statement& row, std::uint64_t seq) {
  const auto at = [&] { return "log `" + db->path() + "`, entry " + std::to_string(seq); };
  if (row.Int(0) != Sql(seq)) {
    return Error(StatusCode::kDataLoss,
                 at() + " is missing (entry " + std::to_string(row.Int(0)) + " follows)");
  }
  const Digest hash = crypto::LeafHash(row.Blob(1));
  if (row.Blob(2) != Bytes(hash.bytes.begin(), hash.bytes.end())) {
    return Error(StatusCode::kDataLoss, at() + ": its bytes do not have the stored hash");
  }
  for (const crypto::Node& node : frontier.Append(hash)) {
    if (node.place.level == 0) {
      continue;
    }
    ASSIGN_OR_RETURN(const Digest stored, Node(node.place));
    if (stored != node.hash) {
      return Error(StatusCode::kDataLoss, at() + ": the stored hash of the subtree of level " +
                                              std::to_string(node.place.level) +
                                              " that it completes differs");
    }
  }
  return OkStatus();
}

// Recomputes the tree from the leaves, and checks the last head when the tree has its size.
Status Log::State::CheckRows() {
  const auto check_head = [this]() -> Status {
    if (head && head->checkpoint.size == frontier.Size() &&
        head->checkpoint.root != frontier.Root()) {
      return Error(StatusCode::kDataLoss,
                   "log `" + db->path() + "`: the last head says " + Describe(head->checkpoint) +
                       ", but these entries have root " + PrintHex(frontier.Root()));
    }
    return OkStatus();
  };
  RETURN_IF_ERROR(check_head());
  ASSIGN_OR_RETURN(Statement leaves,
                   db->Prepare("SELECT seq, bytes, hash FROM log_leaf ORDER BY seq"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, leaves.Step());
    if (!row) {
      break;
    }
    RETURN_IF_ERROR(CheckLeafRow(leaves, frontier.Size()));
    RETURN_IF_ERROR(check_head());
  }
  if (head && head->checkpoint.size > frontier.Size()) {
    return Error(StatusCode::kDataLoss, "log `" + db->path() + "`: head says " +
                                            std::to_string(head->checkpoint.size) +
                                            " entries, log has " + std::to_string(frontier.Size()));
  }
  return OkStatus();
}

Status Log::State::CheckLastFrame() {
  if (frontier.Size() == 0) {
    return OkStatus();
  }
  const std::uint64_t last = frontier.Size() - 1;
  const Use query(read_leaf);
  query->Bind(1, Sql(last));
  ASSIGN_OR_RETURN(const bool row, query->Step());
  DOMICILE_CHECK(row);
  const auto leaf = ParseLeaf(AsText(query->Blob(0)));
  const std::string where = "log `" + db->path() + "`, entry " + std::to_string(last);
  if (!leaf.ok()) {
    return Error(StatusCode::kDataLoss, where + ": " + std::string(Message(leaf.status())));
  }
  if (leaf->frame.origin != origin) {
    return Error(StatusCode::kFailedPrecondition,
                 where + " is of the log `" + leaf->frame.origin + "`, not of `" + origin +
                     "`; use the log key this folder was made with");
  }
  if (leaf->frame.seq != last) {
    return Error(StatusCode::kDataLoss,
                 where + " says of itself that it is entry " + std::to_string(leaf->frame.seq));
  }
  last_time = leaf->frame.time;
  return OkStatus();
}

StatusOr<std::optional<SignedHead>> Log::State::ReadLastHead() {
  ASSIGN_OR_RETURN(Statement query,
                   db->Prepare("SELECT size, root, note FROM log_head ORDER BY size DESC LIMIT 1"));
  ASSIGN_OR_RETURN(const bool row, query.Step());
  if (!row) {
    return std::optional<SignedHead>();
  }
  const std::string where = "log `" + db->path() + "`: the last signed head";
  const std::string note = query.Text(2);
  const auto checkpoint = crypto::OpenCheckpoint(note, signer->Verifier());
  if (!checkpoint.ok()) {
    return Error(StatusCode::kDataLoss, where + ": " + std::string(Message(checkpoint.status())));
  }
  const Bytes root = query.Blob(1);
  if (Sql(checkpoint->size) != query.Int(0) ||
      !std::equal(root.begin(), root.end(), checkpoint->root.bytes.begin(),
                  checkpoint->root.bytes.end())) {
    return Error(StatusCode::kDataLoss, where + " is stored beside another size or root");
  }
  return std::optional<SignedHead>(SignedHead{*checkpoint, note});
}

Log::Log(std::unique_ptr<State> state) : state_(std::move(state)) {}
Log::Log(Log&&) noexcept = default;
Log& Log::operator=(Log&&) noexcept = default;
Log::~Log() = default;

StatusOr<Log> Log::Open(Database& db, const crypto::NoteSigner& signer, const Clock& clock,
                        Random& random) {
  ASSIGN_OR_RETURN(std::unique_ptr<State> state, State::Make(db));
  state->signer = &signer;
  state->clock = &clock;
  state->origin = signer.Verifier().name();
  if (!internal::IsLogName(state->origin)) {
    return Error(StatusCode::kInvalidArgument,
                 "the name of a log key is made of letters, digits, `.`, `_`, `-` and `/`, at most "
                 "200; make the key anew");
  }
  state->boot = DrawBoot(random);
  ASSIGN_OR_RETURN(state->head, state->ReadLastHead());
  RETURN_IF_ERROR(state->CheckRows());
  RETURN_IF_ERROR(state->CheckLastFrame());
  state->opened = {.size = state->frontier.Size(),
                   .last_signed_size = state->head ? state->head->checkpoint.size : 0};
  return Log(std::move(state));
}

const OpenReport& Log::Opened() const { return state_->opened; }
const std::string& Log::Origin() const { return state_->origin; }

StatusOr<std::uint64_t> Log::Append(const Event& event) {
  State& s = *state_;
  RETURN_IF_ERROR(s.CatchUp());
  const auto since_start = s.clock->Monotonic().time_since_epoch();
  Frame frame;
  frame.origin = s.origin;
  frame.seq = s.frontier.Size();
  frame.time = std::max(s.last_time,
                        WallTime(std::chrono::floor<std::chrono::milliseconds>(s.clock->Now())));
  frame.mono_us = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(since_start).count());
  frame.boot = s.boot;
  ASSIGN_OR_RETURN(const std::string bytes, PrintLeaf(frame, event));
  // A leaf without its subtree rows would spoil every later proof, so the few rows are one
  // savepoint even where the caller goes on after an error, or has no transaction.
  RETURN_IF_ERROR(s.db->Execute("SAVEPOINT log_append"));
  Status inserted = s.Insert(frame.seq, bytes);
  if (inserted.ok()) {
    // Without a transaction around it this is a commit, and where a full disk shows: it must not
    // leave the savepoint open, or nothing could be written ever after.
    inserted = s.db->Execute("RELEASE log_append");
  }
  if (!inserted.ok()) {
    // Where no page could be had, SQLite has rolled back everything by itself, the caller's
    // transaction too; its Commit fails.
    if (s.db->InTransaction()) {
      RETURN_IF_ERROR(s.db->Execute("ROLLBACK TO log_append; RELEASE log_append"));
    }
    return Annotate(inserted, "appending to the log");
  }
  s.last_time = frame.time;
  return frame.seq;
}

StatusOr<std::uint64_t> Log::Size() { return state_->Size(); }

StatusOr<SignedHead> Log::Head() {
  State& s = *state_;
  if (s.db->InTransaction()) {
    return Error(StatusCode::kFailedPrecondition,
                 "a head is signed after the transaction that adds to the log, not within it");
  }
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*s.db));
  RETURN_IF_ERROR(s.CatchUp());
  if (s.head && s.head->checkpoint.size == s.frontier.Size()) {
    return *s.head;
  }
  SignedHead head;
  head.checkpoint = {.origin = s.origin, .size = s.frontier.Size(), .root = s.frontier.Root()};
  ASSIGN_OR_RETURN(head.note, s.signer->Sign(crypto::PrintCheckpoint(head.checkpoint)));
  ASSIGN_OR_RETURN(Statement insert,
                   s.db->Prepare("INSERT INTO log_head (size, root, note) VALUES (?, ?, ?)"));
  insert.Bind(1, Sql(head.checkpoint.size))
      .Bind(2, ByteSpan(head.checkpoint.root.bytes))
      .Bind(3, std::string_view(head.note));
  RETURN_IF_ERROR(insert.Run());
  // INVARIANT: stored before it is shown. A head that others hold and we have lost would make the
  // next one over other leaves a fork.
  RETURN_IF_ERROR(transaction.Commit());
  s.head = head;
  return head;
}

StatusOr<std::string> Log::LeafBytes(std::uint64_t index) {
  const Use query(state_->read_leaf);
  query->Bind(1, Sql(std::min(index, std::uint64_t{std::numeric_limits<std::int64_t>::max()})));
  ASSIGN_OR_RETURN(const bool row, query->Step());
  if (!row) {
    return Error(StatusCode::kNotFound, "the log has no entry " + std::to_string(index));
  }
  return std::string(AsText(query->Blob(0)));
}

namespace {

Status CheckSize(std::uint64_t wanted, std::uint64_t size) {
  return wanted <= size
             ? OkStatus()
             : Error(StatusCode::kOutOfRange, "the log has " + std::to_string(size) +
                                                  " entries, not " + std::to_string(wanted));
}

}  // namespace

StatusOr<std::vector<Digest>> Log::InclusionProof(std::uint64_t index, std::uint64_t size) {
  ASSIGN_OR_RETURN(const std::uint64_t present, state_->Size());
  RETURN_IF_ERROR(CheckSize(size, present));
  return crypto::InclusionProof(index, size, state_->Reader());
}

StatusOr<std::vector<Digest>> Log::ConsistencyProof(std::uint64_t first, std::uint64_t second) {
  ASSIGN_OR_RETURN(const std::uint64_t present, state_->Size());
  RETURN_IF_ERROR(CheckSize(second, present));
  return crypto::ConsistencyProof(first, second, state_->Reader());
}

StatusOr<Digest> Log::RootAt(std::uint64_t size) {
  ASSIGN_OR_RETURN(const std::uint64_t present, state_->Size());
  RETURN_IF_ERROR(CheckSize(size, present));
  return crypto::RootAt(size, state_->Reader());
}

StatusOr<ProvenLeaf> Log::LeafWithProof(std::uint64_t index) {
  ProvenLeaf proven;
  proven.index = index;
  ASSIGN_OR_RETURN(proven.leaf, LeafBytes(index));
  ASSIGN_OR_RETURN(proven.head, Head());
  ASSIGN_OR_RETURN(proven.proof, InclusionProof(index, proven.head.checkpoint.size));
  return proven;
}

Status Log::CheckRemembered(const crypto::Checkpoint& remembered) {
  if (remembered.origin != state_->origin) {
    return Error(StatusCode::kInvalidArgument, "a head of the log `" + remembered.origin +
                                                   "` says nothing about `" + state_->origin + "`");
  }
  ASSIGN_OR_RETURN(const std::uint64_t size, state_->Size());
  if (remembered.size > size) {
    return Error(StatusCode::kDataLoss,
                 "log `" + state_->db->path() + "` has " + std::to_string(size) +
                     " entries, but a head of " + std::to_string(remembered.size) +
                     " was seen elsewhere: an older state of this folder was restored");
  }
  ASSIGN_OR_RETURN(const Digest root, RootAt(remembered.size));
  if (root != remembered.root) {
    return Error(StatusCode::kDataLoss,
                 "log `" + state_->db->path() + "`: a head of " + Describe(remembered) +
                     " was seen elsewhere, but these entries have root " + PrintHex(root));
  }
  return OkStatus();
}

}  // namespace domicile::audit

#include "audit/internal/verifier.h"

#include <algorithm>
#include <utility>

#include "crypto/merkle.h"

namespace domicile::audit::internal {

namespace {

std::string Number(std::uint64_t number) { return std::to_string(number); }

std::string Entry(std::uint64_t seq) { return "entry " + Number(seq); }

// The text of a note whose signatures cannot be checked: what stands before the last empty line.
StatusOr<std::string_view> UncheckedText(std::string_view note) {
  const std::size_t split = note.rfind("\n\n");
  if (split == std::string_view::npos || note.size() == split + 2) {
    return Error(StatusCode::kInvalidArgument, "not a signed note");
  }
  return note.substr(0, split + 1);
}

}  // namespace

std::vector<Subtree> TreeHash::Append(const Digest& leaf_hash) {
  std::vector<Subtree> completed;
  Digest hash = leaf_hash;
  std::uint64_t index = size_++;
  for (std::uint32_t level = 1; (index & 1U) != 0; ++level) {
    hash = crypto::NodeHash(stack_.back(), hash);
    stack_.pop_back();
    index >>= 1U;
    completed.push_back({.level = level, .index = index, .hash = hash});
  }
  stack_.push_back(hash);
  return completed;
}

Digest TreeHash::Root() const {
  if (stack_.empty()) {
    return crypto::EmptyRoot();
  }
  Digest root = stack_.back();
  for (std::size_t i = stack_.size() - 1; i-- > 0;) {
    root = crypto::NodeHash(stack_[i], root);
  }
  return root;
}

Verifier::Verifier(const VerifyOptions& options) : options_(options) {
  report_.signatures_checked = options.key.has_value();
  for (const std::string& note : options.outside_heads) {
    ++outside_given_;
    const std::string where = options.outside_heads.size() == 1
                                  ? "the head given"
                                  : "head " + Number(outside_given_) + " of those given";
    if (auto head = OpenHead(note, where)) {
      const std::uint64_t size = head->size;
      waiting_.emplace(size, KnownHead{*std::move(head), where, true});
    }
  }
}

void Verifier::Find(FindingKind kind, std::optional<std::uint64_t> seq, std::string text) {
  if (report_.findings.size() < kMostFindings) {
    report_.findings.push_back({.kind = kind, .seq = seq, .text = std::move(text)});
  }
}

std::optional<crypto::Checkpoint> Verifier::OpenHead(std::string_view note,
                                                     const std::string& where) {
  if (options_.key) {
    auto head = crypto::OpenCheckpoint(note, *options_.key);
    if (head.ok()) {
      return *std::move(head);
    }
    Find(head.status().code() == StatusCode::kUnauthenticated ? FindingKind::kHeadSignature
                                                              : FindingKind::kHeadForm,
         std::nullopt, where + ": " + std::string(Message(head.status())));
    return std::nullopt;
  }
  const auto text = UncheckedText(note);
  auto head =
      text.ok() ? crypto::ParseCheckpoint(*text) : StatusOr<crypto::Checkpoint>(text.status());
  if (!head.ok()) {
    Find(FindingKind::kHeadForm, std::nullopt, where + ": " + std::string(Message(head.status())));
    return std::nullopt;
  }
  return *std::move(head);
}

void Verifier::AddInsideHead(std::int64_t size, const Bytes& root, const std::string& note) {
  const std::string where = "the stored head of " + std::to_string(size) + " entries";
  auto head = OpenHead(note, where);
  if (!head) {
    return;
  }
  if (size < 0 || head->size != static_cast<std::uint64_t>(size) ||
      !std::equal(root.begin(), root.end(), head->root.bytes.begin(), head->root.bytes.end())) {
    Find(FindingKind::kHeadForm, std::nullopt,
         where + ": its note says another size or root than its row");
    return;
  }
  const std::uint64_t of_size = head->size;
  waiting_.emplace(of_size, KnownHead{*std::move(head), where, false});
}

void Verifier::CheckNumber(std::uint64_t place, std::uint64_t expected, std::uint64_t found) {
  if (found != expected) {
    in_sequence_ = false;
    Find(FindingKind::kSequence, place,
         Entry(place) + ": sequence number " + Number(found) + " found, " + Number(expected) +
             " expected");
  }
}

void Verifier::CheckEvent(std::uint64_t place, std::string_view bytes) {
  const auto leaf = ParseLeaf(bytes);
  if (!leaf.ok()) {
    ++next_seq_;
    Find(FindingKind::kLeafForm, place, Entry(place) + ": " + std::string(Message(leaf.status())));
    return;
  }
  const Frame& frame = leaf->frame;
  if (leaf->event.type() == EventType::kLogRecovered) {
    CheckRecovery(place, leaf->event);
  }
  CheckNumber(place, next_seq_, frame.seq);
  next_seq_ = frame.seq + 1;
  if (report_.origin.empty()) {
    report_.origin = frame.origin;
  } else if (frame.origin != report_.origin) {
    Find(FindingKind::kLeafForm, place,
         Entry(place) + " is of the log `" + frame.origin + "`, those before it of `" +
             report_.origin + "`");
  }
  if (last_frame_ && frame.time < last_frame_->time) {
    Find(FindingKind::kTime, place, Entry(place) + " is earlier than the entry before it");
  } else if (last_frame_ && frame.boot == last_frame_->boot &&
             frame.mono_us < last_frame_->mono_us) {
    Find(FindingKind::kTime, place,
         Entry(place) + ": the monotonic clock ran backwards within one start of the program");
  }
  last_frame_ = frame;
}

void Verifier::CheckRecovery(std::uint64_t place, const Event& event) {
  auto record = ReadLogRecovered(event);
  if (!record.ok()) {
    Find(FindingKind::kLeafForm, place,
         Entry(place) + ": " + std::string(Message(record.status())));
    return;
  }
  if (record->size != Size() || record->root != by_bytes_.Root() || record->kept > Size()) {
    Find(FindingKind::kLeafForm, place,
         Entry(place) + " tells of a recovery of other entries than those before it");
  }
  report_.recoveries.push_back({.seq = place, .record = *std::move(record)});
}

bool Verifier::ExplainedByRecovery(const crypto::Checkpoint& head) {
  for (RecoveryLine& line : report_.recoveries) {
    if (line.record.remembered_size == head.size && line.record.remembered_root == head.root) {
      line.seen_outside = true;
      return true;
    }
  }
  return false;
}

void Verifier::CheckContent(std::uint64_t place, std::string_view bytes) {
  if (options_.content == VerifyOptions::Content::kEvents) {
    CheckEvent(place, bytes);
    return;
  }
  const auto json = ParseCanonicalJson(bytes);
  const Json* seq = json.ok() ? json->Find("seq") : nullptr;
  const std::int64_t* number = seq == nullptr ? nullptr : seq->TryInt();
  if (number == nullptr || *number < 0) {
    ++next_seq_;
    Find(FindingKind::kLeafForm, place,
         Entry(place) + (json.ok() ? std::string(": no whole number `seq`")
                                   : ": " + std::string(Message(json.status()))));
    return;
  }
  CheckNumber(place, next_seq_, static_cast<std::uint64_t>(*number));
  next_seq_ = static_cast<std::uint64_t>(*number) + 1;
}

Verifier::Grown Verifier::AddLeaf(std::uint64_t row, std::string_view bytes,
                                  const std::optional<Bytes>& stored_hash) {
  MeetHeads();  // of the tree before this leaf
  const std::uint64_t place = Size();
  if (row != next_row_) {
    in_sequence_ = false;
    Find(FindingKind::kSequence, next_row_,
         Entry(next_row_) + " is missing: entry " + Number(row) + " follows");
    next_seq_ = row;
  }
  next_row_ = row + 1;
  CheckContent(in_sequence_ ? place : row, bytes);
  const Digest hash = crypto::LeafHash(AsBytes(bytes));
  Digest stored = hash;
  if (stored_hash) {
    const auto parsed = DigestFromBytes(*stored_hash);
    stored = parsed.ok() ? *parsed : Digest{};
    if (stored != hash) {
      Find(FindingKind::kLeafBytes, row, Entry(row) + ": its bytes do not have the stored hash");
    }
  }
  return {.by_bytes = by_bytes_.Append(hash), .by_stored = by_stored_.Append(stored)};
}

void Verifier::MeetHeads() {
  while (!waiting_.empty() && waiting_.begin()->first == Size()) {
    MeetHead(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
  }
}

void Verifier::MeetHead(const KnownHead& head) {
  const std::uint64_t size = head.checkpoint.size;
  if (head.checkpoint.root == by_stored_.Root()) {
    stored_agreed_size_ = std::max(stored_agreed_size_, size);
  }
  if (head.checkpoint.root == by_bytes_.Root()) {
    last_root_differed_ = false;
    agreed_size_ = std::max(agreed_size_, size);
    (head.outside ? report_.heads_outside : report_.heads_inside) += 1;
    if (head.outside) {
      report_.proven_size = std::max(report_.proven_size, size);
    }
    return;
  }
  // Every stored head after a changed leaf differs; the first says where, and those from outside
  // count.
  if (last_root_differed_ && !head.outside) {
    return;
  }
  if (head.outside) {
    differing_.push_back({head, by_bytes_.Root(), agreed_size_});
    return;
  }
  last_root_differed_ = true;
  SayRootDiffers(head, by_bytes_.Root(), agreed_size_);
}

void Verifier::SayRootDiffers(const KnownHead& head, const Digest& here, std::uint64_t agreed) {
  const std::uint64_t size = head.checkpoint.size;
  std::optional<std::uint64_t> seq;
  std::string text = head.where + " (" + Number(size) + " entries): the root differs, " +
                     PrintHex(head.checkpoint.root) + " there, " + PrintHex(here) + " here";
  if (agreed < size) {
    if (agreed + 1 == size) {
      seq = agreed;
    }
    text += "; the change lies in " +
            (seq ? Entry(*seq) : "entries " + Number(agreed) + " to " + Number(size - 1));
  }
  Find(FindingKind::kHeadRoot, seq, std::move(text));
}

void Verifier::JudgeDiffering() {
  for (const Differing& one : differing_) {
    if (!ExplainedByRecovery(one.head.checkpoint)) {
      SayRootDiffers(one.head, one.here, one.agreed);
    }
  }
}

// A leaf and its stored hash differ: which of the two was changed, if a head can tell.
void Verifier::ExplainHashes() {
  for (Finding& finding : report_.findings) {
    if (finding.kind != FindingKind::kLeafBytes || !finding.seq) {
      continue;
    }
    if (*finding.seq < agreed_size_) {
      finding.text += "; a head agrees with the bytes, so the stored hash was changed";
    } else if (*finding.seq < stored_agreed_size_) {
      finding.text += "; a head agrees with the stored hash, so the bytes were changed";
    }
  }
}

void Verifier::SayWhatWasNotChecked() {
  if (outside_given_ == 0) {
    report_.not_checked.emplace_back(
        "no earlier head given: removal at the end cannot be seen, nor a history rewritten by the "
        "holder of the key");
  }
  if (!options_.key) {
    report_.not_checked.emplace_back("no key given: signatures were not checked");
  }
  if (options_.content == VerifyOptions::Content::kBytes) {
    report_.not_checked.emplace_back("entries were not compared with the list of events");
  }
  if (outside_given_ != 0 && report_.proven_size < report_.size) {
    report_.not_checked.push_back("no head given covers the entries from " +
                                  Number(report_.proven_size) + " on");
  }
}

VerifyReport Verifier::Finish() {
  MeetHeads();
  JudgeDiffering();
  report_.size = Size();
  report_.root = by_bytes_.Root();
  for (const auto& [size, head] : waiting_) {
    if (head.outside && ExplainedByRecovery(head.checkpoint)) {
      continue;
    }
    Find(FindingKind::kHeadSize, report_.size,
         head.where + ": head says " + Number(size) + " entries, log has " + Number(report_.size));
    if (!head.outside) {
      break;  // the stored heads after it say the same
    }
  }
  if (report_.size == 0) {
    Find(FindingKind::kEmpty, std::nullopt, "the log has no entries; one that was in use has some");
  }
  ExplainHashes();
  SayWhatWasNotChecked();
  return std::move(report_);
}

}  // namespace domicile::audit::internal

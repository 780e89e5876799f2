#include "site_agent/cluster/group.h"

#include <bit>
#include <utility>

#include <poll.h>

#include "site_agent/cluster/internal/frames.h"

namespace domicile::site_agent {

static_assert(std::endian::native == std::endian::little, "values travel as they lie in memory");

namespace {

std::span<std::uint8_t> MutableBytes(std::span<float> values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size_bytes()};
}

ByteSpan BytesOf(std::span<const float> values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size_bytes()};
}

template <typename Span>
bool HasMore(std::vector<Span>& list) {
  while (!list.empty() && list.front().empty()) {
    list.erase(list.begin());
  }
  return !list.empty();
}

}  // namespace

ClusterGroup::ClusterGroup(const ClusterDescription& description, const Clock& clock)
    : description_(description), clock_(clock) {
  channels_.resize(description.workers.size());
  parts_.resize(description.workers.size());
}

std::string ClusterGroup::Name(std::size_t rank) const {
  return "worker " + std::to_string(rank) + " (" + description_.workers[rank].Text() + ")";
}

Status ClusterGroup::Lost(std::size_t rank, const Status& why) const {
  return Error(StatusCode::kUnavailable, Name(rank) + ": " + std::string(Message(why)));
}

StatusOr<short> ClusterGroup::AdvanceOut(Move& move) {
  while (HasMore(move.out)) {
    ByteSpan& rest = move.out.front();
    const std::size_t before = rest.size();
    const StatusOr<short> events = internal::SendSome(To(move.rank), rest);
    if (rest.size() != before) {
      move.heard = clock_.Monotonic();
    }
    if (!events.ok()) {
      return Lost(move.rank, events.status());
    }
    if (*events != 0) {
      return *events;
    }
  }
  return short{0};
}

StatusOr<short> ClusterGroup::AdvanceIn(Move& move) {
  while (HasMore(move.in)) {
    std::span<std::uint8_t>& rest = move.in.front();
    const std::size_t before = rest.size();
    const StatusOr<short> events = internal::ReceiveSome(To(move.rank), rest);
    if (rest.size() != before) {
      move.heard = clock_.Monotonic();
      RETURN_IF_ERROR(CheckHead(move));
    }
    if (!events.ok()) {
      return Lost(move.rank, events.status());
    }
    if (*events != 0) {
      return *events;
    }
  }
  return short{0};
}

StatusOr<short> ClusterGroup::Advance(Move& move) {
  const StatusOr<short> out = AdvanceOut(move);
  // Also where nothing can be sent any more: a worker that gave up said so before it went.
  ASSIGN_OR_RETURN(const short in, AdvanceIn(move));
  RETURN_IF_ERROR(out.status());
  return static_cast<short>(*out | in);
}

Status ClusterGroup::CheckHead(Move& move) const {
  const FrameHead* const head = std::exchange(move.head, nullptr);
  if (head == nullptr || !move.in.front().empty()) {
    move.head = head;
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const internal::ParsedHead parsed, internal::ParseHead(*head));
  if (parsed.kind == ClusterFrame::kValues && parsed.bytes == move.value_bytes) {
    return OkStatus();
  }
  return Error(StatusCode::kUnavailable,
               Name(move.rank) + (parsed.kind == ClusterFrame::kRefused
                                      ? " has given the task up; its output says why"
                                      : " is at another place of the training"));
}

Status ClusterGroup::Run(std::vector<Move>& moves, std::optional<std::chrono::seconds> patience,
                         const std::stop_token& stop) {
  for (Move& move : moves) {
    move.heard = clock_.Monotonic();
  }
  std::vector<pollfd> waits;
  while (true) {
    waits.clear();
    for (Move& move : moves) {
      ASSIGN_OR_RETURN(const short events, Advance(move));
      if (events != 0) {
        waits.push_back({To(move.rank).descriptor(), events, 0});
      }
    }
    if (waits.empty()) {
      return OkStatus();
    }
    if (stop.stop_requested()) {
      return Error(StatusCode::kCancelled, "cancelled");
    }
    if (poll(waits.data(), waits.size(), internal::kLookMilliseconds) != 0 || !patience) {
      continue;
    }
    for (Move& move : moves) {
      if ((HasMore(move.out) || HasMore(move.in)) && clock_.Monotonic() - move.heard >= *patience) {
        return Error(StatusCode::kUnavailable, Name(move.rank) + " has said nothing for " +
                                                   std::to_string(patience->count()) + " seconds");
      }
    }
  }
}

Status ClusterGroup::Send(std::size_t rank, ClusterFrame kind, ByteSpan payload) {
  const FrameHead head = internal::PrintHead(kind, payload.size());
  std::vector<Move> moves(1);
  moves[0].rank = rank;
  moves[0].out = {head, payload};
  return Run(moves, description_.silence, {});
}

StatusOr<ClusterGroup::Received> ClusterGroup::Receive(std::size_t rank, std::uint64_t max_bytes,
                                                       std::optional<std::chrono::seconds> patience,
                                                       const std::stop_token& stop) {
  FrameHead head{};
  std::vector<Move> moves(1);
  moves[0].rank = rank;
  moves[0].in = {head};
  RETURN_IF_ERROR(Run(moves, patience, stop));
  ASSIGN_OR_RETURN(const internal::ParsedHead parsed, internal::ParseHead(head));
  if (parsed.bytes > max_bytes) {
    return Lost(rank, Error(StatusCode::kOutOfRange, "sent a frame longer than it may be"));
  }
  Received received = {parsed.kind, Bytes(parsed.bytes)};
  moves[0].in = {received.payload};
  RETURN_IF_ERROR(Run(moves, description_.silence, stop));
  return received;
}

Status ClusterGroup::ExchangeValues(const std::vector<ByteSpan>& out,
                                    const std::vector<std::span<std::uint8_t>>& in) {
  std::vector<FrameHead> heads_out(NumRanks());
  std::vector<FrameHead> heads_in(NumRanks());
  std::vector<Move> moves;
  for (std::size_t rank = 0; rank < NumRanks(); ++rank) {
    if (rank != Rank()) {
      heads_out[rank] = internal::PrintHead(ClusterFrame::kValues, out[rank].size());
      moves.push_back({rank,
                       {heads_out[rank], out[rank]},
                       {heads_in[rank], in[rank]},
                       &heads_in[rank],
                       in[rank].size(),
                       {}});
    }
  }
  return Run(moves, description_.silence, {});
}

Status ClusterGroup::AllReduceSum(std::span<float> values) {
  const std::size_t ranks = NumRanks();
  const auto slice = [&values, ranks](std::size_t rank) {
    const std::size_t first = rank * values.size() / ranks;
    return values.subspan(first, (rank + 1) * values.size() / ranks - first);
  };
  const std::span<float> own = slice(Rank());
  std::vector<ByteSpan> out(ranks);
  std::vector<std::span<std::uint8_t>> in(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    parts_[rank].resize(rank == Rank() ? 0 : own.size());
    out[rank] = BytesOf(slice(rank));
    in[rank] = MutableBytes(parts_[rank]);
  }
  RETURN_IF_ERROR(ExchangeValues(out, in));
  for (std::size_t i = 0; i < own.size(); ++i) {
    double sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      sum += static_cast<double>(rank == Rank() ? own[i] : parts_[rank][i]);
    }
    own[i] = static_cast<float>(sum);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    out[rank] = BytesOf(own);
    in[rank] = MutableBytes(slice(rank));
  }
  return ExchangeValues(out, in);
}

StatusOr<double> ClusterGroup::AllReduceSum(double value) {
  std::vector<double> parts(NumRanks());
  std::vector<ByteSpan> out(NumRanks());
  std::vector<std::span<std::uint8_t>> in(NumRanks());
  for (std::size_t rank = 0; rank < NumRanks(); ++rank) {
    out[rank] = {reinterpret_cast<const std::uint8_t*>(&value), sizeof(value)};
    in[rank] = {reinterpret_cast<std::uint8_t*>(&parts[rank]), sizeof(value)};
  }
  RETURN_IF_ERROR(ExchangeValues(out, in));
  parts[Rank()] = value;
  double sum = 0;
  for (const double part : parts) {
    sum += part;
  }
  return sum;
}

}  // namespace domicile::site_agent

#include "tests/support/fake_federation.h"

#include <utility>

#include "base/random.h"

namespace domicile::test {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);

class FakeUpload final : public wire::UpdateUpload {
 public:
  FakeUpload(FakeFederation& owner, std::string digest, Bytes& bytes, std::uint64_t start)
      : owner_(owner), digest_(std::move(digest)), bytes_(bytes), start_(start) {}

  std::span<std::uint8_t> Destination() override { return bytes_; }
  std::uint64_t StartBytes() const override { return start_; }
  Status Received(std::uint64_t end_bytes) override {
    Status status;
    owner_.signal.Update([&] {
      owner_.have[digest_] = end_bytes;
      if (owner_.fail_upload_at != 0 && end_bytes >= owner_.fail_upload_at) {
        owner_.fail_upload_at = 0;
        status = Error(StatusCode::kUnavailable, "broken off for the test");
      }
    });
    return status;
  }
  StatusOr<std::variant<v1::Receipt, v1::Refusal>> Finish(const Digest& digest) override {
    if (PrintHex(digest) != digest_) {
      v1::Refusal refusal;
      refusal.set_reason(7);
      return refusal;
    }
    v1::Receipt receipt;
    receipt.mutable_epoch()->set_starts(1);
    receipt.mutable_epoch()->set_attempt(1);
    receipt.set_digest(std::string(AsText(digest.bytes)));
    return receipt;
  }

 private:
  FakeFederation& owner_;
  const std::string digest_;
  Bytes& bytes_;
  const std::uint64_t start_;
};

}  // namespace

void Signal::Update(const std::function<void()>& change) {
  {
    const MutexLock lock(mutex_);
    change();
  }
  changed_.notify_all();
}

bool Signal::Await(const std::function<bool()>& condition) {
  MutexLock lock(mutex_);
  return changed_.wait_for(mutex_, kPatience, condition);
}

Status FakeFederation::OnConnect(std::shared_ptr<wire::SiteStream> stream) {
  Status status;
  signal.Update([&] {
    status = connect_status;
    streams.push_back(std::move(stream));
  });
  return status;
}

void FakeFederation::OnMessage(wire::SiteStream& stream, const v1::SiteMessage& message) {
  signal.Update(
      [&] { messages.push_back(stream.Peer().spiffe.name + ": " + message.SerializeAsString()); });
}

void FakeFederation::OnDisconnect(wire::SiteStream& /*stream*/, const Status& why) {
  signal.Update([&] { disconnects.push_back(why); });
}

StatusOr<wire::SharedBytes> FakeFederation::OpenBlob(const crypto::PeerIdentity& /*peer*/,
                                                     const Digest& digest) {
  const auto found = blobs.find(digest);
  if (found == blobs.end()) {
    return Error(StatusCode::kNotFound, "no blob `" + PrintHex(digest) + "`");
  }
  return found->second;
}

StatusOr<wire::BeginAnswer> FakeFederation::BeginUpdate(const crypto::PeerIdentity& peer,
                                                        const v1::UpdateHeader& header) {
  wire::BeginAnswer answer;
  signal.Update([&] {
    if (refuse_updates) {
      v1::Refusal refusal;
      refusal.set_reason(42);
      answer = refusal;
      return;
    }
    const std::string digest = PrintHex(AsBytes(header.update().digest()));
    Bytes& bytes = uploads[digest];
    bytes.resize(header.update().size_bytes());
    const std::uint64_t start = have[digest];
    starts.push_back(start);
    messages.push_back(peer.spiffe.name + " submits");
    answer = std::make_unique<FakeUpload>(*this, digest, bytes, start);
  });
  return answer;
}

StatusOr<v1::ProveConsistencyResponse> FakeFederation::ProveConsistency(
    const crypto::PeerIdentity& peer, std::uint64_t first_size) {
  v1::ProveConsistencyResponse response;
  response.set_head(peer.spiffe.name + " saw " + std::to_string(first_size));
  response.add_proof(std::string(32, 'p'));
  return response;
}

void FakeSite::OnDirective(const v1::Directive& directive) {
  signal.Update([&] { directives.push_back(directive); });
}

void FakeSite::OnClosed(const Status& why) {
  signal.Update([&] { closed.push_back(why); });
}

Bytes SomeBytes(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  SeededRandom(seed).Fill(bytes);
  return bytes;
}

}  // namespace domicile::test

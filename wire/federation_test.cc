// The federation service, both ends: control streams, blobs, updates.
#include <chrono>
#include <string>

#include <doctest/doctest.h>
#include <google/protobuf/unknown_field_set.h>

#include "crypto/tree_digest.h"
#include "tests/support/test_server.h"
#include "wire/proto/federation.grpc.pb.h"
#include "wire/status.h"

namespace domicile::wire {
namespace {

using test::FakeSite;
using test::SomeBytes;
using test::TestServer;

constexpr std::size_t kTensorBytes = 6'000'000;  // above gRPC's default of 4 MiB (C27)
const CallLimits kLimits = {.timeout = std::chrono::seconds(30), .stop = {}};

v1::BlobRef RefOf(ByteSpan bytes) {
  v1::BlobRef ref;
  ref.set_digest(std::string(AsText(crypto::TreeDigest(bytes).bytes)));
  ref.set_size_bytes(bytes.size());
  return ref;
}

v1::UpdateHeader HeaderOf(ByteSpan bytes) {
  v1::UpdateHeader header;
  header.mutable_phase()->set_job("heart");
  header.mutable_phase()->set_round(1);
  header.mutable_phase()->set_phase(v1::PHASE_KIND_TRAIN);
  *header.mutable_update() = RefOf(bytes);
  return header;
}

v1::SiteMessage Percent(std::uint32_t percent) {
  v1::SiteMessage message;
  message.mutable_progress()->mutable_phase()->set_phase(v1::PHASE_KIND_TRAIN);
  message.mutable_progress()->set_percent(percent);
  return message;
}

std::shared_ptr<const v1::Directive> Offer(const std::string& job) {
  auto directive = std::make_shared<v1::Directive>();
  directive->mutable_job_offer()->set_job(job);
  return directive;
}

// A server with one site connected.
struct Pair {
  TestServer server;
  std::unique_ptr<FederationClient> client = *server.Connect(server.authority.Site("charite"));
};

// A server with one site and its control stream open on both sides.
struct Talking : Pair {
  FakeSite site;
  std::unique_ptr<ControlStream> stream = client->OpenControl(site);
  std::shared_ptr<SiteStream> at_server = [this] {
    const bool opened =
        server.federation.signal.Await([this] { return !server.federation.streams.empty(); });
    DOMICILE_CHECK(opened);
    return server.federation.streams[0];
  }();
};

TEST_CASE("Control: messages go both ways, in order, and the site is named by its certificate") {
  Talking t;
  for (std::uint32_t percent = 0; percent < 50; ++percent) {
    REQUIRE(t.stream->Send(Percent(percent)).ok());
  }
  for (int i = 0; i < 50; ++i) {
    REQUIRE(t.at_server->Push(Offer("job-" + std::to_string(i))).ok());
  }

  REQUIRE(
      t.server.federation.signal.Await([&] { return t.server.federation.messages.size() == 50; }));
  REQUIRE(t.site.signal.Await([&] { return t.site.directives.size() == 50; }));
  for (std::uint32_t i = 0; i < 50; ++i) {
    CHECK(t.server.federation.messages[i] == "charite: " + Percent(i).SerializeAsString());
    CHECK(t.site.directives[i].job_offer().job() == "job-" + std::to_string(i));
  }
}

TEST_CASE("Control: what the site has queued is sent before it closes, and both ends learn of it") {
  Talking t;
  for (std::uint32_t percent = 0; percent < 20; ++percent) {
    REQUIRE(t.stream->Send(Percent(percent)).ok());
  }
  t.stream->Close();

  REQUIRE(t.site.signal.Await([&] { return !t.site.closed.empty(); }));
  REQUIRE(
      t.server.federation.signal.Await([&] { return !t.server.federation.disconnects.empty(); }));
  CHECK(t.site.closed[0].ok());
  CHECK(t.server.federation.disconnects[0].ok());
  CHECK(t.server.federation.messages.size() == 20);
  CHECK(t.at_server->Push(Offer("late")).code() == StatusCode::kUnavailable);
  CHECK(t.stream->Send(Percent(1)).code() == StatusCode::kUnavailable);
}

TEST_CASE("Control: what the aggregator has queued is sent before it ends the stream") {
  Talking t;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(t.at_server->Push(Offer("job")).ok());
  }
  t.at_server->End(Error(StatusCode::kPermissionDenied, "revoked"));

  REQUIRE(t.site.signal.Await([&] { return !t.site.closed.empty(); }));
  CHECK(t.site.closed[0] == Error(StatusCode::kPermissionDenied, "revoked"));
  CHECK(t.site.directives.size() == 20);
}

TEST_CASE("Control: both ends count the same messages and bytes, each as its own in and out") {
  Talking t;
  const ControlTally before = t.stream->Tally();
  const ControlTally before_at_server = t.at_server->Tally();
  std::uint64_t bytes_to_site = 0;
  std::uint64_t bytes_to_server = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto offer = Offer("job-" + std::string(i, 'x'));
    bytes_to_site += offer->ByteSizeLong();
    REQUIRE(t.at_server->Push(offer).ok());
  }
  for (std::uint32_t i = 1; i <= 7; ++i) {
    bytes_to_server += Percent(i).ByteSizeLong();
    REQUIRE(t.stream->Send(Percent(i)).ok());
  }
  CHECK(t.stream->Send(v1::SiteMessage()).code() == StatusCode::kInvalidArgument);  // not counted
  t.stream->Close();
  REQUIRE(
      t.server.federation.signal.Await([&] { return !t.server.federation.disconnects.empty(); }));
  REQUIRE(t.site.signal.Await([&] { return !t.site.closed.empty(); }));

  const ControlTally site = t.stream->Tally().Since(before);
  const ControlTally server = t.at_server->Tally().Since(before_at_server);
  CHECK(site == ControlTally{.messages_in = 20,
                             .messages_out = 7,
                             .bytes_in = bytes_to_site,
                             .bytes_out = bytes_to_server});
  CHECK(server == ControlTally{.messages_in = site.messages_out,
                               .messages_out = site.messages_in,
                               .bytes_in = site.bytes_out,
                               .bytes_out = site.bytes_in});
}

TEST_CASE("Control: a site whose stream object goes away is seen to leave") {
  Talking t;
  t.stream.reset();

  CHECK(t.server.federation.signal.Await([&] { return !t.server.federation.disconnects.empty(); }));
  CHECK(t.site.closed.size() == 1);
}

TEST_CASE("Control: a server that stops ends all streams, and no handler is called after it") {
  Talking t;
  t.server.Server().Stop(std::chrono::seconds(5));

  CHECK(t.server.federation.disconnects.size() == 1);
  REQUIRE(t.site.signal.Await([&] { return !t.site.closed.empty(); }));
  CHECK(t.site.closed[0].code() == StatusCode::kUnavailable);
  CHECK(t.at_server->Push(Offer("late")).code() == StatusCode::kUnavailable);
}

TEST_CASE("Control: a stream that the handler refuses ends with its status") {
  Pair p;
  p.server.federation.signal.Update([&] {
    p.server.federation.connect_status = Error(StatusCode::kFailedPrecondition, "not now");
  });
  FakeSite site;
  const auto stream = p.client->OpenControl(site);

  REQUIRE(site.signal.Await([&] { return !site.closed.empty(); }));
  CHECK(site.closed[0] == Error(StatusCode::kFailedPrecondition, "not now"));
  CHECK(p.server.federation.disconnects.empty());
}

TEST_CASE("Control: messages outside the protocol do not leave, and end the stream if they come") {
  Talking t;
  CHECK(t.stream->Send(v1::SiteMessage()).code() == StatusCode::kInvalidArgument);
  CHECK(t.at_server->Push(std::make_shared<v1::Directive>()).code() ==
        StatusCode::kInvalidArgument);

  // Another program as the site, with a note in field 99.
  const auto stub =
      v1::Federation::NewStub(t.server.RawChannel(t.server.authority.Site("inselspital")));
  grpc::ClientContext context;
  const auto raw = stub->Control(&context);
  v1::SiteMessage message = Percent(1);
  v1::Progress* progress = message.mutable_progress();
  progress->GetReflection()->MutableUnknownFields(progress)->AddLengthDelimited(99, "a note");
  REQUIRE(raw->Write(message));
  v1::Directive directive;
  CHECK_FALSE(raw->Read(&directive));
  const Status status = FromGrpc(raw->Finish());

  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(Message(status).find("progress") != std::string_view::npos);
  CHECK(t.server.federation.messages.empty());
}

TEST_CASE("Control: a site that does not read is dropped, and the others are not held up") {
  TestServer server([](ServerOptions& options) { options.max_queued_bytes = 1 << 20; });
  const auto stub = v1::Federation::NewStub(server.RawChannel(server.authority.Site("charite")));
  grpc::ClientContext context;
  const auto raw = stub->Control(&context);  // and never reads
  REQUIRE(server.federation.signal.Await([&] { return !server.federation.streams.empty(); }));
  auto big = std::make_shared<v1::Directive>();
  big->mutable_job_offer()->set_plan(std::string(500'000, 'p'));

  Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    status = server.federation.streams[0]->Push(big);
  }

  CHECK(status.code() == StatusCode::kResourceExhausted);
  CHECK(server.federation.signal.Await([&] { return !server.federation.disconnects.empty(); }));
  context.TryCancel();
  v1::Directive directive;
  while (raw->Read(&directive)) {
  }
  CHECK_FALSE(raw->Finish().ok());
}

TEST_CASE("Blobs: 6,000,000 bytes come down as they are (C27)") {
  const Bytes model = SomeBytes(kTensorBytes, 1);
  Pair p;
  p.server.federation.blobs[crypto::TreeDigest(model)] = ShareBytes(model);
  Bytes received(kTensorBytes);
  std::uint64_t have = 0;

  const Status status = p.client->FetchBlob(RefOf(model), received, have, kLimits);

  CAPTURE(ToString(status));
  CHECK(status.ok());
  CHECK(have == kTensorBytes);
  CHECK(received == model);
}

TEST_CASE("Blobs: a fetch goes on where the last one ended") {
  const Bytes model = SomeBytes(kTensorBytes, 2);
  Pair p;
  p.server.federation.blobs[crypto::TreeDigest(model)] = ShareBytes(model);
  for (const std::uint64_t begin : {1ULL, 1'048'576ULL, 3'333'333ULL, 5'999'999ULL, 6'000'000ULL}) {
    CAPTURE(begin);
    Bytes received(kTensorBytes);
    std::copy_n(model.begin(), begin, received.begin());
    std::uint64_t have = begin;

    CHECK(p.client->FetchBlob(RefOf(model), received, have, kLimits).ok());
    CHECK(received == model);
  }
}

TEST_CASE("Blobs: other bytes than the digest names are found out") {
  const Bytes model = SomeBytes(3'000'000, 3);
  Bytes other = model;
  other[2'222'222] ^= 1U;
  Pair p;
  p.server.federation.blobs[crypto::TreeDigest(model)] = ShareBytes(other);
  Bytes received(model.size());
  std::uint64_t have = 0;

  CHECK(p.client->FetchBlob(RefOf(model), received, have, kLimits).code() == StatusCode::kDataLoss);
  CHECK(have == 0);
}

TEST_CASE("Blobs: another size than stated, an unknown digest, a stop") {
  const Bytes model = SomeBytes(3'000'000, 4);
  Pair p;
  p.server.federation.blobs[crypto::TreeDigest(model)] = ShareBytes(model);
  std::uint64_t have = 0;

  v1::BlobRef longer = RefOf(model);
  longer.set_size_bytes(model.size() + 1);
  Bytes room(model.size() + 1);
  CHECK(p.client->FetchBlob(longer, room, have, kLimits).code() == StatusCode::kInvalidArgument);

  have = 0;
  v1::BlobRef shorter = RefOf(model);
  shorter.set_size_bytes(1'500'000);
  Bytes less(1'500'000);
  CHECK(p.client->FetchBlob(shorter, less, have, kLimits).code() == StatusCode::kInvalidArgument);

  have = 0;
  Bytes nothing(4);
  CHECK(p.client->FetchBlob(RefOf(nothing), nothing, have, kLimits).code() ==
        StatusCode::kNotFound);

  std::stop_source stop;
  stop.request_stop();
  have = 0;
  Bytes whole(model.size());
  CHECK(p.client
            ->FetchBlob(RefOf(model), whole, have,
                        {.timeout = std::chrono::seconds(30), .stop = stop.get_token()})
            .code() == StatusCode::kCancelled);
}

TEST_CASE("Blobs: the plain protobuf path reads the same bytes from the same server") {
  const Bytes model = SomeBytes(2'500'000, 5);
  TestServer server;
  server.federation.blobs[crypto::TreeDigest(model)] = ShareBytes(model);
  const auto stub = v1::Federation::NewStub(server.RawChannel(server.authority.Site("charite")));
  v1::FetchBlobRequest request;
  request.set_digest(RefOf(model).digest());
  grpc::ClientContext context;
  const auto reader = stub->FetchBlob(&context, request);

  Bytes received;
  v1::Chunk chunk;
  while (reader->Read(&chunk)) {
    CHECK(chunk.offset_bytes() == received.size());
    CHECK(chunk.data().size() <= kChunkBytes);
    CHECK(chunk.GetReflection()->GetUnknownFields(chunk).empty());
    received.insert(received.end(), chunk.data().begin(), chunk.data().end());
  }

  CHECK(reader->Finish().ok());
  CHECK(received == model);
}

TEST_CASE("Updates: 6,000,000 bytes go up as they are, and the receipt names their digest (C27)") {
  const Bytes update = SomeBytes(kTensorBytes, 6);
  Pair p;
  std::vector<std::uint64_t> progress;

  const auto answer = p.client->SubmitUpdate(
      HeaderOf(update), ShareBytes(update), [&](std::uint64_t sent) { progress.push_back(sent); },
      kLimits);

  CAPTURE(ToString(answer.status()));
  REQUIRE(answer.ok());
  CHECK(std::get<v1::Receipt>(*answer).digest() == RefOf(update).digest());
  CHECK(p.server.federation.uploads.begin()->second == update);
  CHECK(progress.size() == 6);
  CHECK(progress.back() == kTensorBytes);
}

TEST_CASE("Updates: an upload that breaks off goes on where it was") {
  const Bytes update = SomeBytes(kTensorBytes, 7);
  Pair p;
  p.server.federation.fail_upload_at = 3'000'000;
  const SharedBytes shared = ShareBytes(update);

  const auto first = p.client->SubmitUpdate(HeaderOf(update), shared, {}, kLimits);
  const auto second = p.client->SubmitUpdate(HeaderOf(update), shared, {}, kLimits);

  CHECK(first.status().code() == StatusCode::kUnavailable);
  REQUIRE(second.ok());
  CHECK(std::holds_alternative<v1::Receipt>(*second));
  CHECK(p.server.federation.starts == std::vector<std::uint64_t>{0, 3 * kChunkBytes});
  CHECK(p.server.federation.uploads.begin()->second == update);
}

TEST_CASE("Updates: a refusal comes before any byte is sent") {
  const Bytes update = SomeBytes(kTensorBytes, 8);
  Pair p;
  p.server.federation.refuse_updates = true;
  int chunks = 0;

  const auto answer = p.client->SubmitUpdate(
      HeaderOf(update), ShareBytes(update), [&](std::uint64_t) { ++chunks; }, kLimits);

  REQUIRE(answer.ok());
  CHECK(std::get<v1::Refusal>(*answer).reason() == 42);
  CHECK(chunks == 0);
}

TEST_CASE("Updates: the plain protobuf path is taken by the same server") {
  const Bytes update = SomeBytes(2'500'000, 9);
  TestServer server;
  const auto stub = v1::Federation::NewStub(server.RawChannel(server.authority.Site("charite")));
  grpc::ClientContext context;
  const auto call = stub->SubmitUpdate(&context);
  v1::SubmitUpdateRequest request;
  *request.mutable_header() = HeaderOf(update);
  REQUIRE(call->Write(request));
  v1::SubmitUpdateResponse answer;
  REQUIRE(call->Read(&answer));
  CHECK(answer.continue_at_bytes() == 0);
  for (std::size_t at = 0; at < update.size(); at += 999'999) {
    const std::size_t size = std::min<std::size_t>(999'999, update.size() - at);
    request.mutable_chunk()->set_offset_bytes(at);
    request.mutable_chunk()->set_data(update.data() + at, size);
    REQUIRE(call->Write(request));
  }

  REQUIRE(call->Read(&answer));
  CHECK(answer.receipt().digest() == RefOf(update).digest());
  CHECK(call->Finish().ok());
  CHECK(server.federation.uploads.begin()->second == update);
}

TEST_CASE("Updates: a malformed header or chunk ends the upload, and nothing is finished") {
  const Bytes update = SomeBytes(2'000'000, 10);
  struct Case {
    const char* name;
    std::function<void(v1::SubmitUpdateRequest&)> header;
    std::function<void(v1::SubmitUpdateRequest&)> chunk;
  };
  const auto keep = [](v1::SubmitUpdateRequest&) {};
  const auto plant = [](v1::SubmitUpdateRequest& request) {
    request.GetReflection()->MutableUnknownFields(&request)->AddVarint(99, 1);
  };
  const Case cases[] = {
      {"unknown field in the header", plant, keep},
      {"no phase", [](auto& r) { r.mutable_header()->clear_phase(); }, keep},
      {"a chunk for a header", [](auto& r) { r.mutable_chunk()->set_data("x"); }, keep},
      {"nothing chosen", [](auto& r) { r.Clear(); }, keep},
      {"unknown field beside the chunk", keep, plant},
      {"a gap", keep, [](auto& r) { r.mutable_chunk()->set_offset_bytes(1); }},
      {"no data", keep, [](auto& r) { r.mutable_chunk()->clear_data(); }},
      {"more than 1 MiB", keep,
       [](auto& r) { r.mutable_chunk()->set_data(std::string(kChunkBytes + 1, 'x')); }},
      {"a second header", keep, [&](auto& r) { *r.mutable_header() = HeaderOf(update); }},
  };
  TestServer server;
  const auto stub = v1::Federation::NewStub(server.RawChannel(server.authority.Site("charite")));
  for (const Case& c : cases) {
    CAPTURE(c.name);
    grpc::ClientContext context;
    const auto call = stub->SubmitUpdate(&context);
    v1::SubmitUpdateRequest request;
    *request.mutable_header() = HeaderOf(update);
    c.header(request);
    REQUIRE(call->Write(request));
    v1::SubmitUpdateResponse answer;
    if (call->Read(&answer)) {
      request.Clear();
      request.mutable_chunk()->set_data(std::string(1000, 'x'));
      c.chunk(request);
      call->Write(request);
    }
    while (call->Read(&answer)) {
    }

    CHECK(FromGrpc(call->Finish()).code() == StatusCode::kInvalidArgument);
  }
  for (const auto& [digest, have] : server.federation.have) {
    CHECK(have == 0);
  }
}

TEST_CASE("Updates: a newer upload of the same site and phase ends the older one") {
  const Bytes update = SomeBytes(2'000'000, 11);
  Pair p;
  const auto stub =
      v1::Federation::NewStub(p.server.RawChannel(p.server.authority.Site("charite")));
  grpc::ClientContext context;
  const auto older = stub->SubmitUpdate(&context);  // sends a header, then nothing more
  v1::SubmitUpdateRequest request;
  *request.mutable_header() = HeaderOf(update);
  REQUIRE(older->Write(request));
  v1::SubmitUpdateResponse answer;
  REQUIRE(older->Read(&answer));

  const auto newer = p.client->SubmitUpdate(HeaderOf(update), ShareBytes(update), {}, kLimits);

  REQUIRE(newer.ok());
  CHECK(std::holds_alternative<v1::Receipt>(*newer));
  CHECK_FALSE(older->Read(&answer));
  CHECK_FALSE(older->Finish().ok());
}

TEST_CASE("Updates: an upload that stalls loses its slot, and the next one gets it") {
  const Bytes update = SomeBytes(2'000'000, 12);
  TestServer server([](ServerOptions& options) {
    options.transfer_slots = 1;
    options.stall_timeout = std::chrono::milliseconds(200);
  });
  const auto stub =
      v1::Federation::NewStub(server.RawChannel(server.authority.Site("inselspital")));
  grpc::ClientContext context;
  const auto stalled = stub->SubmitUpdate(&context);
  v1::SubmitUpdateRequest request;
  *request.mutable_header() = HeaderOf(update);
  REQUIRE(stalled->Write(request));
  v1::SubmitUpdateResponse answer;
  REQUIRE(stalled->Read(&answer));
  const auto client = server.Connect(server.authority.Site("charite"));
  REQUIRE(client.ok());

  const auto next = (*client)->SubmitUpdate(HeaderOf(update), ShareBytes(update), {}, kLimits);

  REQUIRE(next.ok());
  CHECK(std::holds_alternative<v1::Receipt>(*next));
  CHECK_FALSE(stalled->Read(&answer));
  CHECK_FALSE(stalled->Finish().ok());
}

}  // namespace
}  // namespace domicile::wire

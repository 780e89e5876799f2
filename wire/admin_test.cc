#include <chrono>
#include <string>

#include <doctest/doctest.h>

#include "tests/support/fake_admin.h"
#include "tests/support/test_server.h"
#include "wire/admin_client.h"

namespace domicile::wire {
namespace {

using test::FakeAdmin;
using test::TestServer;

const CallLimits kLimits = {.timeout = std::chrono::seconds(20), .stop = {}};

struct Console {
  FakeAdmin admin;
  TestServer server{{}, &admin};
  std::unique_ptr<AdminClient> client = [this] {
    auto connected =
        AdminClient::Connect(server.ClientFor(server.authority.Operator("alice")), kLimits);
    return connected.ok() ? *std::move(connected) : nullptr;
  }();
};

TEST_CASE("Admin: an operator submits, lists, shows and cancels jobs") {
  Console console;
  REQUIRE(console.client != nullptr);
  v1::SubmitJobRequest request;
  request.set_job_file("[job]");

  CHECK(console.client->SubmitJob(request)->job() == "alice-5");
  CHECK(console.client->ListJobs()->jobs(0).job() == "heart");
  CHECK(console.client->ShowJob("heart")->sites(0).site() == "charite");
  CHECK(console.client->CancelJob("heart").ok());
  const auto missing = console.client->ShowJob("lung");
  CHECK(missing.status() == Error(StatusCode::kNotFound, "no job `lung`"));
  CHECK(console.client->CancelJob("lung").code() == StatusCode::kNotFound);
}

TEST_CASE("Admin: a watcher sees each event in order until the job ends") {
  Console console;
  REQUIRE(console.client != nullptr);
  std::vector<std::uint64_t> seen;

  const Status status = console.client->WatchJob(
      "heart",
      [&](const v1::WatchJobResponse& event) {
        seen.push_back(event.leaf_index());
        return true;
      },
      kLimits);

  CHECK(status.ok());
  CHECK(seen == std::vector<std::uint64_t>{1, 2, 3});
}

TEST_CASE("Admin: a watcher who leaves, and a server that stops, end an endless watch") {
  Console console;
  REQUIRE(console.client != nullptr);
  const auto leave = [](const v1::WatchJobResponse&) { return false; };

  CHECK(console.client->WatchJob("endless", leave, kLimits).ok());
  CHECK(console.admin.signal.Await([&] { return console.admin.watches_ended == 1; }));

  int events = 0;
  const Status status = console.client->WatchJob(
      "endless",
      [&](const v1::WatchJobResponse&) {
        if (++events == 3) {
          console.server.Server().Stop(std::chrono::seconds(5));
        }
        return true;
      },
      kLimits);
  CHECK_FALSE(status.ok());
  CHECK(console.admin.watches_ended == 2);
}

TEST_CASE("Admin: a model arrives whole, in order, and its digest is compared") {
  Console console;
  REQUIRE(console.client != nullptr);
  Bytes received;
  const ByteSink sink = [&](ByteSpan data) {
    received.insert(received.end(), data.begin(), data.end());
    return OkStatus();
  };

  const auto model = console.client->FetchModel("heart", 0, sink, kLimits);
  REQUIRE(model.ok());
  CHECK(std::get<v1::BlobRef>(*model).size_bytes() == console.admin.model.size());
  CHECK(received == console.admin.model);

  const auto wrong = console.client->FetchModel("heart", 8, sink, kLimits);
  CHECK(wrong.status().code() == StatusCode::kDataLoss);

  const auto refused = console.client->FetchModel("heart", 9, sink, kLimits);
  REQUIRE(refused.ok());
  CHECK(std::get<v1::Refusal>(*refused).reason() == 42);
}

TEST_CASE("Admin: a sink that cannot go on ends the call with its own error") {
  Console console;
  REQUIRE(console.client != nullptr);
  const ByteSink full = [](ByteSpan) {
    return Error(StatusCode::kResourceExhausted, "no space left");
  };

  CHECK(console.client->FetchModel("heart", 0, full, kLimits).status() ==
        Error(StatusCode::kResourceExhausted, "no space left"));
}

}  // namespace
}  // namespace domicile::wire

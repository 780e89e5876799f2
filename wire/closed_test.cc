#include "wire/closed.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include "wire/proto/admin.pb.h"
#include "wire/proto/federation.pb.h"

namespace domicile::wire {
namespace {

constexpr const char* kNote = "patient MUELLER";

v1::SiteMessage GoodHello() {
  v1::SiteMessage message;
  v1::Hello& hello = *message.mutable_hello();
  hello.set_protocol_min(1);
  hello.set_protocol_max(1);
  for (int i = 0; i < 2; ++i) {
    v1::PendingUpdate& pending = *hello.add_pending();
    pending.mutable_phase()->set_job("heart");
    pending.mutable_phase()->set_round(1);
    pending.mutable_phase()->set_phase(v1::PHASE_KIND_TRAIN);
  }
  return message;
}

// Every message inside, the message itself first.
void Collect(google::protobuf::Message& message, std::vector<google::protobuf::Message*>& out) {
  out.push_back(&message);
  const auto* reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    if (!field->is_repeated()) {
      Collect(*reflection->MutableMessage(&message, field), out);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      Collect(*reflection->MutableRepeatedMessage(&message, field, i), out);
    }
  }
}

TEST_CASE("Closed: field 99 planted at any level is refused, and its contents are not repeated") {
  v1::SiteMessage shape = GoodHello();
  std::vector<google::protobuf::Message*> levels;
  Collect(shape, levels);
  REQUIRE(levels.size() == 6);  // SiteMessage, Hello, 2 x (PendingUpdate, PhaseId)

  for (std::size_t i = 0; i < levels.size(); ++i) {
    CAPTURE(i);
    v1::SiteMessage message = GoodHello();
    std::vector<google::protobuf::Message*> parts;
    Collect(message, parts);
    parts[i]->GetReflection()->MutableUnknownFields(parts[i])->AddLengthDelimited(99, kNote);
    v1::SiteMessage arrived;
    REQUIRE(arrived.ParseFromString(message.SerializeAsString()));
    // Why the check is needed: protobuf would pass the note on.
    REQUIRE(arrived.SerializeAsString().find(kNote) != std::string::npos);

    const Status status = RequireClosed(arrived);

    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(Message(status).find("99") != std::string_view::npos);
    CHECK(Message(status).find(kNote) == std::string_view::npos);
  }
  CHECK(RequireClosed(GoodHello()).ok());
}

TEST_CASE("Closed: an error names the place") {
  v1::SiteMessage message = GoodHello();
  v1::PhaseId* phase = message.mutable_hello()->mutable_pending(1)->mutable_phase();
  phase->GetReflection()->MutableUnknownFields(phase)->AddVarint(99, 1);

  CHECK(Message(RequireNoUnknownFields(message)).find("hello.pending[1].phase") !=
        std::string_view::npos);
}

TEST_CASE("Closed: an enum that is zero or unknown is refused") {
  v1::SiteMessage zero = GoodHello();
  zero.mutable_hello()->mutable_pending(0)->mutable_phase()->set_phase(v1::PHASE_KIND_UNSPECIFIED);
  v1::SiteMessage unknown;
  // Field 2 of SiteMessage, OfferReply, with answer = 9.
  REQUIRE(unknown.ParseFromString(std::string("\x12\x02\x18\x09", 4)));

  CHECK(Message(RequireComplete(zero)).find("hello.pending[0].phase.phase") !=
        std::string_view::npos);
  CHECK(RequireNoUnknownFields(zero).ok());
  CHECK(Message(RequireNoUnknownFields(unknown)).find("offer_reply.answer") !=
        std::string_view::npos);
}

TEST_CASE("Closed: a message in which nothing is chosen is refused") {
  CHECK(RequireComplete(v1::SiteMessage()).code() == StatusCode::kInvalidArgument);
  CHECK(RequireComplete(v1::Directive()).code() == StatusCode::kInvalidArgument);
  v1::SubmitUpdateResponse from_start;
  from_start.set_continue_at_bytes(0);  // a number of a oneof is there although it is 0
  CHECK(RequireComplete(from_start).ok());
}

TEST_CASE("Closed: zero enums that mean `not yet` pass where only unknown fields are asked about") {
  v1::ShowJobResponse response;
  response.add_sites()->set_site("charite");  // no answer to the offer yet

  CHECK(RequireNoUnknownFields(response).ok());
  CHECK_FALSE(RequireComplete(response).ok());
}

}  // namespace
}  // namespace domicile::wire

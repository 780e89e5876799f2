// Messages are closed: what this version of the protocol does not know is refused, not passed on.
//
// proto3 keeps unknown fields and writes them out again, so a sender could carry anything at all
// past a gate in a field nobody reads.
#pragma once

#include "base/status.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace domicile::wire {

// Refuses a message that has, at any level, a field this version does not know, or an enum value it
// does not know. Errors: kInvalidArgument, naming the place by field names (`hello.pending[2]`) and
// the number; never a value.
Status RequireNoUnknownFields(const google::protobuf::Message& message);

// Refuses a message that has, at any level, an enum left at zero or a oneof with nothing chosen.
// Messages that are absent are not looked into. Errors: kInvalidArgument, naming the place.
Status RequireComplete(const google::protobuf::Message& message);

// Both. What every message between a site and its aggregator must pass on arrival.
Status RequireClosed(const google::protobuf::Message& message);

}  // namespace domicile::wire

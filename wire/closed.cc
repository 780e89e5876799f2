#include "wire/closed.h"

#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

namespace domicile::wire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string Place(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

domicile::Status Invalid(const Message& message, const std::string& path, const std::string& what) {
  return Error(StatusCode::kInvalidArgument,
               "message `" + message.GetDescriptor()->name() + "`" +
                   (path.empty() ? std::string() : " at `" + path + "`") + ": " + what);
}

// Calls `visit(child, path)` for each message that is present below `message`.
template <typename Visit>
domicile::Status ForEachChild(const Message& message, const std::string& path, const Visit& visit) {
  const Reflection* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    const std::string place = Place(path, field->name());
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(visit(reflection->GetMessage(message, field), place));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      RETURN_IF_ERROR(visit(reflection->GetRepeatedMessage(message, field, i),
                            place + "[" + std::to_string(i) + "]"));
    }
  }
  return OkStatus();
}

// Calls `visit(field, number)` for each enum of `message` itself, zero or not.
template <typename Visit>
domicile::Status ForEachEnum(const Message& message, const Visit& visit) {
  const Reflection* reflection = message.GetReflection();
  const google::protobuf::Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_ENUM) {
      continue;
    }
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(visit(*field, reflection->GetEnumValue(message, field)));
      continue;
    }
    for (int k = 0; k < reflection->FieldSize(message, field); ++k) {
      RETURN_IF_ERROR(visit(*field, reflection->GetRepeatedEnumValue(message, field, k)));
    }
  }
  return OkStatus();
}

domicile::Status Unknown(const Message& message, const std::string& path) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (!unknown.empty()) {
    return Invalid(
        message, path,
        "field " + std::to_string(unknown.field(0).number()) +
            " is not in this version of the protocol; use the same release at both ends");
  }
  RETURN_IF_ERROR(ForEachEnum(message, [&](const FieldDescriptor& field, int number) {
    if (field.enum_type()->FindValueByNumber(number) != nullptr) {
      return OkStatus();
    }
    return Invalid(message, Place(path, field.name()),
                   "value " + std::to_string(number) + " is not in this version of the protocol");
  }));
  return ForEachChild(message, path, Unknown);
}

domicile::Status Complete(const Message& message, const std::string& path) {
  const google::protobuf::Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->oneof_decl_count(); ++i) {
    if (!message.GetReflection()->HasOneof(message, type->oneof_decl(i))) {
      return Invalid(message, Place(path, type->oneof_decl(i)->name()), "nothing is chosen");
    }
  }
  RETURN_IF_ERROR(ForEachEnum(message, [&](const FieldDescriptor& field, int number) {
    return number != 0 ? OkStatus() : Invalid(message, Place(path, field.name()), "is not set");
  }));
  return ForEachChild(message, path, Complete);
}

}  // namespace

domicile::Status RequireNoUnknownFields(const Message& message) { return Unknown(message, {}); }

domicile::Status RequireComplete(const Message& message) { return Complete(message, {}); }

domicile::Status RequireClosed(const Message& message) {
  RETURN_IF_ERROR(RequireNoUnknownFields(message));
  return RequireComplete(message);
}

}  // namespace domicile::wire

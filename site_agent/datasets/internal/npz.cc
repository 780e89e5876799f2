// Archives of arrays, unpacked by libzip.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <zip.h>

#include "site_agent/datasets/arrays.h"

namespace domicile::site_agent {
namespace {

constexpr zip_int64_t kMaxMembers = 1000;
constexpr std::size_t kStep = 1 << 20;

Status Wrong(const std::string& what) { return Error(StatusCode::kInvalidArgument, what); }

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

using Archive = std::unique_ptr<zip_t, Discard>;

StatusOr<Archive> OpenArchive(ByteSpan file) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const source = zip_source_buffer_create(file.data(), file.size(), 0, &error);
  Archive archive(source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, &error));
  if (archive == nullptr) {
    zip_source_free(source);  // an archive that opened owns it
    Status status = Wrong(std::string("not an archive of arrays: ") + zip_error_strerror(&error));
    zip_error_fini(&error);
    return status;
  }
  zip_error_fini(&error);
  return archive;
}

// Unpacks a member step by step: what it says of its size is not believed before it is there.
StatusOr<Bytes> Unpack(zip_t* archive, zip_uint64_t index, std::uint64_t max_bytes) {
  const std::unique_ptr<zip_file_t, Discard> member(zip_fopen_index(archive, index, 0));
  if (member == nullptr) {
    return Wrong(std::string("cannot be unpacked: ") + zip_strerror(archive));
  }
  Bytes bytes;
  while (true) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kStep);
    const zip_int64_t got = zip_fread(member.get(), bytes.data() + before, kStep);
    if (got < 0) {
      return Wrong(std::string("is damaged: ") + zip_file_strerror(member.get()));
    }
    bytes.resize(before + static_cast<std::size_t>(got));
    if (bytes.size() > max_bytes) {
      return Wrong("more than " + std::to_string(max_bytes) + " bytes when unpacked");
    }
    if (got == 0) {
      return bytes;
    }
  }
}

}  // namespace

StatusOr<std::vector<Array>> ParseNpz(ByteSpan file, std::uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const Archive archive, OpenArchive(file));
  const zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  if (members > kMaxMembers) {
    return Wrong("an archive of more than " + std::to_string(kMaxMembers) + " members");
  }
  std::vector<Array> arrays;
  for (zip_int64_t i = 0; i < members; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* const entry = zip_get_name(archive.get(), index, 0);
    std::string name(entry == nullptr ? "" : entry);
    if (!name.ends_with(".npy")) {
      return Wrong("member " + std::to_string(i + 1) + " is not an array (.npy)");
    }
    StatusOr<Bytes> bytes = Unpack(archive.get(), index, max_bytes);
    RETURN_IF_ERROR(Annotate(bytes.status(), "member `" + name + "`"));
    max_bytes -= bytes->size();
    StatusOr<Array> array = ParseNpy(*std::move(bytes), name.substr(0, name.size() - 4));
    RETURN_IF_ERROR(Annotate(array.status(), "member `" + name + "`"));
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

}  // namespace domicile::site_agent

#include "site_agent/sandbox/file_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "site_agent/sandbox/lockdown.h"

namespace domicile::site_agent {

namespace {

// An answer: the code, how many bytes follow, and those: the file's, or of the message.
constexpr std::size_t kHeaderBytes = 4 + 8;

bool SendAll(int socket, ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) {
      continue;
    }
    if (sent <= 0) {
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

bool ReceiveAll(int socket, std::uint8_t* to, std::size_t size) {
  while (size > 0) {
    const ssize_t received = recv(socket, to, size, 0);
    if (received < 0 && errno == EINTR) {
      continue;
    }
    if (received <= 0) {
      return false;
    }
    to += received;
    size -= static_cast<std::size_t>(received);
  }
  return true;
}

Bytes Answer(StatusCode code, std::string_view text) {
  Bytes answer;
  AppendU32(answer, static_cast<std::uint32_t>(code));
  AppendU64(answer, text.size());
  answer.insert(answer.end(), text.begin(), text.end());
  return answer;
}

// The first answer says whether the walls stand.
[[noreturn]] void Serve(int socket, const std::vector<std::string>& files,
                        std::uint64_t max_bytes) {
  std::set<std::string> folders;
  for (const std::string& file : files) {
    folders.insert(std::filesystem::absolute(file).parent_path().string());
  }
  // No namespace: not every host gives one, and no call makes a socket any more.
  Lockdown walls{.paths = {}, .network = NetworkWall::kNone, .calls = CallFilter::kTrainer};
  for (const std::string& folder : folders) {
    walls.paths.push_back({.path = folder, .access = PathAccess::kRead, .required = true});
  }
  const Status locked = Apply(walls).status();
  bool goes_on = SendAll(socket, Answer(locked.code(), Message(locked))) && locked.ok();
  std::uint8_t asked = 0;
  while (goes_on && ReceiveAll(socket, &asked, 1)) {
    const StatusOr<std::string> text = ReadFile(files.at(asked), max_bytes);
    goes_on = SendAll(socket, text.ok() ? Answer(StatusCode::kOk, *text)
                                        : Answer(text.status().code(), Message(text.status())));
  }
  _exit(0);
}

StatusOr<std::string> Receive(int socket) {
  std::array<std::uint8_t, kHeaderBytes> header{};
  const Status gone = Error(StatusCode::kUnavailable,
                            "the process that reads the policy files is gone: restart the agent");
  if (!ReceiveAll(socket, header.data(), header.size())) {
    return gone;
  }
  const auto code = static_cast<StatusCode>(ReadU32(header));
  std::string text(ReadU64(ByteSpan(header).subspan(4)), '\0');
  if (!ReceiveAll(socket, reinterpret_cast<std::uint8_t*>(text.data()), text.size())) {
    return gone;
  }
  return code == StatusCode::kOk ? StatusOr<std::string>(std::move(text)) : Error(code, text);
}

}  // namespace

StatusOr<FileReader> FileReader::Start(std::vector<std::string> files, std::uint64_t max_bytes) {
  DOMICILE_CHECK(files.size() <= 256);  // asked for by one byte
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return ErrnoError(errno, "making a pair of sockets");
  }
  FileHandle own(ends[0]);
  FileHandle others(ends[1]);
  const pid_t process = fork();
  if (process < 0) {
    return ErrnoError(errno, "starting the process that reads the policy files");
  }
  if (process == 0) {
    own = FileHandle();  // or it would never see the end of the connection
    Serve(others.descriptor(), files, max_bytes);
  }
  FileReader reader(std::move(files), std::move(own), process);
  others = FileHandle();
  RETURN_IF_ERROR(Annotate(Receive(reader.socket_.descriptor()).status(),
                           "locking the process that reads the policy files"));
  return reader;
}

FileReader::FileReader(FileReader&& other) noexcept
    : files_(std::move(other.files_)),
      socket_(std::move(other.socket_)),
      process_(std::exchange(other.process_, -1)) {}

FileReader::~FileReader() {
  socket_ = FileHandle();  // the process ends when it has nobody to answer
  if (process_ > 0) {
    waitpid(process_, nullptr, 0);
  }
}

StatusOr<std::string> FileReader::Read(const std::string& file) const {
  const auto found = std::find(files_.begin(), files_.end(), file);
  if (found == files_.end()) {
    return Error(StatusCode::kInvalidArgument, "`" + file + "` is not among the policy files");
  }
  const auto index = static_cast<std::uint8_t>(found - files_.begin());
  if (!SendAll(socket_.descriptor(), ByteSpan(&index, 1))) {
    return Error(StatusCode::kUnavailable,
                 "the process that reads the policy files is gone: restart the agent");
  }
  return Receive(socket_.descriptor());
}

}  // namespace domicile::site_agent

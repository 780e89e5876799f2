// Frames over a connected Unix stream socket, and the listening socket. Used by both sides.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"
#include "site_agent/trainer/protocol.h"

namespace domicile::site_agent {

// A descriptor that wakes a poll: Raise is safe from any thread and makes it readable for good.
// Thread-safe.
class WakeSignal {
 public:
  static StatusOr<WakeSignal> Make();
  void Raise() const;
  int descriptor() const { return event_.descriptor(); }

 private:
  explicit WakeSignal(FileHandle event) : event_(std::move(event)) {}
  FileHandle event_;
};

// What ended a wait.
enum class Waited : std::uint8_t { kTimeout = 0, kReadable = 1, kWoken = 2, kWokenSecond = 3 };

// One side of a connection. Calls block, but not for ever: after `stall_timeout` without a byte
// they fail, and when `wake` becomes readable (if it is not -1) too. Uses send and recv only:
// descriptors never travel (docs/formats/trainer-socket.md). Errors of all: kUnavailable (the other
// side is gone, or stalls), kCancelled (woken). One thread at a time.
class FrameSocket {
 public:
  FrameSocket(FileHandle socket, std::chrono::milliseconds stall_timeout, int wake = -1)
      : socket_(std::move(socket)), stall_timeout_(stall_timeout), wake_(wake) {}

  Status Send(ByteSpan bytes);
  // Also the errors of ParseFrameHeader.
  StatusOr<FrameHeader> ReadHeader(std::uint64_t max_payload);
  StatusOr<std::string> ReadText(std::uint32_t bytes);
  // Memory grows with what arrives, not with what is announced.
  StatusOr<Bytes> ReadPayload(std::uint64_t bytes);
  Status SkipPayload(std::uint64_t bytes);

  // Waits for input, for either descriptor (-1: none), or for the time to pass; negative: for ever.
  StatusOr<Waited> Wait(std::chrono::milliseconds timeout, int wake, int second = -1) const;

  void SetWake(int wake) { wake_ = wake; }
  void SetStallTimeout(std::chrono::milliseconds timeout) { stall_timeout_ = timeout; }
  int descriptor() const { return socket_.descriptor(); }

 private:
  StatusOr<std::size_t> ReadSome(std::uint8_t* to, std::size_t size);
  Status ReadExactly(std::uint8_t* to, std::size_t size);
  Status WaitFor(short events) const;

  FileHandle socket_;
  std::chrono::milliseconds stall_timeout_;
  int wake_;
};

// A listening socket at `path` with the given file mode. A socket file that nobody serves is
// replaced. Errors: kFailedPrecondition (another process serves there), kInvalidArgument (a path
// too long for a socket, or a file that is no socket), and as ErrnoError.
StatusOr<FileHandle> ListenUnix(const std::string& path, unsigned mode);

// Errors: kUnavailable (nobody listens), kPermissionDenied, kInvalidArgument (path too long).
StatusOr<FileHandle> ConnectUnix(const std::string& path);

}  // namespace domicile::site_agent

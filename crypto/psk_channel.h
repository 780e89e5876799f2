// An encrypted, authenticated byte stream between two holders of one key: TLS 1.3 with an external
// pre-shared key (RFC 8446, section 4.2.11) over a connected stream socket that does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"
#include "crypto/secret.h"

namespace domicile::crypto {

inline constexpr std::size_t kPskBytes = 32;

enum class PskSide : std::uint8_t { kConnecting = 0, kAccepting = 1 };

// One side. Uses send and recv only, so that a process that may make no socket can use it. Nothing
// is sent or believed before the other side has shown that it holds the key for the same purpose.
// One thread at a time.
class PskChannel {
 public:
  // What a call that cannot go on at once waits for on the socket.
  enum class Wants : std::uint8_t { kNothing = 0, kRead = 1, kWrite = 2 };

  // `key`: kPskBytes; `purpose`: the identity both name, public, at most 64 bytes. The socket must
  // not block. Errors: kInvalidArgument (another key length), kInternal (the library).
  static StatusOr<PskChannel> Make(FileHandle socket, PskSide side, ByteSpan key,
                                   std::string_view purpose);

  PskChannel(PskChannel&&) noexcept;
  PskChannel& operator=(PskChannel&&) noexcept;
  ~PskChannel();

  int descriptor() const;

  // The calls below go on as far as they can. Errors: kUnauthenticated (the other side does not
  // hold the key), kUnavailable (it is gone, or sent what is no TLS); after one the channel is
  // unusable.
  //
  // To be called until it wants nothing.
  StatusOr<Wants> Handshake();
  // How many bytes were moved; 0 means that it waits for what `wants` says.
  StatusOr<std::size_t> Write(ByteSpan bytes, Wants& wants);
  StatusOr<std::size_t> Read(std::span<std::uint8_t> bytes, Wants& wants);

 private:
  struct State;
  explicit PskChannel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace domicile::crypto

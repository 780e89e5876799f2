#include "bench/floor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "crypto/sha256.h"

namespace domicile::bench {

namespace {

constexpr int kRuns = 5;
constexpr std::size_t kChunk = std::size_t{1} << 20U;         // of a digest, and of a write
constexpr std::size_t kRecord = std::size_t{16} << 10U;       // of TLS
constexpr std::size_t kCipherBytes = std::size_t{64} << 20U;  // a run
constexpr std::size_t kTcpBytes = std::size_t{256} << 20U;
constexpr std::size_t kIvBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kKeyBytes = 32;

double CpuSeconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The cheapest of some runs, in CPU seconds of the whole process.
StatusOr<double> Cheapest(const std::function<Status()>& run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRuns; ++i) {
    const double before = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
    RETURN_IF_ERROR(run());
    best = std::min(best, CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - before);
  }
  return best;
}

struct FreeCipher {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

// One direction of a TLS connection's cipher, record by record, in a buffer of one chunk.
class Cipher {
 public:
  explicit Cipher(bool seal) : seal_(seal), context_(EVP_CIPHER_CTX_new()) {}

  // The tag of a record that is opened need not fit: what opening costs is the same.
  Status Run(std::size_t bytes) {
    const std::array<unsigned char, kKeyBytes> key{};
    std::array<unsigned char, kIvBytes> iv{};
    std::array<unsigned char, kTagBytes> tag{};
    std::vector<unsigned char> from(kChunk, 1);
    std::vector<unsigned char> to(kRecord);
    bool good = context_ != nullptr && EVP_CipherInit_ex(context_.get(), EVP_aes_256_gcm(), nullptr,
                                                         key.data(), iv.data(), seal_ ? 1 : 0) == 1;
    for (std::size_t done = 0; good && done < bytes; done += kRecord) {
      ++iv[0];
      int written = 0;
      good = EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, iv.data(), -1) == 1 &&
             EVP_CipherUpdate(context_.get(), to.data(), &written, from.data() + done % kChunk,
                              static_cast<int>(kRecord)) == 1;
      if (good && seal_) {
        good = EVP_CipherFinal_ex(context_.get(), to.data(), &written) == 1 &&
               EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG,
                                   static_cast<int>(kTagBytes), tag.data()) == 1;
      }
    }
    return good ? OkStatus() : Error(StatusCode::kInternal, "AES-256-GCM failed");
  }

 private:
  bool seal_;
  std::unique_ptr<EVP_CIPHER_CTX, FreeCipher> context_;
};

struct TcpPair {
  FileHandle writer;
  FileHandle reader;
};

StatusOr<TcpPair> ConnectLoopback() {
  const FileHandle listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  TcpPair pair;
  pair.writer = FileHandle(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.IsOpen() || !pair.writer.IsOpen() || bind(listener.descriptor(), any, size) != 0 ||
      listen(listener.descriptor(), 1) != 0 ||
      getsockname(listener.descriptor(), any, &size) != 0 ||
      connect(pair.writer.descriptor(), any, size) != 0) {
    return ErrnoError(errno, "connecting to this machine");
  }
  pair.reader = FileHandle(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair.reader.IsOpen()) {
    return ErrnoError(errno, "accepting a connection from this machine");
  }
  return pair;
}

Status CopyOverTcp(std::size_t bytes) {
  ASSIGN_OR_RETURN(TcpPair pair, ConnectLoopback());
  const std::jthread writer([&pair, bytes] {
    const std::vector<unsigned char> from(kChunk, 1);
    for (std::size_t left = bytes; left > 0;) {
      const ssize_t sent =
          send(pair.writer.descriptor(), from.data(), std::min(left, kChunk), MSG_NOSIGNAL);
      if (sent <= 0) {
        break;  // the reader sees the end
      }
      left -= static_cast<std::size_t>(sent);
    }
    pair.writer = FileHandle();
  });
  std::vector<unsigned char> to(kChunk);
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t got = read(pair.reader.descriptor(), to.data(), to.size());
    if (got <= 0) {
      return Error(StatusCode::kUnavailable, "a loopback connection ended early");
    }
    have += static_cast<std::size_t>(got);
  }
  return OkStatus();
}

}  // namespace

StatusOr<ByteCosts> MeasureByteCosts() {
  ByteCosts costs;
  Cipher seal(true);
  ASSIGN_OR_RETURN(const double sealing, Cheapest([&] { return seal.Run(kCipherBytes); }));
  Cipher open(false);
  ASSIGN_OR_RETURN(const double opening, Cheapest([&] { return open.Run(kCipherBytes); }));
  ASSIGN_OR_RETURN(const double copying, Cheapest([] { return CopyOverTcp(kTcpBytes); }));
  const Bytes chunk(kChunk, 1);
  ASSIGN_OR_RETURN(const double hashing, Cheapest([&] {
                     for (std::size_t done = 0; done < kCipherBytes; done += kChunk) {
                       crypto::Sha256(chunk);
                     }
                     return OkStatus();
                   }));
  costs.seal = sealing / static_cast<double>(kCipherBytes);
  costs.open = opening / static_cast<double>(kCipherBytes);
  costs.tcp = copying / static_cast<double>(kTcpBytes);
  costs.sha256 = hashing / static_cast<double>(kCipherBytes);
  return costs;
}

StatusOr<double> MeasureFileWrite(const std::string& folder, std::uint64_t bytes) {
  const Bytes model(bytes, 1);
  const std::string path = JoinPath(folder, "floor.bin");
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const double before = CpuSeconds(CLOCK_MONOTONIC);
    RETURN_IF_ERROR(WriteFileDurably(path, model));
    best = std::min(best, CpuSeconds(CLOCK_MONOTONIC) - before);
    RETURN_IF_ERROR(RemoveFile(path));
  }
  return best;
}

Floor FloorOfRound(const ByteCosts& costs, double file_seconds, std::uint64_t parameters,
                   std::uint32_t sites, unsigned cores) {
  const double one_way = 4.0 * static_cast<double>(parameters) * sites;
  Floor floor;
  floor.wire_bytes = 2 * std::uint64_t{4} * parameters * sites;
  floor.file_seconds = file_seconds;
  floor.cpu_seconds =
      2 * one_way * (costs.seal + costs.open + costs.tcp) + 3 * one_way * costs.sha256;
  floor.seconds = floor.cpu_seconds / std::max(cores, 1U) + file_seconds;
  return floor;
}

}  // namespace domicile::bench

// A library that is loaded before a program's own (LD_PRELOAD) and writes down every byte that the
// program hands to TLS or gets from it. The programs themselves are those that are installed:
// nothing in them can be asked to do this.
//
// DOMICILE_TLS_TAP names a folder; the tape of a program is `PROGRAM.PID.tape` there: records of
// one byte `>` (sent) or `<` (received), the number of the connection (u32) and the size (u32),
// both little-endian, then the bytes.
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

// What OpenSSL calls them; its headers are not needed for three pointers.
struct ssl_st;
struct ssl_ctx_st;
extern "C" {
ssl_st* SSL_new(ssl_ctx_st* context);
int SSL_write(ssl_st* ssl, const void* bytes, int size);
int SSL_read(ssl_st* ssl, void* bytes, int size);
int SSL_write_ex(ssl_st* ssl, const void* bytes, std::size_t size, std::size_t* written);
int SSL_read_ex(ssl_st* ssl, void* bytes, std::size_t size, std::size_t* read);
}

namespace {

int tape = -1;
std::mutex& TapeMutex() {
  static std::mutex mutex;
  return mutex;
}

// Opened before main: later the program may have locked itself out of the folder.
[[gnu::constructor]] void OpenTape() {
  const char* folder = std::getenv("DOMICILE_TLS_TAP");
  if (folder != nullptr) {
    const std::string path = std::string(folder) + "/" + program_invocation_short_name + "." +
                             std::to_string(getpid()) + ".tape";
    tape = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (tape < 0) {
      std::abort();  // a tape that is missing would look like silence
    }
  }
}

template <typename Function>
Function* Real(const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  if (found == nullptr) {
    std::abort();
  }
  return found;
}

// Memory is used again for later connections: they are told apart by when they were made.
std::map<const ssl_st*, std::uint32_t>& Connections() {
  static std::map<const ssl_st*, std::uint32_t> connections;
  return connections;
}

void AppendNumber(std::string& out, std::uint32_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>(number >> shift & 0xFFU));
  }
}

void Record(char direction, const ssl_st* ssl, const void* bytes, std::size_t size) {
  if (tape < 0 || size == 0) {
    return;
  }
  const std::lock_guard<std::mutex> lock(TapeMutex());
  std::string record(1, direction);
  AppendNumber(record, Connections()[ssl]);
  AppendNumber(record, static_cast<std::uint32_t>(size));
  record.append(static_cast<const char*>(bytes), size);
  if (write(tape, record.data(), record.size()) != static_cast<ssize_t>(record.size())) {
    std::abort();
  }
}

}  // namespace

extern "C" {

ssl_st* SSL_new(ssl_ctx_st* context) {
  static auto* const real = Real<decltype(SSL_new)>("SSL_new");
  ssl_st* const ssl = real(context);
  const std::lock_guard<std::mutex> lock(TapeMutex());
  static std::uint32_t made = 0;
  Connections()[ssl] = ++made;
  return ssl;
}

// What TLS takes; what it does not take is handed to it again.
int SSL_write(ssl_st* ssl, const void* bytes, int size) {
  static auto* const real = Real<decltype(SSL_write)>("SSL_write");
  const int written = real(ssl, bytes, size);
  Record('>', ssl, bytes, written > 0 ? static_cast<std::size_t>(written) : 0);
  return written;
}

int SSL_read(ssl_st* ssl, void* bytes, int size) {
  static auto* const real = Real<decltype(SSL_read)>("SSL_read");
  const int read = real(ssl, bytes, size);
  Record('<', ssl, bytes, read > 0 ? static_cast<std::size_t>(read) : 0);
  return read;
}

int SSL_write_ex(ssl_st* ssl, const void* bytes, std::size_t size, std::size_t* written) {
  static auto* const real = Real<decltype(SSL_write_ex)>("SSL_write_ex");
  const int result = real(ssl, bytes, size, written);
  Record('>', ssl, bytes, result == 1 ? *written : 0);
  return result;
}

int SSL_read_ex(ssl_st* ssl, void* bytes, std::size_t size, std::size_t* read) {
  static auto* const real = Real<decltype(SSL_read_ex)>("SSL_read_ex");
  const int result = real(ssl, bytes, size, read);
  Record('<', ssl, bytes, result == 1 ? *read : 0);
  return result;
}

}  // extern "C"

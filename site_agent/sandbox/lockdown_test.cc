// Every wall is shown by what it stops, and each test has its control: the same code in an unlocked
// child gets through.
#include "site_agent/sandbox/lockdown.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/file.h"
#include "site_agent/sandbox/canary.h"
#include "site_agent/sandbox/internal/walls.h"
#include "site_agent/sandbox/locked_child.h"

namespace domicile::site_agent {
namespace {

constexpr int kCouldNotLock = 200;

// A folder with a `data` file and a `state` folder, open to all users; removed at the end.
class Places {
 public:
  Places() {
    std::string name = "/tmp/domicile-sandbox-XXXXXX";
    folder_ = mkdtemp(name.data());
    REQUIRE(chmod(folder_.c_str(), 0755) == 0);
    data_ = JoinPath(folder_, "data.csv");
    state_ = JoinPath(folder_, "state");
    REQUIRE(WriteFileDurably(data_, AsBytes("a,b\n1,2\n"), 0644).ok());
    REQUIRE(mkdir(state_.c_str(), 0777) == 0);
    REQUIRE(chmod(state_.c_str(), 0777) == 0);
  }
  ~Places() { std::system(("rm -rf '" + folder_ + "'").c_str()); }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  const std::string& Data() const { return data_; }
  const std::string& State() const { return state_; }
  std::string InState(std::string_view name) const { return JoinPath(state_, name); }
  Lockdown Trainer() const {
    const std::array<PathRule, 2> rules = {PathRule{data_, PathAccess::kRead},
                                           PathRule{state_, PathAccess::kWrite}};
    return TrainerLockdown(rules);
  }
  Lockdown Agent() const {
    const std::array<PathRule, 1> rules = {PathRule{state_, PathAccess::kWrite}};
    return AgentLockdown(rules);
  }

 private:
  std::string folder_;
  std::string data_;
  std::string state_;
};

// The error of opening a file, 0 if it opens.
int OpenError(const std::string& path, int flags) {
  const FileHandle file(open(path.c_str(), flags | O_CLOEXEC, 0600));
  return file.IsOpen() ? 0 : errno;
}

int ErrorOf(long result) { return result < 0 ? errno : 0; }

int LockedChild(const Lockdown& lockdown, const std::function<int()>& body) {
  return InChild([&] { return Apply(lockdown).ok() ? body() : kCouldNotLock; });
}

int SocketError(int family, int type) {
  const FileHandle made(socket(family, type, 0));
  return made.IsOpen() ? 0 : errno;
}

// A TCP listener on 127.0.0.1 in the namespace of the tests.
struct Listener {
  Listener() : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(bind(socket.descriptor(), Generic(), length) == 0);
    REQUIRE(listen(socket.descriptor(), 8) == 0);
    REQUIRE(getsockname(socket.descriptor(), Generic(), &length) == 0);
  }
  sockaddr* Generic() { return reinterpret_cast<sockaddr*>(&address); }
  int ConnectError() {
    const FileHandle made(::socket(AF_INET, SOCK_STREAM, 0));
    return made.IsOpen() ? ErrorOf(connect(made.descriptor(), Generic(), sizeof address)) : errno;
  }
  FileHandle socket;
  sockaddr_in address{};
};

}  // namespace

TEST_CASE("Trainer lock: no socket of any family or type can be made") {
  const Places places;
  const auto families_that_open = [] {
    int open = 0;
    for (int family = 0; family <= 46; ++family) {
      for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET}) {
        open += SocketError(family, type) != EPERM ? 1 : 0;
      }
    }
    std::array<int, 2> pair{};
    return open + (socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0 || errno != EPERM ? 1 : 0);
  };

  CHECK(LockedChild(places.Trainer(), families_that_open) == 0);

  CHECK(InChild(families_that_open) > 50);  // control: mere absence of a family is not EPERM either
  for (const int family : {AF_UNIX, AF_INET, AF_INET6}) {
    CAPTURE(family);
    CHECK(InChild([&] { return SocketError(family, SOCK_STREAM); }) == 0);
  }
  CHECK(InChild([&] { return SocketError(AF_NETLINK, SOCK_RAW); }) == 0);
}

TEST_CASE(
    "Trainer lock: the network namespace alone reaches nothing, not even a loopback listener") {
  Listener listener;

  const int locked = InChild([&] {
    return internal::EnterNetworkNamespace().ok() ? listener.ConnectError() : kCouldNotLock;
  });

  CHECK(locked == ENETUNREACH);
  CHECK(InChild([&] { return listener.ConnectError(); }) == 0);
  CHECK(InChild([] {
          return internal::EnterNetworkNamespace().ok() && internal::OnlyLoopback();
        }) == 1);
}

TEST_CASE("Trainer lock with a loopback: it speaks with itself, and with nothing and nobody else") {
  const Places places;
  Listener outside;
  const Lockdown lockdown = [&places] {
    Lockdown loopback = TrainerLoopbackLockdown(std::array<PathRule, 0>{});
    loopback.paths.push_back({places.Data(), PathAccess::kRead});
    return loopback;
  }();
  const auto speaks_with_itself = [] {
    Listener inside;
    return inside.ConnectError();
  };
  const auto reaches_outside = [&outside] { return outside.ConnectError(); };
  const auto families_that_open = [] {
    int open = 0;
    for (int family = 0; family <= 46; ++family) {
      if (family != AF_INET && family != AF_INET6 && family != AF_NETLINK) {
        open += SocketError(family, SOCK_STREAM) != EPERM ? 1 : 0;
      }
    }
    return open;
  };
  const auto lists_interfaces = [] {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) {
      return errno;
    }
    int others = 0;
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      others += std::string_view(one->ifa_name) == "lo" ? 0 : 1;
    }
    freeifaddrs(list);
    return others;
  };
  const auto canary_is_shut = [] {
    return RequireShut(TrainerLoopbackCanary(std::array<std::string, 0>{})).ok() ? 0 : 1;
  };

  CHECK(LockedChild(lockdown, speaks_with_itself) == 0);
  CHECK(LockedChild(lockdown, reaches_outside) == ECONNREFUSED);
  CHECK(LockedChild(lockdown, families_that_open) == 0);
  CHECK(LockedChild(lockdown, lists_interfaces) == 0);
  CHECK(LockedChild(lockdown, canary_is_shut) == 0);
  CHECK(LockedChild(places.Trainer(), [] { return SocketError(AF_INET, SOCK_STREAM); }) == EPERM);

  CHECK(InChild(reaches_outside) == 0);
  CHECK(InChild(canary_is_shut) == 1);
  CHECK(InChild(families_that_open) > 5);
}

TEST_CASE("Trainer lock: an open socket serves on but passes no descriptor and gets no new peer") {
  const Places places;
  std::array<int, 2> pair{};
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0);
  const FileHandle near(pair[0]);
  const FileHandle far(pair[1]);
  const auto pass_descriptor = [&] {
    std::array<char, CMSG_SPACE(sizeof(int))> control{};
    char byte = 'x';
    iovec part = {&byte, 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int data = open(places.Data().c_str(), O_RDONLY);
    std::memcpy(CMSG_DATA(header), &data, sizeof data);
    return ErrorOf(sendmsg(near.descriptor(), &message, MSG_NOSIGNAL));
  };

  CHECK(LockedChild(places.Trainer(), pass_descriptor) == EPERM);
  CHECK(InChild(pass_descriptor) == 0);
  CHECK(LockedChild(places.Trainer(),
                    [&] { return ErrorOf(send(near.descriptor(), "y", 1, MSG_NOSIGNAL)); }) == 0);
}

TEST_CASE("Trainer lock: reads its data, writes its state, and nothing else") {
  const Places places;
  const std::string outside = places.State() + "-beside";
  struct Case {
    const char* name;
    std::string path;
    int flags;
    int locked;
  };
  const Case cases[] = {
      {"read data", places.Data(), O_RDONLY, 0},
      {"write data", places.Data(), O_WRONLY, EACCES},
      {"truncate data", places.Data(), O_RDONLY | O_TRUNC, EACCES},
      {"write state", places.InState("a"), O_WRONLY | O_CREAT, 0},
      {"create beside", outside, O_WRONLY | O_CREAT, EACCES},
      {"read another file", "/etc/hostname", O_RDONLY, EACCES},
      {"list the root", "/", O_RDONLY | O_DIRECTORY, EACCES},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(LockedChild(places.Trainer(), [&] { return OpenError(c.path, c.flags); }) == c.locked);
    CHECK(InChild([&] { return OpenError(c.path, c.flags); }) == 0);
    REQUIRE(WriteFileDurably(places.Data(), AsBytes("a,b\n1,2\n"), 0644).ok());
  }
  CHECK(RemoveFile(outside).ok());
}

TEST_CASE("Agent lock: the data file cannot be opened, as root and through any name") {
  const Places places;
  const std::string link = places.InState("link");
  REQUIRE(symlink(places.Data().c_str(), link.c_str()) == 0);

  for (const std::string& path : {places.Data(), link}) {
    CAPTURE(path);
    CHECK(LockedChild(places.Agent(), [&] { return OpenError(path, O_RDONLY); }) == EACCES);
    CHECK(InChild([&] { return OpenError(path, O_RDONLY); }) == 0);
  }
  const auto hard_link = [&] {
    return ErrorOf(::link(places.Data().c_str(), places.InState("hard").c_str()));
  };
  const int refused = LockedChild(places.Agent(), hard_link);
  CHECK((refused == EXDEV || refused == EACCES));
  CHECK(InChild(hard_link) == 0);
  CHECK(LockedChild(places.Agent(),
                    [&] { return OpenError(places.InState("b"), O_WRONLY | O_CREAT); }) == 0);
}

TEST_CASE("Agent lock: the network stays") {
  const Places places;
  Listener listener;

  CHECK(LockedChild(places.Agent(), [&] { return listener.ConnectError(); }) == 0);
}

TEST_CASE("Both locks: no program starts, no other process is traced or signalled") {
  const Places places;
  const auto start_program = [] {
    std::array<char*, 1> none = {nullptr};
    return ErrorOf(execve("/bin/true", none.data(), none.data()));  // exit status 0 if it starts
  };
  const pid_t other = fork();
  if (other == 0) {
    pause();
    _exit(0);
  }
  const auto trace = [&] {
    const int error = ErrorOf(ptrace(PTRACE_SEIZE, other, nullptr, nullptr));
    return error != 0 ? error : ErrorOf(ptrace(PTRACE_DETACH, other, nullptr, nullptr));
  };
  const auto signal = [&] { return ErrorOf(kill(other, 0)); };

  for (const Lockdown& lockdown : {places.Trainer(), places.Agent()}) {
    CHECK(LockedChild(lockdown, start_program) == EPERM);
    CHECK(LockedChild(lockdown, trace) == EPERM);
    if (ProbeLandlock() >= 6) {
      CHECK(LockedChild(lockdown, signal) == EPERM);
    }
  }
  CHECK(InChild(start_program) == 0);
  CHECK(InChild(signal) == 0);
  const int unlocked = InChild(trace);
  CHECK((unlocked == 0 || unlocked == ESRCH));  // seized; ESRCH: detaching wants it stopped

  kill(other, SIGKILL);
  CHECK(waitpid(other, nullptr, 0) == other);
}

TEST_CASE("Both locks: a crash leaves no core file") {
  const Places places;
  const auto crash = [&](bool locked) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
      setrlimit(RLIMIT_CORE, &unlimited);
      if (chdir(places.State().c_str()) != 0 || (locked && !Apply(places.Trainer()).ok())) {
        _exit(kCouldNotLock);
      }
      signal(SIGQUIT, SIG_DFL);
      raise(SIGQUIT);
      _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    return WCOREDUMP(status);
  };

  CHECK_FALSE(crash(true));

  if (geteuid() == 0) {
    CHECK(crash(false));
  }
  CHECK(LockedChild(places.Agent(), [] {
          rlimit limit{};
          return getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 1 &&
                 prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
        }) == 1);
}

TEST_CASE("Both locks: threads work") {
  const Places places;
  for (const Lockdown& lockdown : {places.Trainer(), places.Agent()}) {
    CHECK(LockedChild(lockdown, [] {
            int sum = 0;
            std::thread first([&] { sum = 7; });
            first.join();
            return sum;
          }) == 7);
  }
}

TEST_CASE("Apply: the report lists the walls that stand") {
  const Places places;
  const auto count = [](const Lockdown& lockdown) {
    const StatusOr<SandboxReport> report = Apply(lockdown);
    return report.ok() && report->landlock_abi == ProbeLandlock()
               ? static_cast<int>(report->layers.size())
               : kCouldNotLock;
  };

  CHECK(InChild([&] { return count(places.Trainer()); }) == 6);
  CHECK(InChild([&] { return count(places.Agent()); }) == 5);
}

TEST_CASE("Apply: works for a user without privileges, through a user namespace") {
  if (geteuid() != 0) {
    return;  // then every other test here shows it
  }
  const Places places;
  const auto as_nobody = [&](const std::function<int()>& body) {
    return InChild(
        [&] { return BecomeNobody() && Apply(places.Trainer()).ok() ? body() : kCouldNotLock; });
  };

  CHECK(as_nobody([&] { return OpenError(places.Data(), O_RDONLY); }) == 0);
  CHECK(as_nobody([&] { return OpenError(places.InState("n"), O_WRONLY | O_CREAT); }) == 0);
  CHECK(as_nobody([] { return OpenError("/etc/hostname", O_RDONLY); }) == EACCES);
  CHECK(as_nobody([] { return SocketError(AF_INET, SOCK_STREAM); }) == EPERM);
  CHECK(as_nobody([] { return geteuid() == 65534 ? 0 : 1; }) == 0);
}

TEST_CASE("Apply: refuses a process with two threads, and a path that is not there") {
  const Places places;
  const int threads = InChild([&] {
    std::thread waits([] { pause(); });
    const int code = static_cast<int>(Apply(places.Agent()).status().code());
    _exit(code);
    return code;
  });
  const std::array<PathRule, 1> absent = {PathRule{places.InState("absent"), PathAccess::kRead}};
  const int missing =
      InChild([&] { return static_cast<int>(Apply(AgentLockdown(absent)).status().code()); });

  CHECK(threads == static_cast<int>(StatusCode::kFailedPrecondition));
  CHECK(missing == static_cast<int>(StatusCode::kNotFound));
}

TEST_CASE("Canary: finds every way out shut in the lock, and many open outside") {
  const Places places;
  const std::vector<std::string> shut = {"/etc/passwd"};
  const auto count_open = [&] { return static_cast<int>(TrainerCanary(shut).open.size()); };
  const std::vector<std::string> data = {places.Data()};

  CHECK(LockedChild(places.Trainer(), count_open) == 0);
  CHECK(InChild(count_open) > 15);
  CHECK(LockedChild(places.Agent(),
                    [&] { return static_cast<int>(AgentCanary(data).open.size()); }) == 0);
  CHECK(LockedChild(places.Agent(), [&] { return count_open() > 0 ? 1 : 0; }) == 1);
  CHECK(TrainerCanary(shut).tried.size() > 30);
}

TEST_CASE("LayerFromName: reads back every name and nothing else") {
  for (int number = 1; number <= 6; ++number) {
    const auto layer = static_cast<SandboxLayer>(number);
    CHECK(LayerFromName(LayerName(layer)) == layer);
  }
  CHECK_FALSE(LayerFromName("none").has_value());
  CHECK_FALSE(LayerFromName("Landlock").has_value());
}

}  // namespace domicile::site_agent

// A foreign program (docs/formats/trainer-program.md) that does what it should not, with code of
// its own: it shares nothing with site_agent/ or base/.
//
// usage: DOMICILE_TASK=FILE hostile_program MODE... -- PORT FILE...
//
// In round n it behaves as the n-th MODE says, the last one from then on. PORT is of a listener on
// 127.0.0.1, FILE what it may not read. Mode `escape` prints a line `NAME open` or `NAME shut` for
// each way out it tried, and then trains honestly: each value of the delta is 0.5.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Json = nlohmann::ordered_json;

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  float value = 0.5F;
};

std::vector<Tensor> HonestDelta(const Json& task) {
  std::vector<Tensor> tensors;
  for (const Json& entry : task.at("tensors")) {
    tensors.push_back({entry.at("name"), entry.at("shape"), 0.5F});
  }
  return tensors;
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void WriteDelta(const Json& task, const std::vector<Tensor>& tensors) {
  Json header = Json::object();
  std::string data;
  for (const Tensor& tensor : tensors) {
    std::uint64_t size = 1;
    for (const std::uint64_t length : tensor.shape) {
      size *= length;
    }
    const std::uint64_t begin = data.size();
    for (std::uint64_t i = 0; i < size; ++i) {
      char bytes[4];
      std::memcpy(bytes, &tensor.value, 4);
      data.append(bytes, 4);
    }
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string file;
  for (unsigned i = 0; i < 8; ++i) {
    file.push_back(static_cast<char>(text.size() >> (8 * i) & 0xFFU));
  }
  WriteFile(task.at("delta"), file + text + data);
}

void Answer(const Json& task, const Json& answer) { WriteFile(task.at("answer"), answer.dump()); }

void TrainHonestly(const Json& task) {
  WriteDelta(task, HonestDelta(task));
  Answer(task, {{"v", 1}, {"rows", 10}, {"examples", 10}, {"loss_sum_micro", 7}});
}

void Try(const char* name, bool open) { std::printf("%s %s\n", name, open ? "open" : "shut"); }

bool Opens(const std::string& path, int flags) {
  const int file = open(path.c_str(), flags, 0600);
  if (file >= 0) {
    close(file);
  }
  return file >= 0;
}

// So many MiB into one temporary file, which stays.
bool WritesScratch(int mebibytes) {
  const char* const folder = std::getenv("TMPDIR");
  std::ofstream file(std::string(folder == nullptr ? "/tmp" : folder) + "/domicile-scratch",
                     std::ios::binary | std::ios::trunc);
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < mebibytes; ++i) {
    file << block << std::flush;
  }
  return file.good();
}

bool Connects(std::uint16_t port) {
  const int made = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      made >= 0 && connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (made >= 0) {
    close(made);
  }
  return connected;
}

bool SocketOf(int family, int type) {
  const int made = socket(family, type, 0);
  if (made >= 0) {
    close(made);
  }
  return made >= 0;
}

bool Forks() {
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  return child > 0 && waitpid(child, nullptr, 0) == child;
}

bool StartsAnother() {
  // In place of itself would end the test; a thread's exec as well. With fork shut this is shut.
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(9);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

bool Maps(std::size_t bytes) {
  void* const block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block != MAP_FAILED) {
    munmap(block, bytes);
  }
  return block != MAP_FAILED;
}

bool RaisesLimits() {
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  const rlimit more = {limit.rlim_cur, RLIM_INFINITY};
  return limit.rlim_max > 1000 || setrlimit(RLIMIT_NPROC, &more) == 0;
}

// 400 threads at once, where the test allows fewer.
bool ManyThreads() {
  std::vector<std::thread> threads;
  bool all = true;
  int gate[2];
  if (pipe(gate) != 0) {
    return false;
  }
  try {
    for (int i = 0; i < 400; ++i) {
      threads.emplace_back([&gate] {
        char byte = 0;
        (void)!read(gate[0], &byte, 1);
      });
    }
  } catch (const std::exception&) {
    all = false;
  }
  close(gate[1]);
  for (std::thread& thread : threads) {
    thread.join();
  }
  close(gate[0]);
  return all;
}

void Escape(const Json& task, std::uint16_t port, const std::vector<std::string>& forbidden) {
  const std::string delta = task.at("delta");
  const std::string folder = delta.substr(0, delta.rfind('/'));
  Try("read_data", Opens(task.at("data").at(0), O_RDONLY));
  Try("write_data", Opens(task.at("data").at(0), O_RDWR));
  for (const std::string& path : forbidden) {
    Try("read_forbidden", Opens(path, O_RDONLY));
  }
  Try("list_root", Opens("/", O_RDONLY | O_DIRECTORY));
  Try("write_tmp", Opens("/tmp/domicile-hostile-program", O_WRONLY | O_CREAT));
  Try("write_beside", Opens(folder + "/more", O_WRONLY | O_CREAT));
  Try("write_model", Opens(task.at("model"), O_WRONLY));
  Try("rename_delta", rename(delta.c_str(), (delta + ".old").c_str()) == 0 &&
                          rename((delta + ".old").c_str(), delta.c_str()) == 0);
  Try("write_scratch", WritesScratch(1));
  Try("fill_scratch", WritesScratch(200));
  Try("other_process", Opens("/proc/1/status", O_RDONLY));
  Try("socket_unix", SocketOf(AF_UNIX, SOCK_STREAM));
  Try("socket_tcp", SocketOf(AF_INET, SOCK_STREAM));
  Try("socket_udp", SocketOf(AF_INET6, SOCK_DGRAM));
  Try("socket_netlink", SocketOf(AF_NETLINK, SOCK_RAW));
  Try("connect", Connects(port));
  Try("fork", Forks());
  Try("start_program", StartsAnother());
  Try("trace_me", ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0);
  Try("memory", Maps(std::size_t{3} << 30U));
  Try("limits", RaisesLimits());
  Try("threads", ManyThreads());
}

// Every process it can start, each in the same way.
void ForkBomb() {
  while (true) {
    if (fork() < 0 && errno != EAGAIN) {
      return;
    }
  }
}

// A child that goes on after its parent has answered.
void Outlive(const Json& task) {
  TrainHonestly(task);
  if (fork() == 0) {
    setsid();
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    close(3);
    while (true) {
      pause();
    }
  }
}

void Flood() {
  const std::string line(60000, 'x');
  for (int i = 0; i < 2000; ++i) {
    (void)!write(STDOUT_FILENO, line.data(), line.size());
    (void)!write(STDERR_FILENO, line.data(), line.size());
    (void)!write(3, "101\n-3\n5000000000\nsecret\n", 25);
    (void)!write(3, line.data(), line.size());
  }
}

void OddTensors(const std::string& mode, const Json& task) {
  std::vector<Tensor> delta = HonestDelta(task);
  Json answer = {{"v", 1}, {"rows", 10}, {"examples", 10}};
  if (mode == "extra_tensor") {
    delta.push_back({"patient.4711.is.ill", {1}, 1.0F});
  } else if (mode == "other_name") {
    delta[0].name = "weighs";
  } else if (mode == "other_shape") {
    delta[0].shape.push_back(2);
  } else if (mode == "not_finite") {
    delta[0].value = std::numeric_limits<float>::quiet_NaN();
  } else if (mode == "many_rows") {
    answer["rows"] = 1'000'000;
  } else if (mode == "no_rows") {
    answer["rows"] = 0;
  } else if (mode == "more_keys") {
    answer["note"] = "a patient is ill";
  } else if (mode == "text_in_number") {
    answer["rows"] = "10; a patient is ill";
  }
  WriteDelta(task, delta);
  Answer(task, answer);
}

void WriteMuch(const Json& task) {
  std::signal(SIGXFSZ, SIG_IGN);
  TrainHonestly(task);
  std::ofstream file(task.at("delta").get<std::string>(), std::ios::binary | std::ios::app);
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 64 && file << block << std::flush; ++i) {
  }
}

int Behave(const std::string& mode, const Json& task, std::uint16_t port,
           const std::vector<std::string>& forbidden) {
  if (mode == "honest") {
    TrainHonestly(task);
  } else if (mode == "escape") {
    Escape(task, port, forbidden);
    TrainHonestly(task);
  } else if (mode == "remember") {
    // What a run before this one left.
    Try("scratch", Opens(std::string(std::getenv("TMPDIR")) + "/domicile-scratch", O_RDONLY));
    WritesScratch(1);
    TrainHonestly(task);
  } else if (mode == "fork_bomb") {
    ForkBomb();
    TrainHonestly(task);
  } else if (mode == "outlive") {
    Outlive(task);
  } else if (mode == "hang") {
    (void)!write(3, "30\n", 3);
    while (true) {
      pause();
    }
  } else if (mode == "die") {
    std::raise(SIGSEGV);
  } else if (mode == "fail") {
    return 3;
  } else if (mode == "silent") {
    return 0;
  } else if (mode == "flood") {
    Flood();
    TrainHonestly(task);
  } else if (mode == "much") {
    WriteMuch(task);
  } else if (mode == "garbage") {
    WriteFile(task.at("delta"), std::string(100, '\xFF'));
    Answer(task, {{"v", 1}, {"rows", 10}, {"examples", 10}});
  } else {
    OddTensors(mode, task);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const file = std::getenv("DOMICILE_TASK");
  std::vector<std::string> modes;
  int at = 1;
  for (; at < argc && std::strcmp(argv[at], "--") != 0; ++at) {
    modes.emplace_back(argv[at]);
  }
  if (file == nullptr || modes.empty() || at + 1 >= argc) {
    std::fprintf(stderr, "usage: DOMICILE_TASK=FILE hostile_program MODE... -- PORT FILE...\n");
    return 2;
  }
  std::ifstream stream(file);
  const Json task = Json::parse(stream);
  const std::vector<std::string> forbidden(argv + at + 2, argv + argc);
  const std::size_t round = task.at("round");
  const std::string mode = modes[std::min(round, modes.size()) - 1];
  const int code =
      Behave(mode, task, static_cast<std::uint16_t>(std::atoi(argv[at + 1])), forbidden);
  std::fflush(stdout);
  return code;
}

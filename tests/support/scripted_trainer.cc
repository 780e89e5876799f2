// A foreign trainer: speaks docs/formats/trainer-socket.md with code of its own, shares nothing
// with site_agent/ or base/, and answers each task as a script says. It verifies no grant and
// stands behind no wall, which is why it lives under tests/.
//
// usage: scripted_trainer SOCKET SCRIPT.json
//
// {"trainer": HEX, "datasets": [{"alias": "raw", "commitment": HEX}], "sandbox": [],
// "landlock_abi": 0,
//  "log": FILE?,                              one line of JSON per task, before it is answered
//  "tasks": [{"round": 1, "phase": "train",   the first entry that fits; without `round`: any round
//             "hold": FIFO?,                  opened for reading first: waits for a writer
//             "fail": REASON?,                answers failed
//             "rows": 40, "examples": 40?, "loss_sum_micro": 1?,
//             "weights": {NAME: VALUES}?,     sends VALUES - received
//             "delta": {NAME: VALUES}?,       sends VALUES
//             "arrays": [["count", [1, 2]]]?, "records_apart": 3?,
//             "extra": {KEY: VALUE}?,         put into the answer as it is
//             "metadata": {KEY: TEXT}?}]}     put into the header of the delta's file
//
// VALUES: {"shape": [2], "values": [0.5, "nan"]}, or {"shape": [4], "file": F32_LITTLE_ENDIAN}.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using nlohmann::ordered_json;
using Json = nlohmann::json;
using Floats = std::vector<float>;

struct Frame {
  Json json;
  std::string payload;
};

// All of `size`, or false at the end of the connection.
bool ReadAll(int socket, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = read(socket, to, size);
    if (got <= 0) {
      return false;
    }
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool WriteAll(int socket, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = send(socket, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    done += static_cast<std::size_t>(sent);
  }
  return true;
}

std::uint64_t LittleEndian(const char* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i > 0; --i) {
    value = value << 8U | static_cast<unsigned char>(at[i - 1]);
  }
  return value;
}

void AppendLittleEndian(std::string& out, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    out.push_back(static_cast<char>(value >> (8 * i) & 0xFFU));
  }
}

bool ReadFrame(int socket, Frame& frame) {
  char header[12];
  if (!ReadAll(socket, header, sizeof header)) {
    return false;
  }
  std::string text(LittleEndian(header, 4), '\0');
  frame.payload.assign(LittleEndian(header + 4, 8), '\0');
  if (!ReadAll(socket, text.data(), text.size()) ||
      !ReadAll(socket, frame.payload.data(), frame.payload.size())) {
    return false;
  }
  frame.json = Json::parse(text);
  return true;
}

bool WriteFrame(int socket, const Json& json, const std::string& payload = {}) {
  const std::string text = json.dump();
  std::string frame;
  AppendLittleEndian(frame, text.size(), 4);
  AppendLittleEndian(frame, payload.size(), 8);
  return WriteAll(socket, frame + text + payload);
}

Floats FromBytes(const std::string& bytes) {
  Floats values(bytes.size() / 4);
  std::memcpy(values.data(), bytes.data(), values.size() * 4);
  return values;
}

Floats ValuesOf(const Json& json) {
  if (json.contains("file")) {
    std::ifstream file(json.at("file").get<std::string>(), std::ios::binary);
    return FromBytes({std::istreambuf_iterator<char>(file), {}});
  }
  Floats values;
  for (const Json& value : json.at("values")) {
    // JSON has no NaN and no infinity: "nan", "inf".
    values.push_back(value.is_string() ? std::strtof(value.get<std::string>().c_str(), nullptr)
                                       : value.get<float>());
  }
  return values;
}

std::map<std::string, Floats> ReadSafetensors(const std::string& file) {
  const std::uint64_t header_bytes = LittleEndian(file.data(), 8);
  const Json header = Json::parse(file.substr(8, header_bytes));
  std::map<std::string, Floats> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__" && entry.at("dtype") == "F32") {
      const std::uint64_t begin = entry.at("data_offsets").at(0);
      const std::uint64_t end = entry.at("data_offsets").at(1);
      tensors[name] = FromBytes(file.substr(8 + header_bytes + begin, end - begin));
    }
  }
  return tensors;
}

// The delta of a task, as a safetensors file, tensors in the order of the script.
std::string DeltaFile(const ordered_json& task, const std::string& model) {
  const bool whole = task.contains("weights");
  const std::map<std::string, Floats> received =
      whole ? ReadSafetensors(model) : std::map<std::string, Floats>();
  ordered_json header = ordered_json::object();
  if (task.contains("metadata")) {
    header["__metadata__"] = task.at("metadata");
  }
  std::string data;
  for (const auto& [name, tensor] : task.at(whole ? "weights" : "delta").items()) {
    Floats values = ValuesOf(Json(tensor));
    for (std::size_t i = 0; whole && i < values.size(); ++i) {
      values[i] -= received.at(name).at(i);
    }
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    header[name] = {
        {"dtype", "F32"}, {"shape", tensor.at("shape")}, {"data_offsets", {begin, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string file;
  AppendLittleEndian(file, text.size(), 8);
  return file + text + data;
}

bool Answer(int socket, const ordered_json& task, const Frame& frame) {
  if (task.contains("hold")) {
    close(open(task.at("hold").get<std::string>().c_str(), O_RDONLY));
  }
  const Json extra = task.contains("extra") ? Json(task.at("extra")) : Json::object();
  if (task.contains("fail")) {
    Json failed = {{"type", "failed"},
                   {"reason", task.at("fail").get<int>()},
                   {"rows_read", 0},
                   {"rows_refused", 0}};
    failed.update(extra);
    return WriteFrame(socket, failed);
  }
  Json result = {
      {"type", "result"}, {"phase", frame.json.at("phase")}, {"rows", Json(task.at("rows"))}};
  result.update(extra);
  if (frame.json.at("phase") == "train") {
    result["examples"] = task.contains("examples") ? Json(task.at("examples")) : result["rows"];
    if (task.contains("loss_sum_micro")) {
      result["loss_sum_micro"] = Json(task.at("loss_sum_micro"));
    }
    return WriteFrame(socket, result, DeltaFile(task, frame.payload));
  }
  std::string payload;
  result["arrays"] = Json::array();
  for (const auto& array : task.at("arrays")) {
    result["arrays"].push_back({Json(array.at(0)), array.at(1).size()});
    for (const auto& value : array.at(1)) {
      AppendLittleEndian(payload, static_cast<std::uint64_t>(value.get<std::int64_t>()), 8);
    }
  }
  if (task.contains("records_apart")) {
    result["records_apart"] = Json(task.at("records_apart"));
  }
  return WriteFrame(socket, result, payload);
}

const ordered_json* FindTask(const ordered_json& script, const Json& wanted) {
  for (const ordered_json& task : script.at("tasks")) {
    if (task.at("phase").get<std::string>() == wanted.at("phase") &&
        (!task.contains("round") || task.at("round").get<int>() == wanted.at("round"))) {
      return &task;
    }
  }
  return nullptr;
}

void ServeConnection(int socket, const ordered_json& script) {
  Json hello = {{"type", "hello"}, {"versions", {1}}, {"canary", 0}};
  for (const char* key : {"trainer", "datasets", "sandbox", "landlock_abi"}) {
    hello[key] = Json(script.at(key));
  }
  bool open = WriteFrame(socket, hello);
  Frame frame;
  while (open && ReadFrame(socket, frame)) {
    if (frame.json.at("type") != "task") {
      continue;  // cancel: it crossed with the answer
    }
    if (script.contains("log")) {
      std::ofstream log(script.at("log").get<std::string>(), std::ios::app);
      log << Json({{"job", frame.json.at("job")},
                   {"round", frame.json.at("round")},
                   {"phase", frame.json.at("phase")},
                   {"model", frame.json.at("model")}})
                 .dump()
          << '\n';
    }
    const ordered_json* task = FindTask(script, frame.json);
    constexpr int kTrainerFailed = 89;
    open = task != nullptr ? Answer(socket, *task, frame)
                           : WriteFrame(socket, {{"type", "failed"},
                                                 {"reason", kTrainerFailed},
                                                 {"rows_read", 0},
                                                 {"rows_refused", 0}});
  }
  close(socket);
}

int Serve(const char* path, const char* script_file) {
  std::ifstream file(script_file);
  const ordered_json script = ordered_json::parse(file);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof address.sun_path) {
    throw std::runtime_error("the socket's path is too long");
  }
  std::strcpy(address.sun_path, path);
  unlink(path);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 ||
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 8) != 0) {
    throw std::runtime_error("cannot listen");
  }
  std::printf("ready: unix:%s\n", path);
  std::fflush(stdout);
  while (true) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      throw std::runtime_error("cannot accept");
    }
    ServeConnection(socket, script);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: scripted_trainer SOCKET SCRIPT.json\n");
    return 2;
  }
  try {
    return Serve(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scripted_trainer: %s\n", error.what());
    return 3;
  }
}

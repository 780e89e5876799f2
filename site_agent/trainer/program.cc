#include "site_agent/trainer/program.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/json.h"
#include "crypto/sha256.h"
#include "crypto/tree_digest.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20U;
constexpr std::size_t kMaxFiles = 1000;
constexpr std::int64_t kLargestSize = std::int64_t{1} << 46U;
constexpr std::int64_t kLongestSeconds = 31 * 86400;

// Below the folder of the configuration file, by a path without detours.
bool IsPlainRelative(const std::string& name) {
  const std::filesystem::path path(name);
  return !name.empty() && path.is_relative() && path.lexically_normal() == path &&
         *path.begin() != ".." && *path.begin() != "." && path.has_filename();
}

bool IsAssignment(const std::string& text) {
  const std::size_t at = text.find('=');
  return at != std::string::npos && at > 0 && text.find('\0') == std::string::npos;
}

void ReadProgramLimits(TomlTable table, ProgramConfig& config) {
  constexpr std::int64_t kLeastMemory = std::int64_t{16} << 20U;
  ProgramLimits& limits = config.limits;
  if (const auto bytes = table.TryInt("memory_bytes", kLeastMemory, kLargestSize)) {
    limits.memory_bytes = static_cast<std::uint64_t>(*bytes);
  }
  limits.tasks = static_cast<std::uint32_t>(table.TryInt("tasks", 1, 100'000).value_or(512));
  limits.processes = table.TryBool("processes").value_or(false);
  config.wall_seconds =
      static_cast<std::uint32_t>(table.TryInt("wall_seconds", 1, kLongestSeconds).value_or(86400));
  limits.cpu_seconds =
      static_cast<std::uint32_t>(table.TryInt("cpu_seconds", 0, kLongestSeconds).value_or(0));
  if (const auto bytes = table.TryInt("output_bytes", 0, kLargestSize)) {
    config.output_bytes = static_cast<std::uint64_t>(*bytes);
  }
  if (const auto bytes = table.TryInt("scratch_bytes", 0, kLargestSize)) {
    config.scratch_bytes = static_cast<std::uint64_t>(*bytes);
  }
}

// Copies one of `files` to where the program will run; the digest of what was copied.
StatusOr<Digest> CopyFile(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(from, kMaxFileBytes));
  RETURN_IF_ERROR(CreateFolders(std::filesystem::path(to).parent_path().string()));
  RETURN_IF_ERROR(WriteFileDurably(to, AsBytes(bytes), 0700));
  return crypto::Sha256(AsBytes(bytes));
}

Status BeginFolder(const ProgramFolder& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder.Code(), error);
  std::filesystem::remove_all(folder.Input(), error);
  RETURN_IF_ERROR(CreateFolders(folder.Code()));
  RETURN_IF_ERROR(CreateFolders(folder.Input()));
  RETURN_IF_ERROR(CreateFolders(folder.Scratch()));
  // Kept for the life of the trainer: the right to write them is bound to these very files.
  for (const std::string& path : {folder.Delta(), folder.Answer()}) {
    RETURN_IF_ERROR(WriteFileDurably(path, {}, 0600));
  }
  return OkStatus();
}

StatusOr<FileHandle> OpenExecutable(const std::string& path) {
  FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.IsOpen()) {
    return ErrnoError(errno, "opening `" + path + "`, which `program.command` begins with");
  }
  std::array<char, 4> magic{};
  if (pread(file.descriptor(), magic.data(), magic.size(), 0) != 4 ||
      std::string_view(magic.data(), magic.size()) !=
          "\x7f"
          "ELF") {
    return Error(StatusCode::kInvalidArgument,
                 "`" + path +
                     "`, which `program.command` begins with, is no ELF program: name the "
                     "interpreter itself, and the script as its first argument");
  }
  return file;
}

std::string DigestText(const ProgramConfig& config, const Digest& executable,
                       const std::vector<Digest>& files, const Digest& trainer) {
  const auto strings = [](const std::vector<std::string>& from) {
    return JsonArray(from.begin(), from.end());
  };
  JsonArray listed;
  for (std::size_t i = 0; i < files.size(); ++i) {
    listed.emplace_back(JsonObject{{"name", config.files[i]}, {"sha256", PrintHex(files[i])}});
  }
  return PrintJson(JsonObject{{"command", strings(config.command)},
                              {"environment", strings(config.environment)},
                              {"executable", PrintHex(executable)},
                              {"files", std::move(listed)},
                              {"kind", "domicile.trainer-program"},
                              {"libraries", strings(config.libraries)},
                              {"trainer", PrintHex(trainer)},
                              {"v", 1}});
}

ProgramSpec SpecOf(const ProgramConfig& config, const ProgramFolder& folder,
                   const std::string& executable,
                   const std::vector<contracts::DatasetDescription>& descriptions) {
  ProgramSpec spec;
  spec.command = config.command;
  spec.environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "HOME=" + folder.Code(),
                      "PYTHONDONTWRITEBYTECODE=1", "DOMICILE_TASK=" + folder.Task()};
  spec.environment.insert(spec.environment.end(), config.environment.begin(),
                          config.environment.end());
  spec.working_folder = folder.Code();
  spec.scratch_folder = folder.Scratch();
  spec.scratch_bytes = config.scratch_bytes;
  spec.paths = ProgramSystemPaths();
  spec.paths.push_back({executable, PathAccess::kExecute, true});
  spec.paths.push_back({folder.Code(), PathAccess::kRead, true});
  spec.paths.push_back({folder.Input(), PathAccess::kRead, true});
  spec.paths.push_back({folder.Delta(), PathAccess::kWrite, true});
  spec.paths.push_back({folder.Answer(), PathAccess::kWrite, true});
  if (config.scratch_bytes > 0) {
    spec.environment.push_back("TMPDIR=" + folder.Scratch());
    spec.paths.push_back({folder.Scratch(), PathAccess::kWrite, true});
  }
  for (const std::string& library : config.libraries) {
    spec.paths.push_back({library, PathAccess::kRead, true});
  }
  for (const contracts::DatasetDescription& description : descriptions) {
    std::vector<PathRule>& rules = spec.datasets.emplace_back();
    for (const std::string& path : contracts::DataPaths(description)) {
      rules.push_back({path, PathAccess::kRead, true});
    }
  }
  spec.limits = config.limits;
  spec.wall_seconds = config.wall_seconds;
  spec.log_file = folder.Log();
  spec.log_bytes = config.output_bytes;
  return spec;
}

}  // namespace

ProgramFolder::ProgramFolder(const std::string& state)
    : root_(std::filesystem::absolute(JoinPath(state, "program")).lexically_normal().string()) {}

ProgramConfig ReadProgram(TomlTable table, std::string_view file) {
  ProgramConfig config;
  config.folder = ResolveBeside(file, ".");
  config.command = table.Strings("command");
  config.files = table.TryStrings("files").value_or(std::vector<std::string>{});
  config.environment = table.TryStrings("environment").value_or(std::vector<std::string>{});
  for (const std::string& path :
       table.TryStrings("libraries").value_or(std::vector<std::string>{})) {
    config.libraries.push_back(ResolveBeside(file, path));
  }
  if (config.files.size() > kMaxFiles) {
    table.Fail("files", "has more than " + std::to_string(kMaxFiles) +
                            " names; put what does not change into `libraries`");
  }
  for (std::size_t i = 0; i < config.files.size(); ++i) {
    if (!IsPlainRelative(config.files[i])) {
      table.FailItem("files", i, "must be a file below the folder of this file, as `lib/model.py`");
    }
    if (std::count(config.files.begin(), config.files.end(), config.files[i]) > 1) {
      table.FailItem("files", i, "is named twice");
    }
  }
  for (std::size_t i = 0; i < config.environment.size(); ++i) {
    if (!IsAssignment(config.environment[i])) {
      table.FailItem("environment", i, "must be NAME=value");
    }
  }
  const bool starts_file =
      !config.command.empty() && std::find(config.files.begin(), config.files.end(),
                                           config.command.front()) != config.files.end();
  if (config.command.empty() || (!starts_file && !config.command.front().starts_with('/'))) {
    table.Fail("command", "must begin with a program by its absolute path, or one of `files`");
  }
  if (auto limits = table.TryTable("limits")) {
    ReadProgramLimits(*std::move(limits), config);
  }
  return config;
}

StatusOr<PreparedProgram> PrepareProgram(
    const ProgramConfig& config, const ProgramFolder& folder, const Digest& trainer,
    const std::vector<contracts::DatasetDescription>& descriptions) {
  RETURN_IF_ERROR(BeginFolder(folder));
  std::vector<Digest> files;
  for (const std::string& name : config.files) {
    ASSIGN_OR_RETURN(Digest digest,
                     CopyFile(JoinPath(config.folder, name), JoinPath(folder.Code(), name)));
    files.push_back(digest);
  }
  PreparedProgram prepared;
  const std::string executable = JoinPath(folder.Code(), config.command.front());
  ASSIGN_OR_RETURN(prepared.executable, OpenExecutable(executable));
  // By descriptor: another file of that name, put there later, is not what will run.
  ASSIGN_OR_RETURN(
      const crypto::FileDigest hashed,
      crypto::FileSha256("/proc/self/fd/" + std::to_string(prepared.executable.descriptor())));
  prepared.digest = crypto::Sha256(AsBytes(DigestText(config, hashed.digest, files, trainer)));
  prepared.spec = SpecOf(config, folder, executable, descriptions);
  return prepared;
}

}  // namespace domicile::site_agent

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "site_agent/trainer/config.h"
#include "site_agent/trainer/program.h"
#include "tests/support/example_approval.h"

namespace domicile::site_agent {
namespace {

std::string Trainer() {
  return "[trainer]\nfederation = \"example.org\"\nsite = \"here\"\nstate = \"state\"\n"
         "socket = \"t.sock\"\ndatasets = [\"dataset.toml\"]\napprovals = 1\n"
         "[[approver]]\nrole = \"operator\"\norganisation = \"office\"\nkey = \"" +
         test::ExamplePerson("example.org/site/dpo", 1).Verifier().Print() + "\"\n";
}

// Folders of a site; removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/domicile-program-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::system(("rm -rf '" + path_ + "'").c_str()); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string In(std::string_view name) const { return JoinPath(path_, name); }

 private:
  std::string path_;
};

ProgramConfig TrueProgram(const Folder& folder) {
  ProgramConfig config;
  config.folder = folder.In("");
  config.command = {"/bin/true", "train.py"};
  config.files = {"train.py"};
  return config;
}

Digest DigestOf(const ProgramConfig& config, const Folder& folder, unsigned char trainer = 1) {
  Digest own;
  own.bytes.fill(trainer);
  StatusOr<PreparedProgram> prepared =
      PrepareProgram(config, ProgramFolder(folder.In("state")), own, {});
  REQUIRE_MESSAGE(prepared.ok(), Message(prepared.status()));
  return prepared->digest;
}

}  // namespace

TEST_CASE("Program configuration: every key, and the defaults of limits") {
  const std::string table = R"([program]
command = ["/usr/bin/python3", "train.py"]
files = ["train.py", "lib/model.py"]
libraries = ["venv", "/opt/lib"]
environment = ["OMP_NUM_THREADS=2"]
)";

  const auto config = ParseTrainerConfig(Trainer() + table, "/etc/domicile/trainer.toml");
  const auto limited = ParseTrainerConfig(Trainer() + table + R"([program.limits]
memory_bytes = 33554432
tasks = 7
processes = true
wall_seconds = 60
cpu_seconds = 50
output_bytes = 5
scratch_bytes = 0
[limits]
model_bytes = 4096
)",
                                          "/etc/domicile/trainer.toml");

  REQUIRE_MESSAGE(config.ok(), Message(config.status()));
  REQUIRE_MESSAGE(limited.ok(), Message(limited.status()));
  REQUIRE(config->program.has_value());
  CHECK(config->program->libraries == std::vector<std::string>{"/etc/domicile/venv", "/opt/lib"});
  CHECK(config->program->files.size() == 2);
  CHECK(config->program->limits == ProgramLimits{});
  CHECK(config->program->wall_seconds == 86400);
  CHECK(limited->program->limits == ProgramLimits{std::uint64_t{1} << 25U, 4096, 7, true, 50});
  CHECK(limited->program->output_bytes == 5);
  CHECK(config->program->scratch_bytes == std::uint64_t{64} << 20U);
  CHECK(limited->program->scratch_bytes == 0);
  CHECK_FALSE(ParseTrainerConfig(Trainer(), "trainer.toml")->program.has_value());
}

TEST_CASE("Program digest: follows what runs, and nothing else") {
  const Folder folder;
  REQUIRE(CreateFolders(folder.In("state")).ok());
  REQUIRE(WriteFileDurably(folder.In("train.py"), AsBytes("one")).ok());
  const ProgramConfig config = TrueProgram(folder);
  const Digest first = DigestOf(config, folder);

  CHECK(DigestOf(config, folder) == first);
  ProgramConfig roomier = config;
  roomier.limits.tasks = 9;
  CHECK(DigestOf(roomier, folder) == first);

  CHECK(DigestOf(config, folder, 2) != first);
  for (const auto& change : std::vector<std::function<void(ProgramConfig&)>>{
           [](ProgramConfig& c) { c.command.emplace_back("--more"); },
           [](ProgramConfig& c) { c.command[0] = "/bin/false"; },
           [](ProgramConfig& c) { c.environment.emplace_back("A=1"); },
           [](ProgramConfig& c) { c.libraries.emplace_back("/opt"); },
           [](ProgramConfig& c) { c.files.clear(); }}) {
    ProgramConfig changed = config;
    change(changed);
    CHECK(DigestOf(changed, folder) != first);
  }
  REQUIRE(WriteFileDurably(folder.In("train.py"), AsBytes("two")).ok());
  CHECK(DigestOf(config, folder) != first);
}

}  // namespace domicile::site_agent

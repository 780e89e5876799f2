// Sites whose own trainer is the NumPy example of python/, on the tables of three hospitals.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "tests/cases/real_sites.h"
#include "tests/support/run_command.h"

namespace domicile::test {
namespace {

std::string Python() {
  const char* const named = std::getenv("DOMICILE_NUMPY_PYTHON");
  return named != nullptr ? named : "/usr/bin/python3";
}

// The folders that the interpreter reads; none if it has no NumPy.
std::set<std::string> Libraries() {
  const auto asked = RunCommand(
      {Python(), "-c",
       "import numpy, sysconfig; print(*sysconfig.get_paths().values(), numpy.__path__[0],"
       " sep=chr(10))"});
  std::set<std::string> folders;
  std::istringstream lines(asked.ok() && asked->code == 0 ? asked->out : "");
  for (std::string line; std::getline(lines, line);) {
    if (std::filesystem::is_directory(line)) {
      folders.insert(line);
    }
  }
  return folders;
}

std::string SourceFile(const std::string& name) {
  return Must(ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/" + name, 1 << 20));
}

CaseSite PythonSite(const std::string& name, const std::string& jurisdiction,
                    const std::string& hospital, const std::set<std::string>& libraries) {
  CaseSite site =
      TableSite(name, jurisdiction, SourceFile("deploy/examples/heart/data/" + hospital + ".csv"));
  std::string files;
  for (const char* file : {"__init__.py", "model_file.py", "program.py"}) {
    const std::string path = std::string("domicile_trainer/") + file;
    site.data[path] = SourceFile("python/" + path);
    files += ", \"" + path + "\"";
  }
  for (const char* file : {"numpy_logistic.py", "heart_table.py"}) {
    site.data[file] = SourceFile(std::string("python/examples/") + file);
  }
  std::string folders;
  for (const std::string& folder : libraries) {
    folders += (folders.empty() ? "\"" : ", \"") + folder + "\"";
  }
  site.tables = "[program]\ncommand = [\"" + Python() +
                "\", \"numpy_logistic.py\"]\nfiles = [\"numpy_logistic.py\", \"heart_table.py\"" +
                files + "]\nlibraries = [" + folders +
                "]\n[program.limits]\nmemory_bytes = 68719476736\n";
  return site;
}

}  // namespace

TEST_CASE("Own program: three hospitals train with the NumPy example, and their model learns") {
  const std::set<std::string> libraries = Libraries();
  if (libraries.empty()) {
    std::puts("skipped: numpy is not installed");
    return;
  }
  auto federation =
      Must(CaseFederation::Start({PythonSite("alpha", "DE", "cleveland", libraries),
                                  PythonSite("bravo", "FR", "budapest", libraries),
                                  PythonSite("charlie", "NL", "long-beach", libraries)}));
  std::string job = JobFile({.numbers = 10, .rounds = 3});
  const std::string name = "name = \"w\"";
  REQUIRE(job.find(name) != std::string::npos);
  job.replace(job.find(name), name.size(), "name = \"weight\"");
  job.insert(job.find("[training]"), "[[model.tensor]]\nname = \"bias\"\nshape = [1]\n");
  const JobId submitted = Must(federation->Submit(job));
  Must(federation->Approve(submitted));

  const auto ended = Must(federation->WaitForEnd(submitted));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ended.metrics_size() == 3);
  CHECK(ended.metrics(0).contributors() == 3);
  const double first = std::stod(ended.metrics(0).loss());
  CHECK(first == doctest::Approx(std::log(2)).epsilon(1e-6));  // of a model of zeros
  CHECK(std::stod(ended.metrics(2).loss()) < 0.9 * first);
  federation->Stop();
  Must(federation->AuditLogs());
}

}  // namespace domicile::test

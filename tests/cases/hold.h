// A pipe that a scripted trainer reads before it answers: it waits until the test lets go.
#pragma once

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace domicile::test {

// Declare it before the federation whose trainer reads it. One thread at a time.
class Hold {
 public:
  Hold() {
    REQUIRE(mkdtemp(folder_.data()) != nullptr);
    REQUIRE(mkfifo(Path().c_str(), 0600) == 0);
  }
  ~Hold() {
    writer_ = FileHandle();
    RemoveFile(Path()).IgnoreError();
    rmdir(folder_.c_str());
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  std::string Path() const { return folder_ + "/hold"; }
  // The entry of a task in a script.
  std::string Entry() const { return R"("hold":")" + Path() + R"(",)"; }
  // Whoever waits goes on, and nobody waits from now on.
  void Release() {
    // Opened for both, which never waits for the other end.
    writer_ = FileHandle(open(Path().c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(writer_.IsOpen());
  }

 private:
  std::string folder_ = "/tmp/domicile-hold-XXXXXX";
  FileHandle writer_;
};

}  // namespace domicile::test

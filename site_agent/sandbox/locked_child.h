// Tests only: runs code in a child process, so that walls put up there do not stand in the tests.
#pragma once

#include <functional>

#include <grp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace domicile::site_agent {

// The exit status of `body` run in a child; -1 if the child was killed by a signal. `body` returns
// 0 .. 200.
inline int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
    return -1;
  }
  return WEXITSTATUS(status);
}

// Becomes the user `nobody`, as if started by it: a change of user makes /proc/self root's, which a
// program start would undo. False if this is not root.
inline bool BecomeNobody() {
  constexpr unsigned kNobody = 65534;
  return setgroups(0, nullptr) == 0 && setresgid(kNobody, kNobody, kNobody) == 0 &&
         setresuid(kNobody, kNobody, kNobody) == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

}  // namespace domicile::site_agent

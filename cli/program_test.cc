#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/testing_outcome.h"

namespace domicile::cli {
namespace {

TEST_CASE("domicile: asking for help or the version is done, and goes to the output") {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"--help"}, {"--version"}, {"ca", "--help"}, {"ca", "issue", "--help"}}) {
    CAPTURE(args.front());
    const Outcome outcome = RunWith(args);
    CHECK(outcome.exit == 0);
    CHECK_FALSE(outcome.out.empty());
    CHECK(outcome.err.empty());
  }
  CHECK(RunWith({"--version"}).out.starts_with("domicile "));
}

TEST_CASE("domicile: the help of each command has an example of it") {
  for (const char* const name : {"init", "issue", "revoke", "roster", "approver"}) {
    CAPTURE(name);
    const Outcome help = RunWith({"ca", name, "--help"});
    CHECK(help.out.find("Example:\n  domicile ca " + std::string(name)) != std::string::npos);
  }
}

TEST_CASE("domicile: wrong use is exit code 2, and goes to the error output") {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"ca"},
      {"unknown"},
      {"ca", "init"},
      {"ca", "init", "--federation"},
      {"--unknown"},
      {"ca", "init", "--federation", "f", "--dir", "d", "--valid-days", "0"},
      {"ca", "init", "--federation", "f", "--dir", "d", "--valid-days", "x"}};
  for (const std::vector<std::string>& args : cases) {
    const Outcome outcome = RunWith(args);
    CAPTURE(outcome.err);
    CHECK(outcome.exit == 2);
    CHECK(outcome.out.empty());
    CHECK_FALSE(outcome.err.empty());
  }
}

TEST_CASE("domicile: a wrong word is named, with the nearest command or all of them") {
  const struct {
    std::vector<std::string> args;
    std::vector<std::string> said;
  } cases[] = {
      {{"audt", "verify", "log.db"},
       {"`audt` is no command of `domicile`", "did you mean `audit`?"}},
      {{"audit", "verfy", "log.db"}, {"`verfy` is no command of `domicile audit`", "`verify`?"}},
      {{"nonsense"}, {"`nonsense` is no command of `domicile`; it has ", "audit, ", "policy"}},
      {{"job", "x\n"}, {"`x\\x0a` is no command of `domicile job`"}},
  };
  for (const auto& c : cases) {
    const Outcome outcome = RunWith(c.args);
    CAPTURE(outcome.err);
    CHECK(outcome.exit == 2);
    CHECK(outcome.out.empty());
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);  // one sentence
    for (const std::string& words : c.said) {
      CHECK(outcome.err.find(words) != std::string::npos);
    }
  }
}

TEST_CASE("ExitOf: bad input is 2, what could not be done is 3") {
  const struct {
    StatusCode code;
    Exit exit;
  } cases[] = {{StatusCode::kInvalidArgument, Exit::kWrongUse},
               {StatusCode::kAlreadyExists, Exit::kWrongUse},
               {StatusCode::kOutOfRange, Exit::kWrongUse},
               {StatusCode::kNotFound, Exit::kCouldNot},
               {StatusCode::kPermissionDenied, Exit::kCouldNot},
               {StatusCode::kUnauthenticated, Exit::kCouldNot},
               {StatusCode::kUnavailable, Exit::kCouldNot},
               {StatusCode::kFailedPrecondition, Exit::kCouldNot},
               {StatusCode::kResourceExhausted, Exit::kCouldNot},
               {StatusCode::kDataLoss, Exit::kCouldNot},
               {StatusCode::kInternal, Exit::kCouldNot}};
  for (const auto& c : cases) {
    CHECK(ExitOf(Error(c.code, "x")) == c.exit);
  }
  CHECK(ExitOf(OkStatus()) == Exit::kDone);
}

}  // namespace
}  // namespace domicile::cli

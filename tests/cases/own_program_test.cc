// Sites that train with programs of their own: one that learns what ours learns, one that is not
// what was approved, and one that is hostile.
#include <cmath>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "audit/records.h"
#include "tests/cases/real_sites.h"
#include "tests/support/federation_processes.h"
#include "tests/support/run_command.h"
#include "tests/support/tls_tape.h"

namespace domicile::test {
namespace {

using policy::Reason;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* kMemory = "70368744177664";  // it reserves more addresses than any limit
#else
constexpr const char* kMemory = "2147483648";
#endif

// The table `[program]` of trainer.toml for this program of the test tree.
std::string ProgramTable(const std::string& program, const std::vector<std::string>& arguments,
                         const std::string& more = "") {
  std::string command = "\"" + ProgramFolder() + "/" + program + "\"";
  for (const std::string& argument : arguments) {
    command += ", \"" + argument + "\"";
  }
  return "[program]\ncommand = [" + command + "]\n" + more +
         "[program.limits]\nmemory_bytes = " + kMemory + "\n";
}

CaseSite LineSite(const std::string& name, const std::string& jurisdiction,
                  const std::string& table) {
  CaseSite site = TableSite(name, jurisdiction, CaseFile("C41/" + table));
  site.tables = ProgramTable("line_program", {"0.1"});
  return site;
}

constexpr int kGridBits = 16;
std::string RawLine() {
  std::string job = JobFile({.numbers = 1, .scale_bits = kGridBits});
  const auto replace = [&job](const std::string& from, const std::string& to) {
    REQUIRE(job.find(from) != std::string::npos);
    job.replace(job.find(from), from.size(), to);
  };
  replace("local_steps = 10", "local_epochs = 1");
  replace("batch = 0", "batch = 32");
  return job;
}

// A scripted site that always answers with these numbers of `w`, of ten rows.
CaseSite Scripted(const std::string& name, const std::string& jurisdiction,
                  const std::string& numbers) {
  return {
      name, jurisdiction,
      R"([{"phase":"train","rows":10,"delta":{"w":{"shape":[2],"values":[)" + numbers + "]}}}]"};
}

// Somebody on the network of this host, whom nobody should reach.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(socket_.descriptor(), generic, length) == 0);
    REQUIRE(listen(socket_.descriptor(), 8) == 0);
    REQUIRE(getsockname(socket_.descriptor(), generic, &length) == 0);
    port_ = ntohs(address.sin_port);
  }
  std::string Port() const { return std::to_string(port_); }
  bool WasReached() const {
    pollfd wait = {socket_.descriptor(), POLLIN, 0};
    return poll(&wait, 1, 0) != 0;
  }

 private:
  FileHandle socket_;
  std::uint16_t port_ = 0;
};

}  // namespace

TEST_CASE("Own program: it learns what our trainer learns, and its numbers are on the grid") {
  auto federation = Must(CaseFederation::Start({LineSite("alpha", "DE", "site_a.csv"),
                                                LineSite("bravo", "FR", "site_b.csv"),
                                                LineSite("charlie", "NL", "site_c.csv")}));
  const JobId raw = Must(federation->Submit(RawLine()));
  Must(federation->Approve(raw));
  const auto theirs = Must(federation->WaitForEnd(raw));
  // The same trainers, with the same digests, train a plan of ours by our own code.
  const JobId linear = Must(federation->Submit(TrainingJobFile(
      {.inputs = "[[feature]]\ncolumn = \"x\"\nkind = \"number\"\n"
                 "[label]\ncolumn = \"y\"\nkind = \"number\"\n",
       .model = "kind = \"linear\"\n",
       .training = "optimizer = \"sgd\"\nlearning_rate = 0.1\nlocal_epochs = 1\nbatch = 32\n"
                   "shuffle = false\nfrozen = [\"bias\"]\n"})));
  Must(federation->Approve(linear));
  const auto ours = Must(federation->WaitForEnd(linear));

  REQUIRE(theirs.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ours.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(theirs.metrics_size() == 1);
  CHECK(theirs.metrics(0).examples() == 64 + 65 + 3);
  CHECK(std::stod(theirs.metrics(0).loss()) ==
        doctest::Approx(std::stod(ours.metrics(0).loss())).epsilon(1e-5));
  const auto by_program = Must(federation->Model(raw));
  // Three roundings onto a grid of 2^-16 lie between the two.
  CHECK(Near(by_program, {0.372212}, 3e-5));
  CHECK(Near(Must(federation->AllTensors(linear)).at("weight"), {0.372212}, 3e-5));
  // A mean of grid numbers by rows, and nothing finer.
  const double levels = std::ldexp(static_cast<double>(by_program[0]) * (64 + 65 + 3), kGridBits);
  CHECK(std::fabs(levels - std::round(levels)) < 0.2);  // float32 has been rounded to once
  federation->Stop();
  Must(federation->AuditLogs());
}

TEST_CASE("Own program: one that is not what was approved is refused, and the others go on") {
  CaseSite changed = LineSite("alpha", "DE", "site_a.csv");
  changed.data["rates.txt"] = "0.1\n";
  changed.tables = ProgramTable("line_program", {"0.1"}, "files = [\"rates.txt\"]\n");
  auto federation = Must(CaseFederation::Start({changed, LineSite("bravo", "FR", "site_b.csv"),
                                                LineSite("charlie", "NL", "site_c.csv"),
                                                LineSite("delta", "AT", "site_a.csv")}));
  const JobId job = Must(federation->Submit(RawLine()));
  // `alpha` has accepted; the job waits for the others.
  Must(federation->ApproveAt(job, "alpha"));
  Must(federation->WaitUntil(job, [](const v1::ShowJobResponse& shown) {
    return ReasonAt(shown, "alpha") == Reason::kNone;
  }));

  Must(WriteFileDurably(federation->TrainerFolder("alpha") + "/rates.txt", AsBytes("0.2\n")));
  Must(federation->RestartTrainer("alpha"));
  for (const char* site : {"bravo", "charlie", "delta"}) {
    Must(federation->ApproveAt(job, site));
  }
  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  CHECK(policy::Code(ReasonAt(ended, "alpha")) == policy::Code(Reason::kGrantTrainer));
  REQUIRE(ended.metrics_size() == 1);
  CHECK(ended.metrics(0).contributors() == 3);
  CHECK(ended.metrics(0).examples() == 65 + 3 + 64);
  CHECK(Near(Must(federation->Model(job)), {0.372212}, 3e-5));
  // The changed program has written nothing.
  const std::string alpha = federation->TrainerFolder("alpha");
  CHECK(Must(ReadFile(alpha + "/state/program/delta.safetensors", 1 << 20)).empty());
  CHECK(Count(Must(federation->Leaves("alpha")), audit::EventType::kEgressDecided) == 0);
  federation->Stop();
  Must(federation->AuditLogs());
}

TEST_CASE("Own program: a hostile one gets nothing out, and the other sites' job is done") {
  const Listener outside;
  const TemporaryFolder tapes;
  CaseSite hostile = TableSite("alpha", "DE", CaseFile("C41/site_a.csv"));
  hostile.tables = ProgramTable("hostile_program", {"escape", "extra_tensor", "text_in_number",
                                                    "die", "--", outside.Port(), "/etc/hostname"});
  std::unique_ptr<CaseFederation> federation;
  {
    const TlsTap tap(tapes.Path());
    federation = Must(CaseFederation::Start({hostile, Scripted("bravo", "FR", "0.25,-1"),
                                             Scripted("charlie", "NL", "0.5,2"),
                                             Scripted("delta", "AT", "1.5,-4")}));
  }
  const JobId job = Must(federation->Submit(JobFile({.rounds = 4})));
  Must(federation->Approve(job));

  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ended.metrics_size() == 4);
  // In the first round it trains once it has tried every way out; then its answers are no answers.
  CHECK(ended.metrics(0).contributors() == 4);
  CHECK(Near(Must(federation->Model(job, 1)), {2.75 / 4, -2.5 / 4}));
  for (int round = 1; round < 4; ++round) {
    CAPTURE(round);
    CHECK(ended.metrics(round).contributors() == 3);
  }
  CHECK(Near(Must(federation->Model(job)), {2.75 / 4 + 3 * 0.75, -2.5 / 4 - 3.0}));
  CHECK(ReasonAt(ended, "alpha") == Reason::kTrainerFailed);
  const auto leaves = Must(federation->Leaves("alpha"));
  CHECK(Count(leaves, audit::EventType::kEgressDone) == 1);

  CHECK_FALSE(outside.WasReached());
  const std::string log = federation->TrainerFolder("alpha") + "/trainer.log";
  CHECK(Must(ReadFile(log, 1 << 20)).find("signal 11") != std::string::npos);  // all four ran
  federation->Stop();
  Must(federation->AuditLogs());
  const std::string text = "patient";  // of a tensor's name and of an answer
  CHECK(FindBytes(federation->Path("aggregator"), text).empty());
  std::string all;
  for (const Tape& tape : Must(ReadTapes(tapes.Path()))) {
    for (const std::string& bytes : {tape.sent, tape.received}) {
      all += bytes + Must(MessagesOf(bytes));
    }
  }
  CHECK(all.find("numbers") != std::string::npos);  // the alias: the tap hears
  for (const std::string& form : FormsOfText(text)) {
    CHECK(all.find(form) == std::string::npos);
  }
}

}  // namespace domicile::test

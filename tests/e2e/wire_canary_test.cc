// Canaries on the wire: planted in every input of a site, and searched for in every byte that any
// program hands to TLS or gets from it (tests/support/tls_tap.cc), in the forms in which they could
// hide.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file.h"
#include "tests/support/federation_processes.h"
#include "tests/support/run_command.h"
#include "tests/support/tls_tape.h"

namespace domicile::test {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 20U;
// Its data have a cell that cannot be read; the other site's can be read, and are trained on.
const std::string kFaulty = "cleveland";
const std::string kSound = "budapest";

// Where each canary is planted; the same places at both sites.
struct Canaries {
  std::string cell;      // in a column of numbers (faulty site), or a code that no job lists
  std::string number;    // a cell that is read, exact in every format
  std::string file;      // the name of the table's file
  std::string column;    // the name of a column that no job uses
  std::string version;   // of the dataset
  std::string dataset;   // its real name in the policy
  std::string document;  // what the policy calls an assessment
  std::string issuer;    // who answers for the policy
};
const Canaries kAtFaulty = {"QX-SENTINEL-7731",  "613.0625",          "MUELLER-JAN-5512",
                            "secretcolumn9917",  "SENTINEL-VERSION",  "Register of Ward 5581",
                            "assessment 66-713", "issuer-canary-4407"};
const Canaries kAtSound = {"CODE-SENTINEL-2218", "617.4375",          "KOVACS-EVA-3390",
                           "secretcolumn4408",   "FROZEN-7719",       "Cardiology Book 9034",
                           "assessment 12-900",  "issuer-canary-8826"};

std::vector<std::string> TextsOf(const Canaries& all) {
  return {all.cell, all.file, all.column, all.version, all.dataset, all.document, all.issuer};
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

std::string Read(const std::string& path) {
  auto text = ReadFile(path, kLargest);
  REQUIRE_MESSAGE(text.ok(), Message(text.status()));
  return *std::move(text);
}

// A quoted value of a policy, `key = "VALUE"`, the first after `from`.
std::string WithValue(std::string text, const std::string& key, const std::string& value) {
  const std::size_t at = text.find("\n" + key + " = \"");
  REQUIRE_MESSAGE(at != std::string::npos, key);
  const std::size_t begin = text.find('"', at) + 1;
  return text.replace(begin, text.find('"', begin) - begin, value);
}

// Cells of two records: the number, and the text.
using Cells = std::vector<std::pair<std::string, std::string>>;
const Cells kCellsOfFaulty = {{"2,67,1,4,160,286,", "2,67,1,4,160,NUMBER,"},
                              {"\n3,67,1,4,120,229,", "\n3,67,1,4,120,CELL,"}};
const Cells kCellsOfSound = {{"304,28,1,2,130,132,", "304,28,1,2,130,NUMBER,"},
                             {"305,29,1,2,120,243,0,0,", "305,29,1,2,120,243,0,CELL,"}};

void Plant(const FederationProcesses& federation, const std::string& site, const Cells& cells,
           const Canaries& all) {
  const std::string folder = federation.Folders().Path("sites/" + site);
  const std::string table = folder + "/data/data/" + site + ".csv";
  std::string planted = Replaced(Read(table), ",slope,", "," + all.column + ",");
  for (const auto& [from, to] : cells) {
    std::string with = to;
    for (const auto& [word, value] : {std::pair("NUMBER", all.number), {"CELL", all.cell}}) {
      if (const std::size_t at = with.find(word); at != std::string::npos) {
        with.replace(at, std::string(word).size(), value);
      }
    }
    planted = Replaced(planted, from, with);
  }
  REQUIRE(WriteFileDurably(folder + "/data/data/" + all.file + ".csv", AsBytes(planted)).ok());
  REQUIRE(RemoveFile(table).ok());
  // Without its [[column]] limits, a bad cell shows only when a job reads its column.
  std::string description = Read(folder + "/data/dataset.toml");
  description.resize(description.find("[[column]]"));
  description = Replaced(description, "data/" + site + ".csv", "data/" + all.file + ".csv");
  description = WithValue(description, "version", all.version);
  REQUIRE(WriteFileDurably(folder + "/data/dataset.toml", AsBytes(description)).ok());
  std::string policy = Read(folder + "/site.policy.toml");
  policy = WithValue(WithValue(policy, "name", all.dataset), "issuer", all.issuer);
  policy = WithValue(policy, "refs.dpia.id", all.document);
  REQUIRE(WriteFileDurably(folder + "/site.policy.toml", AsBytes(policy)).ok());
  // As its signers would, once they have changed it.
  for (const cli::DemoSite& known : cli::HeartSites()) {
    if (known.name == site) {
      REQUIRE(federation.Folders().SignPolicies(known).ok());
    }
  }
}

struct Said {
  StatusOr<audit::Leaf> ended;
  std::vector<Tape> tapes;
};

// One job from its submission to its end, with both sites planted where they are told to be.
Said Run(FederationProcesses& federation, const std::string& tapes) {
  {
    const TlsTap tap(tapes);
    const Status started = federation.StartAll();
    REQUIRE_MESSAGE(started.ok(), Message(started));
  }
  const StatusOr<JobId> job = federation.SubmitAndApprove();
  REQUIRE_MESSAGE(job.ok(), Message(job.status()));
  auto ended = federation.WaitForEnd(*job);
  REQUIRE_MESSAGE(ended.ok(), Message(ended.status()));
  federation.StopAll();
  auto read = ReadTapes(tapes);
  REQUIRE_MESSAGE(read.ok(), Message(read.status()));
  return {.ended = std::move(ended), .tapes = *std::move(read)};
}

// Everything of a tape in one direction: the bytes, and the messages without the frames' borders.
std::string Whole(const std::string& bytes) {
  const auto messages = MessagesOf(bytes);
  REQUIRE_MESSAGE(messages.ok(), Message(messages.status()));
  return bytes + *messages;
}

void CheckNotOnWire(const Said& said, const Canaries& all) {
  std::vector<std::string> forms;
  for (const std::string& text : TextsOf(all)) {
    for (std::string& form : FormsOfText(text)) {
      forms.push_back(std::move(form));
    }
  }
  for (std::string& form : FormsOfNumber(all.number)) {
    forms.push_back(std::move(form));
  }
  for (const Tape& tape : said.tapes) {
    CAPTURE(tape.program);
    for (const std::string& bytes : {Whole(tape.sent), Whole(tape.received)}) {
      for (std::size_t i = 0; i < forms.size(); ++i) {
        CAPTURE(i);
        CHECK(bytes.find(forms[i]) == std::string::npos);
      }
    }
  }
}

// The tap hears: each agent its own words, and the aggregator the same ones from the other end.
void CheckHeard(const Said& said, const FederationProcesses& federation) {
  std::map<std::string, std::string> sent;
  std::map<std::string, std::string> received;
  std::map<std::string, int> programs;
  for (const Tape& tape : said.tapes) {
    const std::string kind = tape.program.substr(0, tape.program.find('.'));
    ++programs[kind];
    sent[kind] += Whole(tape.sent);
    received[kind] += Whole(tape.received);
  }
  CHECK(programs["domicile-agent"] >= 4);
  CHECK(programs["domicile-aggregator"] >= 4);
  const auto leaves = federation.Leaves(kAggregator);
  REQUIRE(leaves.ok());
  const auto offered = std::find_if(leaves->begin(), leaves->end(), [](const audit::Leaf& leaf) {
    return leaf.event.type() == audit::EventType::kJobOffered;
  });
  REQUIRE(offered != leaves->end());
  const auto plan = ParseDigest(offered->event.Text("plan"));
  REQUIRE(plan.ok());
  const std::string digest(plan->bytes.begin(), plan->bytes.end());
  // What is public is there: the alias, the digest of the plan in the answers to its offer.
  for (const std::string& words : {std::string("heart"), digest}) {
    CHECK(sent["domicile-agent"].find(words) != std::string::npos);
    CHECK(received["domicile-aggregator"].find(words) != std::string::npos);
  }
  // And what the sites are told.
  for (const std::string& words :
       {std::string("\"algorithm_testing\""), std::string("phase.opened")}) {
    CHECK(sent["domicile-aggregator"].find(words) != std::string::npos);
    CHECK(received["domicile-agent"].find(words) != std::string::npos);
  }
}

// They are where a leak would start: in the data, and in what the programs at the site read.
void CheckPlanted(const FederationProcesses& federation, const std::string& site,
                  const Canaries& all) {
  const std::string folder = federation.Folders().Path("sites/" + site);
  std::vector<std::string> planted = TextsOf(all);
  planted.push_back(all.number);
  for (const std::string& canary : planted) {
    CAPTURE(canary);
    CHECK_FALSE(FindBytes(folder, canary, {"/state", ".log"}).empty());
  }
}

}  // namespace

TEST_CASE("Wire canary: the forms find what is hidden in them") {
  const std::string canary = "QX-SENTINEL-7731";
  // base64 of `a`, `ab`, `abc` and then the canary, from another implementation.
  for (const std::string& base64 :
       std::vector<std::string>{"YVFYLVNFTlRJTkVMLTc3MzE=", "YWJRWC1TRU5USU5FTC03NzMx",
                                "YWJjUVgtU0VOVElORUwtNzczMQ=="}) {
    CAPTURE(base64);
    const auto forms = FormsOfText(canary);
    CHECK(std::any_of(forms.begin(), forms.end(), [&](const std::string& form) {
      return form.size() > 8 && base64.find(form) != std::string::npos;
    }));
  }
  const auto numbers = FormsOfNumber("613.0625");  // 0x44194400 as float32
  CHECK(std::count(numbers.begin(), numbers.end(), std::string("\x00\x44\x19\x44", 4)) == 1);
  CHECK(std::count(numbers.begin(), numbers.end(),
                   std::string("\x40\x83\x28\x80\x00\x00\x00\x00", 8)) == 1);
}

TEST_CASE("Wire canary: messages are put together over the borders of frames") {
  const auto frame = [](char type, char flags, char stream, const std::string& payload) {
    return std::string{0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream} +
           payload;
  };
  const std::string http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "settings") +
                            frame(0, 0, 1, "QX-SEN") + frame(0, 0, 3, "other") +
                            frame(0, 8, 1, std::string("\x02TINEL\0\0", 8));

  const auto messages = MessagesOf(http2);

  REQUIRE(messages.ok());
  CHECK(*messages == std::string("QX-SENTINEL\0other\0", 18));
  CHECK_FALSE(MessagesOf(frame(0, 8, 1, "\x09x")).ok());
}

TEST_CASE("Wire canary: a job that is trained says nothing of what it was trained on") {
  auto made = FederationProcesses::Create({.rounds = 3, .quorum = 4});
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  Plant(federation, kSound, kCellsOfSound, kAtSound);
  const TemporaryFolder tapes;

  const Said said = Run(federation, tapes.Path());

  CHECK(said.ended->event.Text("state") == "done");
  CheckPlanted(federation, kSound, kAtSound);
  CheckHeard(said, federation);
  CheckNotOnWire(said, kAtSound);
}

TEST_CASE("Wire canary: a job that fails on the data says that, and nothing of the data") {
  auto made = FederationProcesses::Create({.rounds = 3, .quorum = 4, .attempts = 1});
  REQUIRE_MESSAGE(made.ok(), Message(made.status()));
  FederationProcesses& federation = **made;
  Plant(federation, kFaulty, kCellsOfFaulty, kAtFaulty);
  Plant(federation, kSound, kCellsOfSound, kAtSound);
  const TemporaryFolder tapes;

  const Said said = Run(federation, tapes.Path());

  CHECK(said.ended->event.Text("state") == "failed");
  CheckPlanted(federation, kFaulty, kAtFaulty);
  CheckHeard(said, federation);
  CheckNotOnWire(said, kAtFaulty);
  CheckNotOnWire(said, kAtSound);
}

}  // namespace domicile::test

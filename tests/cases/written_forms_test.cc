// One table as offices of several countries write it: byte order mark, line ends, decimal comma,
// a column that repeats, a country called NA and an owner called Null. The model is the same to the
// last bit, or the site is told what it has not declared.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "audit/records.h"
#include "tests/cases/real_sites.h"

namespace domicile::test {
namespace {

using policy::Reason;

// Twelve rows of five accounts. Minutes are in quarters, so that every form of them is exact.
constexpr const char* kCalls =
    "acct,country,owner,minutes,churn\n"
    "a10,NA,Null,1.25,0\na11,ZA,None,2.5,1\na12,\"NA\",NaN,3.75,0\na10,DE,Nangolo,4.25,1\n"
    "a13,NA,Null,5.5,0\na10,ZA,Botha,6.75,1\na11,,Weber,7.25,0\na12,DE,Null,8.5,1\n"
    "a10,NA,None,9.75,0\na13,ZA,NaN,10.25,1\na12,DE,Botha,1111.5,0\na10,NA,Null,12.75,1\n";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Semicolons, decimal commas and a thousands mark.
std::string Continental() {
  return Replaced(Replaced(Replaced(kCalls, ",", ";"), ".", ","), "1111,5", "1.111,5");
}

std::string MixedEnds() {
  std::string text = kCalls;
  for (int line = 0, at = 0; line < 4; ++line) {
    at = static_cast<int>(text.find('\n', static_cast<std::size_t>(at)));
    text.insert(static_cast<std::size_t>(at), "\r");
    at += 2;
  }
  text.pop_back();  // no line end after the last record
  return text;
}

TrainingJob Calls() {
  return {.inputs =
              "[[feature]]\ncolumn = \"minutes\"\nkind = \"number\"\n"
              "[[feature]]\ncolumn = \"country\"\nkind = \"category\"\n"
              "codes = [\"NA\", \"ZA\", \"DE\"]\n"
              "[[feature]]\ncolumn = \"owner\"\nkind = \"category\"\n"
              "codes = [\"Null\", \"None\", \"NaN\", \"Nangolo\", \"Botha\", \"Weber\"]\n"
              "[label]\ncolumn = \"churn\"\nclasses = [\"0\", \"1\"]\n",
          .model = "kind = \"logistic\"\n",
          .training = "optimizer = \"sgd\"\nlearning_rate = 0.01\nlocal_steps = 3\nbatch = 0\n"};
}

using Tensors = CaseFederation::Tensors;

// What three sites make of the table as it is above: each the same, and so their mean.
Tensors ModelOfPlainTables() {
  auto federation = Must(
      CaseFederation::Start({TableSite("alpha", "DE", kCalls), TableSite("bravo", "FR", kCalls),
                             TableSite("charlie", "NL", kCalls)}));
  const JobId job = Must(federation->Submit(TrainingJobFile(Calls())));
  Must(federation->Approve(job));
  CHECK(Must(federation->WaitForEnd(job)).summary().state() == v1::JOB_STATE_DONE);
  return Must(federation->AllTensors(job));
}

// A folder of odd pictures with their manifest.
std::map<std::string, std::string> Pictures(const std::string& more) {
  std::map<std::string, std::string> files;
  for (const char* name : {"manifest.csv", "images/cmyk.jpg", "images/empty.png", "images/gray.png",
                           "images/gray16.png", "images/ok.jpg", "images/palette.png",
                           "images/rgb.png", "images/rgba.png", "images/rotated_exif6.jpg",
                           "images/text_named.png", "images/truncated.jpg"}) {
    files[name] = CaseFile(std::string("C11/") + name);
  }
  files["dataset.toml"] =
      "[dataset]\nalias = \"numbers\"\nversion = \"1\"\nsource = \"images\"\n"
      "files = [\"manifest.csv\"]\n" +
      more + "[[column]]\nname = \"image\"\nlocal = \"file\"\n";
  return files;
}

CaseSite PictureSite(const std::string& name, const std::string& jurisdiction,
                     const std::string& more) {
  CaseSite site = TableSite(name, jurisdiction, "");
  site.data = Pictures(more);
  return site;
}

std::string TrainerLog(const CaseFederation& federation, const std::string& site) {
  return Must(ReadFile(federation.TrainerFolder(site) + "/trainer.log", 1 << 20));
}

}  // namespace

TEST_CASE("Written forms: the same rows train the same model, however they are spelled") {
  const std::string comma = "delimiter = \";\"\ndecimal_mark = \",\"\n";
  // A locale that has a decimal comma, for every program; where it is installed it takes effect.
  REQUIRE(setenv("LC_ALL", "de_DE.UTF-8", 1) == 0);
  auto started = CaseFederation::Start(
      {TableSite("alpha", "DE", kCalls),
       TableSite("bravo", "FR", "\xEF\xBB\xBF" + Replaced(kCalls, "\n", "\r\n")),
       TableSite("charlie", "NL", MixedEnds()),
       TableSite("delta", "AT", Replaced(kCalls, "\n", "\r")),
       TableSite("echo", "ES", Continental(), comma + "grouping = \".\"\n"),
       TableSite("foxtrot", "IT", Continental(), comma)});
  REQUIRE(unsetenv("LC_ALL") == 0);
  auto federation = Must(std::move(started));
  const JobId job = Must(federation->Submit(TrainingJobFile(Calls())));
  Must(federation->Approve(job));

  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ended.metrics_size() == 1);
  CHECK(ended.metrics(0).contributors() == 5);
  CHECK(ended.metrics(0).examples() == 5 * 12);  // no row is lost to one with the same account
  const Tensors model = Must(federation->AllTensors(job));
  CHECK(model == ModelOfPlainTables());
  // NA and Null are there: their weights have moved.
  const std::vector<float>& weights = model.at("weight");
  REQUIRE(weights.size() == 10);
  CHECK(std::all_of(weights.begin(), weights.end(), [](float weight) { return weight != 0; }));

  // Who has not declared the thousands mark learns it before anything is trained.
  CHECK(policy::Code(ReasonAt(ended, "foxtrot")) == policy::Code(Reason::kDatasetInvalid));
  CHECK(Count(Must(federation->Leaves("foxtrot")), audit::EventType::kEgressDecided) == 0);
  const std::string told = TrainerLog(*federation, "foxtrot");
  CAPTURE(told);
  CHECK(told.find("table.csv:12: column 4 `minutes`") != std::string::npos);
}

TEST_CASE(
    "Written forms: pictures that are none are named, and left out only where a site says so") {
  const std::string lenient = "unreadable = \"missing\"\nrows_with_missing = \"drop\"\n";
  auto federation = Must(CaseFederation::Start(
      {PictureSite("alpha", "DE", lenient), PictureSite("bravo", "FR", lenient),
       PictureSite("charlie", "NL", lenient), PictureSite("delta", "AT", "")}));
  const JobId job = Must(federation->Submit(TrainingJobFile(
      {.inputs = "[image]\nchannels = 3\nheight = 8\nwidth = 8\n"
                 "[label]\ncolumn = \"label\"\nclasses = [\"0\", \"1\"]\n",
       .model = "kind = \"mlp\"\nhidden = [4]\nactivation = \"tanh\"\nseed = 1\n",
       .training = "optimizer = \"sgd\"\nlearning_rate = 0.1\nlocal_steps = 2\nbatch = 0\n"})));
  for (const char* site : {"alpha", "bravo", "charlie"}) {
    Must(federation->ApproveAt(job, site));
  }

  const auto ended = Must(federation->WaitForEnd(job));

  CHECK(ended.summary().state() == v1::JOB_STATE_DONE);
  REQUIRE(ended.metrics_size() == 1);
  CHECK(ended.metrics(0).contributors() == 3);
  CHECK(ended.metrics(0).examples() == 3 * 8);  // of twelve lines
  CHECK_FALSE(ended.metrics(0).loss().empty());
  // `delta` has no dataset to offer: its operator reads why before any job.
  const std::string told = TrainerLog(*federation, "delta");
  CAPTURE(told);
  for (const char* where :
       {"manifest.csv:8: ", "manifest.csv:11: ", "manifest.csv:12: ", "manifest.csv:13: "}) {
    CAPTURE(where);
    CHECK(told.find(where) != std::string::npos);
  }
  CHECK(TrainerLog(*federation, "alpha").find("truncated.jpg") != std::string::npos);
  CHECK(Count(Must(federation->Leaves("delta")), audit::EventType::kTrainStarted) == 0);
}

TEST_CASE("Written forms: a site in NA is in Namibia, where models of the EEA may not go") {
  const std::string country = "NA";
  auto federation = Must(CaseFederation::Start(
      {TableSite("alpha", "DE", kCalls), TableSite("bravo", "FR", kCalls),
       TableSite("charlie", "NL", kCalls), TableSite("windhoek", country, kCalls)}));
  const JobId job = Must(federation->Submit(TrainingJobFile(Calls())));

  // No site would have its model sent there; a place that is not set would be refused otherwise.
  const auto shown = Must(federation->WaitUntil(job, [](const v1::ShowJobResponse& now) {
    return now.sites_size() == 4 &&
           std::all_of(now.sites().begin(), now.sites().end(), [](const v1::SiteState& site) {
             return site.answer() == v1::ANSWER_DECLINE;
           });
  }));

  for (const v1::SiteState& site : shown.sites()) {
    CAPTURE(site.site());
    CHECK(ReasonAt(shown, site.site()) == policy::Reason::kLocation);
    CHECK((site.jurisdiction() == country) == (site.site() == "windhoek"));
  }
  const auto leaves = Must(federation->Leaves("windhoek"));
  CHECK(Count(leaves, audit::EventType::kAgentStarted, {{"jurisdiction", country}}) == 1);
  CHECK(Count(leaves, audit::EventType::kTrainStarted) == 0);
}

}  // namespace domicile::test

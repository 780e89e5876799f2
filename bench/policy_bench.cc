// What the policy engine costs: one decision, one meet, and whether data of a hundred sites can
// reach a country, over every country there is.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "policy/analysis/reach.h"
#include "policy/engine/decide.h"
#include "policy/language/parse.h"

namespace domicile {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Where the hundred sites are, over and over; each has a policy of its own.
constexpr const char* kCountries[] = {"DE", "FR", "IT", "ES", "NL", "SE", "PL", "AT", "IE", "FI",
                                      "CH", "GB", "NO", "US", "CA", "JP", "KR", "BR", "AU", "NZ"};
constexpr const char* kAdequate[] = {"AD", "AR", "CA", "FO", "GG", "IL", "IM", "JP",
                                     "JE", "NZ", "KR", "CH", "GB", "UY", "BR"};

std::string FactText(const std::string& id, const std::string& rest) {
  return "[[fact]]\nid = \"" + id + "\"\nfrom_date = 2018-05-25\nsource = \"made up\"\n" +
         "checked_by = \"nobody\"\nchecked_on = 2026-11-30\n" + rest;
}

// Of the size and shape of real ones: two blocs, one decision for each adequate country.
std::string FactsText() {
  const std::string eu =
      R"("AT", "BE", "BG", "HR", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HU", "IE",
"IT", "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK", "AX", "GF", "GP", "MF",
"MQ", "RE", "YT")";
  std::string text = "[facts]\nid = \"facts/bench\"\nversion = 1\nexpires = 2027-10-31\n";
  text += FactText("eu", "kind = \"bloc\"\nbloc = \"EU\"\nmembers = [" + eu + "]\n");
  text += FactText(
      "eea", "kind = \"bloc\"\nbloc = \"EEA\"\nmembers = [" + eu + ", \"IS\", \"LI\", \"NO\"]\n");
  text += FactText("territory", "kind = \"territory\"\nregime = \"eu-gdpr\"\nfrom = [\"EEA\"]\n");
  text += FactText(
      "free", "kind = \"free_flow\"\nregime = \"eu-gdpr\"\nfrom = [\"EEA\"]\nto = [\"EEA\"]\n");
  for (const char* country : kAdequate) {
    text += FactText(std::string("adequacy-") + static_cast<char>(country[0] - 'A' + 'a') +
                         static_cast<char>(country[1] - 'A' + 'a'),
                     "kind = \"adequacy\"\nregime = \"eu-gdpr\"\nfrom = [\"EEA\"]\nto = [\"" +
                         std::string(country) + "\"]\n");
  }
  return text;
}

std::string Head(const std::string& id) {
  return "[policy]\nschema = 1\nid = \"" + id +
         "\"\nversion = 1\nnot_before = 2026-11-01\nexpires = 2027-10-31\nissuer = \"i\"\n"
         "signers = [\"s\"]\nthreshold = 1\n";
}

std::string SiteText(std::size_t number) {
  const std::string country = kCountries[number % std::size(kCountries)];
  constexpr const char* kOthers[] = {"US", "JP", "BR", "AU", "KR", "CA", "GB"};
  const std::string other = kOthers[number % std::size(kOthers)];
  return Head("site/s" + std::to_string(number)) + "[site]\njurisdiction = \"" + country +
         "\"\ncontrol_jurisdictions = [\"" + country + "\"]\n[[dataset]]\nalias = \"d" +
         std::to_string(number) +
         "\"\nname = \"n\"\ncategories = [\"none\"]\nsubject_jurisdictions = [\"" + country +
         "\"]\nregimes = [\"eu-gdpr\"]\nlawful_basis = \"A6-1-e\"\n"
         "purpose = [\"scientific_research\", \"education\"]\n"
         "refs.tia = { id = \"t\", sha256 = \"" +
         std::string(64, '0') +
         "\", valid_until = 2027-06-30 }\n"
         "[model]\nrecipients = [\"EEA\", \"CH\", \"" +
         other +
         "\"]\n[[rule]]\nid = \"S-1\"\nallow.aggregator_locations = [\"EEA\", \"CH\"]\n"
         "allow.aggregator_control = [\"EEA\", \"CH\"]\nallow.recipients = [\"sites\", "
         "\"operator\"]\nallow.update_kinds = [\"delta.masked\", \"metrics.aggregate\", "
         "\"model.final\"]\nallow.aggregator_view = \"masked_individual\"\nlimit.rounds = 100\n"
         "limit.runs_per_day = 2\nlimit.update_bytes = 1000000\nlimit.metrics = 4\n"
         "[[rule.transfer]]\nto = \"CH\"\nmechanism = \"adequacy\"\nref = "
         "\"r\"\n[[rule.transfer]]\nto = \"" +
         other + "\"\nmechanism = \"scc\"\nref = \"r\"\nvalid_until = 2027-03-31\n";
}

StatusOr<policy::analysis::World> MakeWorld(std::size_t sites) {
  policy::analysis::World world;
  ASSIGN_OR_RETURN(world.facts, policy::ParseFacts(FactsText(), "facts"));
  const std::string federation = Head("federation/f") +
                                 "[[rule]]\nid = \"F-1\"\nallow.aggregator_locations = [\"EEA\", "
                                 "\"CH\"]\nrequire.privacy.min_contributors = 5\n"
                                 "deny.locations = [\"CN\", \"RU\", \"IR\", \"KP\"]\n"
                                 "deny.control = [\"CN\", \"RU\", \"IR\", \"KP\"]\n";
  const std::string aggregator =
      Head("aggregator/a") + "[[rule]]\nid = \"A-1\"\ndeny.update_kinds = [\"gradient\"]\n";
  ASSIGN_OR_RETURN(policy::Policy first, policy::ParsePolicy(federation, "federation",
                                                             policy::PolicySource::kFederation));
  ASSIGN_OR_RETURN(policy::Policy second, policy::ParsePolicy(aggregator, "aggregator",
                                                              policy::PolicySource::kAggregator));
  world.policies = {std::move(first), std::move(second)};
  for (std::size_t i = 0; i < sites; ++i) {
    ASSIGN_OR_RETURN(policy::Policy site,
                     policy::ParsePolicy(SiteText(i), "site", policy::PolicySource::kSite));
    world.policies.push_back(std::move(site));
  }
  return world;
}

double Seconds(SteadyClock::time_point since) {
  return std::chrono::duration<double>(SteadyClock::now() - since).count();
}

// The least of several averages: what the machine can do when nothing else runs.
template <typename F>
double Microseconds(double seconds, const F& run) {
  double best = 1e12;
  const auto start = SteadyClock::now();
  while (Seconds(start) < seconds) {
    constexpr int kBatch = 200;
    const auto batch = SteadyClock::now();
    for (int i = 0; i < kBatch; ++i) {
      run();
    }
    best = std::min(best, Seconds(batch) * 1e6 / kBatch);
  }
  return best;
}

struct Figures {
  double decide_microseconds = 0;
  double deny_microseconds = 0;
  double answer_microseconds = 0;
  double meet_microseconds = 0;
  double reach_seconds = 0;        // to a country that nothing reaches
  double reach_cpu_seconds = 0;    // of the same: what a busy machine does not stretch
  double reach_found_seconds = 0;  // to one that some sites reach
  policy::analysis::Covered covered;
  std::size_t reached = 0;
};

policy::analysis::ReachQuestion QuestionTo(const char* place, WallTime now) {
  policy::analysis::ReachQuestion question;
  question.to = *policy::Area::Parse(place);
  question.by = policy::analysis::By::kPlace;
  question.window = {now, {}};
  return question;
}

StatusOr<Figures> Measure(std::size_t sites, double seconds) {
  ASSIGN_OR_RETURN(const policy::analysis::World world, MakeWorld(sites));
  ASSIGN_OR_RETURN(const WallTime now, ParseTime("2026-12-01T00:00:00Z"));
  Figures figures;

  const std::clock_t cpu = std::clock();
  auto start = SteadyClock::now();
  const policy::analysis::ReachResult never = policy::analysis::Reach(world, QuestionTo("VN", now));
  figures.reach_seconds = Seconds(start);
  figures.reach_cpu_seconds = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  figures.covered = never.covered;
  if (never.Shortest() != nullptr) {
    return Error(StatusCode::kInternal, "a place that no rule names was reached");
  }
  start = SteadyClock::now();
  const policy::analysis::ReachResult some = policy::analysis::Reach(world, QuestionTo("JP", now));
  figures.reach_found_seconds = Seconds(start);
  policy::Transfer transfer;
  for (const policy::analysis::DatasetReach& each : some.datasets) {
    if (!each.way.empty()) {
      ++figures.reached;
      transfer = each.way.front().transfer;
    }
  }
  if (figures.reached == 0) {
    return Error(StatusCode::kInternal, "no site reached a place that many allow");
  }

  const policy::Policy* site = nullptr;
  for (const policy::Policy& each : world.policies) {
    site = each.Find(transfer.dataset) != nullptr ? &each : site;
  }
  const policy::Effective effective = policy::analysis::EffectiveOf(world, *site);
  std::size_t allowed = 0;
  figures.decide_microseconds = Microseconds(seconds, [&] {
    allowed += policy::Decide(effective, transfer).result == policy::Result::kAllow ? 1U : 0U;
  });
  figures.answer_microseconds = Microseconds(seconds, [&] {
    allowed += policy::Answer(effective, transfer) == policy::Result::kAllow ? 1U : 0U;
  });
  policy::Transfer denied = transfer;
  denied.to.jurisdiction = "VN";
  std::size_t denials = 0;
  figures.deny_microseconds = Microseconds(seconds, [&] {
    denials += policy::Decide(effective, denied).result == policy::Result::kDeny ? 1U : 0U;
  });
  figures.meet_microseconds = Microseconds(seconds, [&] {
    allowed +=
        policy::Meet(world.policies[0], world.policies[1], *site, world.facts).Sources().size();
  });
  if (allowed == 0 || denials == 0) {
    return Error(StatusCode::kInternal, "nothing was decided");
  }
  return figures;
}

// The decisions alone, at the rate of an answer without reasons.
double Floor(const Figures& figures) {
  return static_cast<double>(figures.covered.decisions) * figures.answer_microseconds / 1e6;
}

void PrintJsonFigures(const Figures& figures, std::size_t sites) {
  std::printf(
      "{\"decide_microseconds\": %.3f, \"decide_denied_microseconds\": %.3f, "
      "\"answer_microseconds\": %.3f, \"meet_microseconds\": %.3f, \"reach_seconds\": %.4f, "
      "\"reach_cpu_seconds\": %.4f, "
      "\"reach_found_seconds\": %.4f, \"reach_floor_seconds\": %.4f, \"sites\": %zu, "
      "\"sites_that_reach\": %zu, \"covered\": %s}\n",
      figures.decide_microseconds, figures.deny_microseconds, figures.answer_microseconds,
      figures.meet_microseconds, figures.reach_seconds, figures.reach_cpu_seconds,
      figures.reach_found_seconds, Floor(figures), sites, figures.reached,
      PrintJson(ToJson(figures.covered)).c_str());
}

void PrintTable(const Figures& figures, std::size_t sites) {
  std::printf("one decision, allowed        %10.2f us\n", figures.decide_microseconds);
  std::printf("one decision, denied         %10.2f us, with all its reasons\n",
              figures.deny_microseconds);
  std::printf("the answer alone             %10.2f us\n", figures.answer_microseconds);
  std::printf("one meet of three policies   %10.2f us\n", figures.meet_microseconds);
  std::printf(
      "reach, %3zu sites: never      %10.3f s, %.3f s of CPU, %.1f times its decisions alone\n",
      sites, figures.reach_seconds, figures.reach_cpu_seconds,
      figures.reach_cpu_seconds / Floor(figures));
  std::printf("reach, %3zu of them can       %10.3f s\n", figures.reached,
              figures.reach_found_seconds);
  std::printf("%s", Print(figures.covered).c_str());
}

}  // namespace

int RunPolicyBench(int argc, char** argv) {
  CLI::App program("What the policy engine costs", "domicile-bench-policy");
  std::size_t sites = 100;
  double seconds = 0.3;
  bool json = false;
  program.add_option("--sites", sites)->check(CLI::Range(1, 10000));
  program.add_option("--seconds", seconds)->check(CLI::Range(0.01, 60.0));
  program.add_flag("--json", json);
  CLI11_PARSE(program, argc, argv);
  const StatusOr<Figures> figures = Measure(sites, seconds);
  if (!figures.ok()) {
    std::fprintf(stderr, "domicile-bench-policy: %s\n",
                 std::string(Message(figures.status())).c_str());
    return 3;
  }
  if (json) {
    PrintJsonFigures(*figures, sites);
  } else {
    PrintTable(*figures, sites);
  }
  return 0;
}

}  // namespace domicile

// A measurement that throws has failed, and says so by ending.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) { return domicile::RunPolicyBench(argc, argv); }

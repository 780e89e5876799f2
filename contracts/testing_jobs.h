// Tests only: small job files of every kind, and what to do with them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "contracts/plan.h"

namespace domicile::contracts {

inline Plan MustPlan(const std::string& toml) {
  const StatusOr<Plan> plan = PlanFromJobFile(toml, "job.toml");
  INFO(ToString(plan.status()));
  REQUIRE(plan.ok());
  return *plan;
}

// `text` with its first `from` replaced.
inline std::string Replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  CAPTURE(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

struct Refusal {
  std::string name;
  const char* from;
  const char* to;
  const char* want;  // in the message, which begins with "job.toml:LINE:COLUMN: "
};

inline void CheckRefusals(const std::string& job, std::span<const Refusal> cases) {
  REQUIRE(PlanFromJobFile(job, "job.toml").ok());
  for (const Refusal& c : cases) {
    CAPTURE(c.name);
    const StatusOr<Plan> plan = PlanFromJobFile(Replaced(job, c.from, c.to), "job.toml");
    CHECK(plan.status().code() == StatusCode::kInvalidArgument);
    const std::string message(Message(plan.status()));
    CAPTURE(message);
    CHECK(message.find("job.toml:") == 0);
    CHECK(message.find(c.want) != std::string::npos);
  }
}

// A job of these inputs, label, model and settings of training.
inline std::string JobOf(std::string_view inputs, std::string_view label, std::string_view model,
                         std::string_view training) {
  return "name = \"small\"\npurpose = \"testing\"\ndataset = \"toy\"\nrecipients = [\"sites\"]\n" +
         std::string(inputs) + "[label]\ncolumn = \"label\"\n" + std::string(label) + "[model]\n" +
         std::string(model) + "[training]\n" + std::string(training) +
         "[rounds]\ncount = 5\nquorum = 3\n[update]\nview = \"plain\"\nclip_l2 = 1\n"
         "weight = \"examples\"\n";
}

inline constexpr std::string_view kTwoNumbers =
    "[[feature]]\ncolumn = \"f1\"\nkind = \"number\"\n"
    "[[feature]]\ncolumn = \"f2\"\nkind = \"number\"\n";
inline constexpr std::string_view kGreyPicture = "[image]\nchannels = 1\nheight = 12\nwidth = 10\n";
inline constexpr std::string_view kShortText =
    "[text]\nlength = 8\n"
    "vocabulary = \"07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3\"\n";
inline constexpr std::string_view kThreeClasses = "classes = [\"a\", \"b\", \"c\"]\n";
inline constexpr std::string_view kTwoClasses = "classes = [\"no\", \"yes\"]\n";
inline constexpr std::string_view kNumberLabel = "kind = \"number\"\noffset = 20\nscale = 4\n";
inline constexpr std::string_view kSgd =
    "optimizer = \"sgd\"\nlearning_rate = 0.3\nlocal_steps = 4\nbatch = 2\n";
inline constexpr std::string_view kConvNet = R"(kind = "conv_net"
activation = "relu"
hidden = [7]
dropout = 0.25
seed = 3
[[model.block]]
filters = 4
kernel = 3
padding = 1
norm = "group"
groups = 2
pool = 2
[[model.block]]
filters = 6
kernel = 3
stride = 2
norm = "batch"
)";
inline constexpr std::string_view kEncoder = R"(kind = "encoder"
vocabulary = 30
positions = 16
width = 12
layers = 2
heads = 3
intermediate = 20
pooling = "first"
)";
inline constexpr std::string_view kMlp = "kind = \"mlp\"\nhidden = [6]\nactivation = \"relu\"\n";
inline constexpr std::string_view kAdapters = "lora_rank = 2\nlora_alpha = 4\n";

}  // namespace domicile::contracts

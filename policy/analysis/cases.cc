#include "policy/analysis/cases.h"

#include <algorithm>
#include <utility>

#include "base/toml.h"
#include "policy/engine/explain.h"
#include "policy/engine/request.h"
#include "policy/language/parse.h"

namespace domicile::policy::analysis {
namespace {

// Which of the sources a case uses, by place in the book.
struct Used {
  std::optional<std::size_t> federation;
  std::optional<std::size_t> aggregator;
  std::optional<std::size_t> site;
  std::optional<std::size_t> facts;
};

struct SourceText {
  std::string name;
  std::string text;
  bool is_file = false;
};

std::optional<Result> ResultFromCode(std::string_view code) {
  for (const Result result : {Result::kDeny, Result::kHold, Result::kAllow}) {
    if (Code(result) == code) {
      return result;
    }
  }
  return std::nullopt;
}

}  // namespace

// Reads one file into a book.
class CaseReader {
 public:
  CaseReader(CaseBook& book, const std::string& file, const LoadText& load)
      : book_(book), file_(file), load_(load) {}

  Status Read(std::string_view text) {
    ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(text, file_));
    TomlTable root = document.Root();
    const Used sources = ReadSources(root.Table("sources"), {});
    const Transfer base = ReadTransfer(root.Table("transfer"), {});
    for (TomlTable table : root.Tables("case")) {
      ReadCase(table, sources, base);
    }
    for (TomlTable table : root.Tables("refuse")) {
      ReadRefusal(table);
    }
    RETURN_IF_ERROR(status_);
    return document.Finish();
  }

 private:
  std::string Where(const TomlTable& table) const {
    return file_ + ":" + std::to_string(table.Line());
  }

  // A source that the table gives, as a path or as the text itself.
  std::optional<SourceText> TrySource(TomlTable& table, const std::string& key) {
    if (const auto text = table.TryString(key + "_text")) {
      return SourceText{file_ + ", " + key, *text, false};
    }
    const auto path = table.TryString(key);
    if (!path || !status_.ok()) {
      return std::nullopt;
    }
    StatusOr<std::string> text = load_(*path);
    if (!text.ok()) {
      status_ = Annotate(text.status(), Where(table));
      return std::nullopt;
    }
    return SourceText{*path, *std::move(text), true};
  }

  void ReadPolicy(TomlTable& table, PolicySource kind, std::optional<std::size_t>& used) {
    const std::optional<SourceText> source = TrySource(table, std::string(Code(kind)));
    if (!source) {
      return;
    }
    std::vector<CasePolicy>& all = book_.policies_;
    const auto same = std::find_if(all.begin(), all.end(), [&](const CasePolicy& each) {
      return each.policy.source == kind && each.text == source->text;
    });
    used = static_cast<std::size_t>(same - all.begin());
    if (same != all.end()) {
      return;
    }
    StatusOr<Policy> policy = ParsePolicy(source->text, source->name, kind);
    if (!policy.ok()) {
      status_ = Annotate(policy.status(), Where(table));
      return;
    }
    all.push_back({*std::move(policy), source->text, source->is_file});
  }

  void ReadFacts(TomlTable& table, std::optional<std::size_t>& used) {
    const std::optional<SourceText> source = TrySource(table, "facts");
    if (!source) {
      return;
    }
    std::vector<std::string>& texts = book_.facts_texts_;
    const auto same = std::find(texts.begin(), texts.end(), source->text);
    used = static_cast<std::size_t>(same - texts.begin());
    if (same != texts.end()) {
      return;
    }
    StatusOr<Facts> facts = ParseFacts(source->text, source->name);
    if (!facts.ok()) {
      status_ = Annotate(facts.status(), Where(table));
      return;
    }
    if (book_.digest_) {
      facts->digest = book_.digest_(source->text);
    }
    book_.facts_.push_back(*std::move(facts));
    texts.push_back(source->text);
  }

  Used ReadSources(TomlTable table, Used used) {
    ReadPolicy(table, PolicySource::kFederation, used.federation);
    ReadPolicy(table, PolicySource::kAggregator, used.aggregator);
    ReadPolicy(table, PolicySource::kSite, used.site);
    ReadFacts(table, used.facts);
    return used;
  }

  void ReadCase(TomlTable& table, const Used& sources, const Transfer& base) {
    Case read;
    read.name = table.String("name");
    read.where = Where(table);
    read.expect = ResultFromCode(table.String("expect")).value_or(Result::kDeny);
    if (table.Has("expect") && !ResultFromCode(table.String("expect"))) {
      table.Fail("expect", "must be `allow`, `hold` or `deny`");
    }
    const std::vector<std::string> reasons = table.Strings("reasons");
    for (std::size_t i = 0; i < reasons.size(); ++i) {
      const std::optional<Reason> reason = ReasonFromCode(reasons[i]);
      if (!reason) {
        table.FailItem("reasons", i, "is not a reason code; docs/formats/reason-codes.md has all");
      }
      read.reasons.push_back(reason.value_or(Reason::kNone));
    }
    if (table.Has("reasons") && reasons.empty()) {
      table.Fail("reasons", "must have the code that comes first");
    }
    read.says = table.TryString("says").value_or("");
    const Used used = ReadSources(table, sources);
    read.transfer = base;
    if (auto changes = table.TryTable("transfer")) {
      read.transfer = ReadTransfer(*changes, base);
    }
    const bool has_all = used.federation && used.aggregator && used.site && used.facts;
    if (!has_all) {
      table.Fail("name",
                 "has not all of federation, aggregator, site and facts: name them in "
                 "[sources]");
      return;
    }
    read.federation = *used.federation;
    read.aggregator = *used.aggregator;
    read.site = *used.site;
    read.facts = *used.facts;
    book_.cases_.push_back(std::move(read));
  }

  void ReadRefusal(TomlTable& table) {
    Refusal refusal;
    refusal.name = table.String("name");
    refusal.where = Where(table);
    const std::string source = table.String("source");
    refusal.source = FromCode<PolicySource>(source);
    if (table.Has("source") && !refusal.source && source != "facts") {
      table.Fail("source", "must be `site`, `federation`, `aggregator` or `facts`");
    }
    refusal.text = table.String("text");
    refusal.says = table.String("says");
    book_.refusals_.push_back(std::move(refusal));
  }

  CaseBook& book_;
  const std::string& file_;
  const LoadText& load_;
  Status status_;  // the first source that did not load
};

Status CaseBook::Add(std::string_view text, const std::string& file, const LoadText& load) {
  return CaseReader(*this, file, load).Read(text);
}

Decision CaseBook::Answer(const Case& each) const {
  return Decide(Meet(policies_[each.federation].policy, policies_[each.aggregator].policy,
                     policies_[each.site].policy, facts_[each.facts]),
                each.transfer);
}

Decision CaseBook::AnswerWith(const Case& each, std::size_t exchanged, const Policy& by) const {
  const auto pick = [&](std::size_t index) -> const Policy& {
    return index == exchanged ? by : policies_[index].policy;
  };
  return Decide(
      Meet(pick(each.federation), pick(each.aggregator), pick(each.site), facts_[each.facts]),
      each.transfer);
}

std::string WhyFailed(const Case& each, const Decision& decision) {
  std::vector<Reason> given;
  for (const Finding& finding : decision.findings) {
    given.push_back(finding.reason);
  }
  const auto explain = [&](std::string what) {
    return what + "\n" + ExplainText(decision, each.transfer);
  };
  if (decision.result != each.expect) {
    return explain("expected " + std::string(Code(each.expect)) + ", got " +
                   std::string(Code(decision.result)));
  }
  if (each.reasons.empty() || given.front() != each.reasons.front()) {
    return explain("the first reason is " + std::string(Code(given.front())) + ", not " +
                   std::string(Code(each.reasons.empty() ? Reason::kNone : each.reasons.front())));
  }
  for (const Reason reason : each.reasons) {
    if (std::find(given.begin(), given.end(), reason) == given.end()) {
      return explain("the reason " + std::string(Code(reason)) + " is missing");
    }
  }
  if (ExplainText(decision, each.transfer).find(each.says) == std::string::npos) {
    return explain("the explanation does not say `" + each.says + "`");
  }
  return "";
}

std::string WhyFailed(const Refusal& refusal) {
  const std::string name =
      refusal.source ? std::string(Code(*refusal.source)) : std::string("facts");
  const Status status = refusal.source ? ParsePolicy(refusal.text, name, *refusal.source).status()
                                       : ParseFacts(refusal.text, name).status();
  if (status.ok()) {
    return "it loads, and must not";
  }
  const std::string message(Message(status));
  if (!message.starts_with(name + ":")) {
    return "the error does not begin with the place: " + message;
  }
  return message.find(refusal.says) == std::string::npos
             ? "the error does not say `" + refusal.says + "`: " + message
             : "";
}

}  // namespace domicile::policy::analysis

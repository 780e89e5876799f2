#include "contracts/grant.h"

#include <algorithm>

#include "base/json.h"

namespace domicile::contracts {

namespace {

constexpr std::size_t kLongestText = 4'096;
constexpr std::size_t kLongestFederation = 255;

// A SPIFFE trust domain.
bool IsFederation(std::string_view text) {
  return !text.empty() && text.size() <= kLongestFederation &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
                  c == '_';
         });
}

template <typename Name>
Name ReadName(JsonReader& reader, std::string_view key) {
  StatusOr<Name> name = Name::Parse(reader.String(key));
  if (!name.ok()) {
    reader.Fail(key, "is wrong: " + std::string(Message(name.status())));
    return {};
  }
  return *std::move(name);
}

// Zero means "none" and is never the digest of anything.
Digest ReadDigest(JsonReader& reader, std::string_view key) {
  const StatusOr<Digest> digest = ParseDigest(reader.String(key));
  if (!digest.ok() || digest->IsZero()) {
    reader.Fail(key, "must be 64 lower-case hexadecimal digits, not all zero");
    return {};
  }
  return *digest;
}

bool IsForHere(const GrantBody& body, const GrantBody& wanted) {
  return body.federation == wanted.federation && body.site == wanted.site;
}

// Compares what was granted with what is to be done.
policy::Reason Compare(const GrantBody& body, const GrantBody& wanted) {
  if (!IsForHere(body, wanted) || body.dataset != wanted.dataset ||
      body.dataset_commitment != wanted.dataset_commitment) {
    return policy::Reason::kGrantDataset;
  }
  if (body.job != wanted.job || body.plan != wanted.plan) {
    return policy::Reason::kGrantPlan;
  }
  if (body.trainer != wanted.trainer) {
    return policy::Reason::kGrantTrainer;
  }
  if (body.base_model != wanted.base_model) {
    return policy::Reason::kGrantBaseModel;
  }
  if (body.effective_policy != wanted.effective_policy) {
    return policy::Reason::kGrantPolicy;
  }
  return policy::Reason::kNone;
}

}  // namespace

std::string GrantText(const GrantBody& body) {
  Json json;
  json.Set("v", 1);
  json.Set("kind", "grant");
  json.Set("federation", body.federation);
  json.Set("site", body.site.text());
  json.Set("job", body.job.text());
  json.Set("plan", PrintHex(body.plan));
  json.Set("trainer", PrintHex(body.trainer));
  json.Set("base_model", PrintHex(body.base_model));
  json.Set("dataset", body.dataset.text());
  json.Set("dataset_commitment", PrintHex(body.dataset_commitment));
  json.Set("effective_policy", PrintHex(body.effective_policy));
  json.Set("not_after", PrintTime(body.not_after));
  return PrintJson(json) + "\n";
}

StatusOr<GrantBody> GrantBodyFromText(std::string_view text) {
  if (text.size() > kLongestText || !text.ends_with('\n')) {
    return Error(StatusCode::kInvalidArgument,
                 "grant: must be one line of at most 4096 bytes that ends in a newline");
  }
  StatusOr<Json> json = ParseCanonicalJson(text.substr(0, text.size() - 1));
  if (!json.ok()) {
    return Annotate(json.status(), "grant");
  }
  JsonReader reader(*json, "grant");
  reader.Int("v", 1, 1);
  if (reader.String("kind") != "grant") {
    reader.Fail("kind", "must be `grant`");
  }
  GrantBody body;
  body.federation = reader.String("federation");
  if (!IsFederation(body.federation)) {
    reader.Fail("federation", "must be a trust domain: a-z, 0-9, `.`, `-`, `_`");
  }
  body.site = ReadName<SiteId>(reader, "site");
  body.job = ReadName<JobId>(reader, "job");
  body.plan = ReadDigest(reader, "plan");
  body.trainer = ReadDigest(reader, "trainer");
  body.base_model = ReadDigest(reader, "base_model");
  body.dataset = ReadName<DatasetAlias>(reader, "dataset");
  body.dataset_commitment = ReadDigest(reader, "dataset_commitment");
  body.effective_policy = ReadDigest(reader, "effective_policy");
  const std::string not_after = reader.String("not_after");
  const StatusOr<WallTime> time = ParseTime(not_after);
  // One spelling: milliseconds, so that a text and its digest are one.
  if (!time.ok() || PrintTime(*time) != not_after) {
    reader.Fail("not_after", "must be a UTC time with milliseconds: 2026-12-30T00:00:00.000Z");
  } else {
    body.not_after = *time;
  }
  RETURN_IF_ERROR(reader.Finish());
  return body;
}

GrantCheck VerifyGrant(std::string_view note, std::span<const crypto::NoteVerifier> approvers,
                       std::size_t threshold, const GrantBody& wanted, WallTime now) {
  GrantCheck check;
  const StatusOr<crypto::OpenedNote> opened = crypto::OpenNote(note, approvers);
  // A threshold of nobody would make every text a grant.
  if (!opened.ok() || threshold == 0) {
    return check;
  }
  std::vector<std::string> signers = opened->signers;
  std::sort(signers.begin(), signers.end());
  signers.erase(std::unique(signers.begin(), signers.end()), signers.end());
  if (signers.size() < threshold) {
    return check;
  }
  const StatusOr<GrantBody> body = GrantBodyFromText(opened->text);
  if (!body.ok()) {
    check.reason = policy::Reason::kMalformed;
    return check;
  }
  check.reason = now < body->not_after ? Compare(*body, wanted) : policy::Reason::kGrantExpired;
  if (check.reason == policy::Reason::kNone) {
    check.body = *body;
  }
  return check;
}

}  // namespace domicile::contracts

#include "updates/update.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/json.h"

namespace domicile::updates {
namespace {

constexpr std::array<std::uint8_t, 8> kMagicBytes = {'D', 'O', 'M', 'U', 'P', 'D', 0, 1};
constexpr std::size_t kFixedBytes = kMagicBytes.size() + sizeof(std::uint32_t);
constexpr std::size_t kAlignment = 8;
constexpr std::int64_t kLargestCount = std::int64_t{1} << 40U;
constexpr std::int64_t kLargestU32 = std::numeric_limits<std::uint32_t>::max();

std::uint64_t Padded(std::uint64_t size) {
  return (size + kAlignment - 1) / kAlignment * kAlignment;
}

Status Bad(const std::string& message) { return Error(StatusCode::kInvalidArgument, message); }

// What the JSON reader does not check by types and ranges, so that encoder and parser agree.
Status CheckManifest(const UpdateManifest& manifest) {
  if (manifest.job.IsNone() || manifest.round == 0 || manifest.phase == UpdatePhase::kNone) {
    return Bad("an update manifest needs `job`, `round` and `phase`");
  }
  if (manifest.plan.IsZero() || manifest.base_model.IsZero() || manifest.policy.IsZero()) {
    return Bad("an update manifest needs the digests `plan`, `base_model` and `policy`");
  }
  if (manifest.weight < 0 || manifest.weight > kLargestU32) {
    return Bad("`weight` of an update must be 0 to 2^32 - 1");
  }
  if (manifest.sections.empty()) {
    return Bad("an update needs at least one section");
  }
  Section last = Section::kNone;
  for (const SectionInfo& info : manifest.sections) {
    if (info.section <= last || SectionName(info.section).empty()) {
      return Bad("sections of an update must be known, in order, and each once");
    }
    last = info.section;
    if (EncodedSize(info.encoding) == 0) {
      return Bad("an encoding that this version does not know");
    }
    if (info.count < 1 || info.count > static_cast<std::uint64_t>(kLargestCount)) {
      return Bad("`count` of a section must be 1 to 2^40");
    }
    if (info.scale_bits > kLargestScaleBits) {
      return Bad("`scale_bits` of a section must be 0 to " + std::to_string(kLargestScaleBits));
    }
  }
  return OkStatus();
}

std::string PrintManifest(const UpdateManifest& manifest) {
  JsonArray sections;
  for (const SectionInfo& info : manifest.sections) {
    sections.emplace_back(JsonObject{{"count", info.count},
                                     {"encoding", EncodingName(info.encoding)},
                                     {"name", SectionName(info.section)},
                                     {"scale_bits", info.scale_bits}});
  }
  return PrintJson(JsonObject{{"base_model", PrintHex(manifest.base_model)},
                              {"job", manifest.job.text()},
                              {"phase", UpdatePhaseName(manifest.phase)},
                              {"plan", PrintHex(manifest.plan)},
                              {"policy", PrintHex(manifest.policy)},
                              {"round", manifest.round},
                              {"sections", std::move(sections)},
                              {"v", 1},
                              {"weight", manifest.weight}});
}

StatusOr<SectionInfo> ParseSection(const Json& json, const std::string& where) {
  JsonReader reader(json, where);
  SectionInfo info;
  info.count = static_cast<std::uint64_t>(reader.Int("count", 1, kLargestCount));
  info.encoding = EncodingFromName(reader.String("encoding")).value_or(Encoding::kNone);
  info.section = SectionFromName(reader.String("name")).value_or(Section::kNone);
  info.scale_bits = static_cast<std::uint32_t>(reader.Int("scale_bits", 0, kLargestScaleBits));
  RETURN_IF_ERROR(reader.Finish());
  return info;
}

Digest ReadDigest(JsonReader& reader, std::string_view key) {
  const StatusOr<Digest> digest = ParseDigest(reader.String(key));
  if (!digest.ok()) {
    reader.Merge(Annotate(digest.status(), reader.where() + "." + std::string(key)));
    return {};
  }
  return *digest;
}

StatusOr<UpdateManifest> ParseManifest(std::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseCanonicalJson(text));
  JsonReader reader(json, "manifest");
  reader.Int("v", 1, 1);
  UpdateManifest manifest;
  StatusOr<JobId> job = JobId::Parse(reader.String("job"));
  reader.Merge(job.status());
  manifest.job = job.ok() ? *std::move(job) : JobId();
  manifest.plan = ReadDigest(reader, "plan");
  manifest.round = static_cast<RoundNumber>(reader.Int("round", 1, kLargestU32));
  manifest.phase = UpdatePhaseFromName(reader.String("phase")).value_or(UpdatePhase::kNone);
  manifest.base_model = ReadDigest(reader, "base_model");
  manifest.policy = ReadDigest(reader, "policy");
  manifest.weight = reader.Int("weight", 0, kLargestU32);
  const JsonArray& sections = reader.Array("sections");
  for (std::size_t i = 0; i < sections.size(); ++i) {
    StatusOr<SectionInfo> info =
        ParseSection(sections[i], "manifest.sections[" + std::to_string(i) + "]");
    reader.Merge(info.status());
    if (!info.ok()) {
      break;
    }
    manifest.sections.push_back(*info);
  }
  RETURN_IF_ERROR(reader.Finish());
  RETURN_IF_ERROR(CheckManifest(manifest));
  return manifest;
}

std::uint64_t PayloadSize(const SectionInfo& info) {
  return info.count * EncodedSize(info.encoding);  // at most 2^43
}

std::uint64_t FileSize(const UpdateManifest& manifest, std::size_t manifest_size) {
  std::uint64_t size = Padded(kFixedBytes + manifest_size);
  for (const SectionInfo& info : manifest.sections) {
    size += Padded(PayloadSize(info));
  }
  return size;
}

Status CheckPadding(ByteSpan bytes, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t i = first; i < end; ++i) {
    if (bytes[i] != 0) {
      return Bad("padding at byte " + std::to_string(i) + " of the update is not zero");
    }
  }
  return OkStatus();
}

}  // namespace

std::string_view SectionName(Section section) {
  switch (section) {
    case Section::kNone:
      return "";
    case Section::kDelta:
      return "delta";
    case Section::kMetrics:
      return "metrics";
    case Section::kStatistics:
      return "statistics";
    case Section::kHistogram:
      return "histogram";
  }
  return "";
}

std::optional<Section> SectionFromName(std::string_view name) {
  for (const Section section :
       {Section::kDelta, Section::kMetrics, Section::kStatistics, Section::kHistogram}) {
    if (SectionName(section) == name) {
      return section;
    }
  }
  return std::nullopt;
}

std::string_view UpdatePhaseName(UpdatePhase phase) {
  switch (phase) {
    case UpdatePhase::kNone:
      return "";
    case UpdatePhase::kStatistics:
      return "statistics";
    case UpdatePhase::kTrain:
      return "train";
    case UpdatePhase::kEvaluate:
      return "evaluate";
  }
  return "";
}

std::optional<UpdatePhase> UpdatePhaseFromName(std::string_view name) {
  for (const UpdatePhase phase :
       {UpdatePhase::kStatistics, UpdatePhase::kTrain, UpdatePhase::kEvaluate}) {
    if (UpdatePhaseName(phase) == name) {
      return phase;
    }
  }
  return std::nullopt;
}

const SectionView* UpdateView::Find(Section section) const {
  const auto found = std::find_if(sections.begin(), sections.end(), [&](const SectionView& view) {
    return view.info.section == section;
  });
  return found == sections.end() ? nullptr : &*found;
}

StatusOr<std::uint64_t> UpdateSize(const UpdateManifest& manifest) {
  RETURN_IF_ERROR(CheckManifest(manifest));
  return FileSize(manifest, PrintManifest(manifest).size());
}

StatusOr<Bytes> EncodeUpdate(const UpdateManifest& manifest, std::span<const ByteSpan> payloads) {
  RETURN_IF_ERROR(CheckManifest(manifest));
  if (payloads.size() != manifest.sections.size()) {
    return Bad("an update needs one payload for each section");
  }
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    if (payloads[i].size() != PayloadSize(manifest.sections[i])) {
      return Bad("the payload of section `" +
                 std::string(SectionName(manifest.sections[i].section)) + "` has " +
                 std::to_string(payloads[i].size()) + " bytes, not " +
                 std::to_string(PayloadSize(manifest.sections[i])));
    }
  }
  const std::string text = PrintManifest(manifest);
  DOMICILE_CHECK(text.size() <= kLargestManifest);  // four sections and names of 63 characters fit
  Bytes bytes;
  bytes.reserve(FileSize(manifest, text.size()));
  bytes.assign(kMagicBytes.begin(), kMagicBytes.end());
  AppendU32(bytes, static_cast<std::uint32_t>(text.size()));
  bytes.insert(bytes.end(), text.begin(), text.end());
  bytes.resize(Padded(bytes.size()), 0);
  for (const ByteSpan payload : payloads) {
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    bytes.resize(Padded(bytes.size()), 0);
  }
  return bytes;
}

StatusOr<UpdateView> ParseUpdate(ByteSpan bytes) {
  if (bytes.size() < kFixedBytes ||
      !std::equal(kMagicBytes.begin(), kMagicBytes.end(), bytes.begin())) {
    return Bad("not an update file of version 1");
  }
  const std::uint32_t manifest_size = ReadU32(bytes.subspan(kMagicBytes.size()));
  if (manifest_size > kLargestManifest || Padded(kFixedBytes + manifest_size) > bytes.size()) {
    return Bad("the manifest of the update is cut off or longer than " +
               std::to_string(kLargestManifest) + " bytes");
  }
  UpdateView update;
  ASSIGN_OR_RETURN(update.manifest,
                   ParseManifest(AsText(bytes.subspan(kFixedBytes, manifest_size))));
  const std::uint64_t wanted = FileSize(update.manifest, manifest_size);
  if (wanted != bytes.size()) {
    return Bad("the update has " + std::to_string(bytes.size()) + " bytes, its manifest says " +
               std::to_string(wanted));
  }
  std::uint64_t at = Padded(kFixedBytes + manifest_size);
  RETURN_IF_ERROR(CheckPadding(bytes, kFixedBytes + manifest_size, at));
  for (const SectionInfo& info : update.manifest.sections) {
    const std::uint64_t size = PayloadSize(info);
    update.sections.push_back({info, bytes.subspan(at, size)});
    RETURN_IF_ERROR(CheckPadding(bytes, at + size, at + Padded(size)));
    at += Padded(size);
  }
  return update;
}

StatusOr<std::uint64_t> CapacityBits(const UpdateManifest& manifest,
                                     std::span<const SectionGrid> grids) {
  RETURN_IF_ERROR(CheckManifest(manifest));
  std::uint64_t bits = 0;
  for (const SectionInfo& info : manifest.sections) {
    const auto found = std::find_if(grids.begin(), grids.end(), [&](const SectionGrid& grid) {
      return grid.section == info.section;
    });
    if (found == grids.end() || found->grid.ScaleBits() != info.scale_bits) {
      return Bad("section `" + std::string(SectionName(info.section)) +
                 "` does not lie on a grid of the plan");
    }
    // At most 4 * 2^40 * 63.
    bits += info.count * found->grid.BitsPerNumber();
  }
  return bits;
}

}  // namespace domicile::updates

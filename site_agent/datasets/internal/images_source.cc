// Folders of picture files, with a manifest that says which, or a sub-folder a class.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "site_agent/datasets/csv.h"
#include "site_agent/datasets/internal/sources.h"
#include "site_agent/datasets/picture.h"

namespace domicile::site_agent::internal {
namespace {

using contracts::DatasetDescription;

constexpr std::uint64_t kMaxPictureBytes = 256 << 20;
constexpr std::string_view kImage = "image";
constexpr std::string_view kLabel = "label";

// What a picture's cell is: the bytes of its file, or nothing where it cannot be read and may be
// missing.
class PictureReader {
 public:
  PictureReader(const DatasetDescription& description, RecordWriter& out)
      : description_(description), out_(out) {}

  // `place` is where the manifest names it, empty if there is none.
  std::string Read(const std::string& folder, std::string_view name, const std::string& place) {
    StatusOr<std::string> file = ReadWhole(folder, name);
    if (file.ok()) {
      return *std::move(file);
    }
    std::string line = place + (place.empty() ? "" : ": ") + JoinPath(folder, Visible(name)) +
                       ": " + std::string(Message(file.status()));
    if (description_.unreadable == contracts::Unreadable::kRefuse) {
      out_.NoteFault(std::move(line));
    } else {
      out_.NoteNotice(std::move(line) + "; counted as missing");
    }
    return {};
  }

 private:
  static StatusOr<std::string> ReadWhole(const std::string& folder, std::string_view name) {
    if (name.starts_with('/') || name.find('\0') != std::string_view::npos) {
      return Error(StatusCode::kInvalidArgument, "not a name within the folder of pictures");
    }
    for (const std::string_view part : Split(name, '/')) {
      if (part == "..") {
        return Error(StatusCode::kInvalidArgument, "leads out of the folder of pictures");
      }
    }
    StatusOr<std::string> file = ReadFile(JoinPath(folder, name), kMaxPictureBytes);
    if (!file.ok()) {
      const bool is_absent = file.status().code() == StatusCode::kNotFound;
      return Error(file.status().code(),
                   is_absent ? "there is no such file" : "the file cannot be read");
    }
    RETURN_IF_ERROR(DecodePicture(AsBytes(*file)).status());
    return file;
  }

  const DatasetDescription& description_;
  RecordWriter& out_;
};

Status ReadManifest(const DatasetDescription& description, const std::string& manifest,
                    RecordWriter& out) {
  ASSIGN_OR_RETURN(CsvReader::Source source, FileSource(manifest));
  CsvReader reader(std::move(source), manifest, description.delimiter);
  std::vector<std::string> cells;
  ASSIGN_OR_RETURN(const bool has_header, reader.Next(cells));
  if (!has_header) {
    return Error(StatusCode::kInvalidArgument,
                 manifest + ": the file is empty; its first line must name the columns");
  }
  RETURN_IF_ERROR(out.SetColumns(manifest + ":1", cells));
  const auto* const described = description.FindColumn(kImage);
  const std::string names(described == nullptr ? kImage : described->Local());
  const auto found = std::find(cells.begin(), cells.end(), names);
  if (found == cells.end()) {
    return Error(StatusCode::kInvalidArgument,
                 manifest + ":1: no column `" + Visible(names) + "` of picture files; found " +
                     ListColumns(cells) +
                     "; say which it is by `local` of the [[column]] named `image`");
  }
  const auto column = static_cast<std::size_t>(found - cells.begin());
  const std::string folder = contracts::PictureFolder(description, manifest);
  PictureReader pictures(description, out);
  out.BeginFile(manifest, ":");
  while (true) {
    ASSIGN_OR_RETURN(const bool has_record, reader.Next(cells));
    if (!has_record) {
      return OkStatus();
    }
    out.BeginRecord(reader.Line());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool is_file = i == column && !cells[i].empty();
      out.AddCell(
          is_file ? pictures.Read(folder, cells[i], manifest + ":" + std::to_string(reader.Line()))
                  : cells[i]);
    }
  }
}

StatusOr<std::vector<std::string>> ListFolders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error)) {
      names.push_back(it->path().filename().string());
    }
  }
  if (error) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + folder + "` cannot be read as a folder: " + error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status ReadClassFolders(const DatasetDescription& description, RecordWriter& out) {
  const std::string& root = description.folder;
  RETURN_IF_ERROR(
      out.SetColumns(root, std::vector<std::string>{std::string(kImage), std::string(kLabel)}));
  ASSIGN_OR_RETURN(const std::vector<std::string> classes, ListFolders(root));
  if (classes.empty()) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + root + "` has no folders; each must be a class, with its pictures in it");
  }
  PictureReader pictures(description, out);
  for (const std::string& label : classes) {
    const std::string folder = JoinPath(root, label);
    ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(folder));
    out.BeginFile(folder, " picture ");
    for (std::size_t i = 0; i < files.size(); ++i) {
      out.BeginRecord(i + 1);
      out.AddCell(pictures.Read(folder, files[i], {}));
      out.AddCell(label);
    }
  }
  return OkStatus();
}

}  // namespace

Status ReadImages(const DatasetDescription& description, RecordWriter& out) {
  if (description.files.empty()) {
    return ReadClassFolders(description, out);
  }
  for (const std::string& manifest : description.files) {
    RETURN_IF_ERROR(ReadManifest(description, manifest, out));
  }
  return OkStatus();
}

}  // namespace domicile::site_agent::internal

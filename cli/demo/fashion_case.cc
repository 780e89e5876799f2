// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017) as Debian packages it, cut up for five laboratories. A
// site's file holds one of the set's test pictures behind every four training pictures, so that
// `test_every = 5` measures on pictures that no model was trained on.
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <zlib.h>

#include "base/file.h"
#include "base/random.h"
#include "cli/demo/demo_case.h"
#include "cli/demo/partition.h"

namespace domicile::cli {

namespace {

constexpr std::size_t kSites = 5;
constexpr std::size_t kTestEvery = 5;
constexpr std::uint32_t kTrainingPictures = 12'000;
constexpr std::size_t kPixels = std::size_t{28} * 28;
constexpr std::size_t kImageHeader = 16;
constexpr std::size_t kLabelHeader = 8;
constexpr std::uint64_t kSeed = 1;

struct Pictures {
  Bytes images;  // [count, kPixels], without the header of the file
  Bytes labels;
  std::size_t Count() const { return labels.size(); }
};

std::uint32_t BigEndian(ByteSpan at) {
  return std::uint32_t{at[0]} << 24U | std::uint32_t{at[1]} << 16U | std::uint32_t{at[2]} << 8U |
         std::uint32_t{at[3]};
}

void AppendBigEndian(Bytes& out, std::uint32_t value) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

// At most `count` elements of `size` bytes of a packed IDX file, behind its header.
StatusOr<Bytes> ReadIdx(const std::string& path, std::size_t header, std::size_t size,
                        std::size_t count) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return Error(StatusCode::kNotFound,
                 "Fashion-MNIST is not here (`" + path +
                     "`); install it with `apt-get install dataset-fashion-mnist`");
  }
  Bytes bytes(header + size * count);
  const int read = gzread(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  if (read < static_cast<int>(header) || BigEndian(ByteSpan(bytes).subspan(4)) < count ||
      read != static_cast<int>(bytes.size())) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + path + "` does not hold " + std::to_string(count) + " elements");
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  return bytes;
}

StatusOr<Pictures> ReadPictures(const std::string& name, std::size_t count) {
  const std::string start = "/usr/share/datasets/fashion-mnist/" + name;
  Pictures pictures;
  ASSIGN_OR_RETURN(pictures.images,
                   ReadIdx(start + "-images-idx3-ubyte.gz", kImageHeader, kPixels, count));
  ASSIGN_OR_RETURN(pictures.labels,
                   ReadIdx(start + "-labels-idx1-ubyte.gz", kLabelHeader, 1, count));
  return pictures;
}

// The two IDX files of one site.
class SiteFiles {
 public:
  void Add(const Pictures& from, std::size_t picture) {
    const auto begin = from.images.begin() + static_cast<std::ptrdiff_t>(picture * kPixels);
    images_.insert(images_.end(), begin, begin + static_cast<std::ptrdiff_t>(kPixels));
    labels_.push_back(from.labels[picture]);
  }

  std::map<std::string, Bytes> Take() {
    const auto count = static_cast<std::uint32_t>(labels_.size());
    Bytes images = {0, 0, 8, 3};
    for (const std::uint32_t size : {count, 28U, 28U}) {
      AppendBigEndian(images, size);
    }
    images.insert(images.end(), images_.begin(), images_.end());
    Bytes labels = {0, 0, 8, 1};
    AppendBigEndian(labels, count);
    labels.insert(labels.end(), labels_.begin(), labels_.end());
    static constexpr std::string_view kDescription =
        "# A part of Fashion-MNIST. Keys: docs/formats/dataset.md.\n"
        "[dataset]\nalias = \"fashion\"\nversion = \"2020-05-23\"\nsource = \"idx\"\n"
        "files = [\"images-idx3-ubyte\"]\nlabels = [\"labels-idx1-ubyte\"]\ntest_every = 5\n";
    return {{"dataset.toml", Bytes(kDescription.begin(), kDescription.end())},
            {"images-idx3-ubyte", std::move(images)},
            {"labels-idx1-ubyte", std::move(labels)}};
  }

 private:
  Bytes images_;
  Bytes labels_;
};

Partition Cut(Split split, const Pictures& pictures) {
  SeededRandom random(kSeed);
  const std::vector<std::uint32_t> labels(pictures.labels.begin(), pictures.labels.end());
  switch (split) {
    case Split::kNone:
    case Split::kIid:
      break;
    case Split::kDirichlet:
      return SplitByDirichlet(labels, kSites, random);
    case Split::kTwoClasses:
      return SplitByClasses(labels, kSites, random);
  }
  return SplitEvenly(labels.size(), kSites, random);
}

// Measured with NumPy by people who wrote the same network again, for this number of pictures and
// rounds, on all 10 000 test pictures.
std::string Reference(Split split) {
  struct Figures {
    const char* alone;
    const char* federated;
  };
  Figures figures = {"0.790", "0.818"};
  switch (split) {
    case Split::kNone:
    case Split::kIid:
      break;
    case Split::kDirichlet:
      figures = {"0.633", "0.781"};
      break;
    case Split::kTwoClasses:
      figures = {"0.304", "0.719"};
      break;
  }
  return std::string("  The same network in NumPy, cut up in the same way: one site alone ") +
         figures.alone + " on average, federated " + figures.federated +
         ",\n  all pictures in one place 0.837.\n";
}

}  // namespace

StatusOr<DemoCase> FashionCase(const CaseOptions& options) {
  const std::uint32_t rows = options.rows == 0 ? kTrainingPictures : options.rows;
  ASSIGN_OR_RETURN(DemoCase demo, LaboratoryCase(options, "fashion", kSites));
  ASSIGN_OR_RETURN(std::string job, ReadExample(options, "laboratories/fashion.job.toml"));
  ASSIGN_OR_RETURN(demo.job, WithRounds(std::move(job), options.rounds));
  ASSIGN_OR_RETURN(const Pictures training, ReadPictures("train", rows));
  ASSIGN_OR_RETURN(const Pictures test, ReadPictures("t10k", rows / (kTestEvery - 1)));
  const Partition partition = Cut(options.split, training);
  std::size_t next_test = 0;
  for (std::size_t site = 0; site < kSites; ++site) {
    SiteFiles files;
    for (std::size_t i = 0; i < partition[site].size(); ++i) {
      files.Add(training, partition[site][i]);
      if (i % (kTestEvery - 1) == kTestEvery - 2 && next_test < test.Count()) {
        files.Add(test, next_test++);
      }
    }
    demo.files[demo.sites[site].name] = files.Take();
  }
  demo.reference = rows == kTrainingPictures && options.rounds == 0 ? Reference(options.split) : "";
  return demo;
}

}  // namespace domicile::cli

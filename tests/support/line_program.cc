// A foreign program (docs/formats/trainer-program.md) as a site would write one, with code of its
// own: fits y = w x by gradient descent on the mean squared error, batch after batch in the order
// of the table, the short last one included.
//
// usage: DOMICILE_TASK=FILE line_program LEARNING_RATE
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace {

using Json = nlohmann::json;

struct Row {
  double x = 0;
  double y = 0;
};

std::vector<Row> ReadRows(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // the header
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    Row row;
    if (std::sscanf(line.c_str(), "%lf,%lf", &row.x, &row.y) == 2) {
      rows.push_back(row);
    }
  }
  return rows;
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The one number of a model whose only tensor is `w`: 8 bytes of length, a header, the number.
float ReadWeight(const std::string& path) {
  const std::string bytes = ReadAll(path);
  float weight = 0;
  std::memcpy(&weight, bytes.data() + bytes.size() - sizeof weight, sizeof weight);
  return weight;
}

void WriteWeight(const std::string& path, float value) {
  const Json header = {{"w", {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {0, 4}}}}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << text;
  file.write(reinterpret_cast<const char*>(&value), sizeof value);
}

// Returns the exit code.
int Train(const Json& task, double rate) {
  const std::vector<Row> rows = ReadRows(task.at("data").at(0));
  if (task.at("v") != 1 || rows.empty()) {
    return 3;
  }
  const float received = ReadWeight(task.at("model"));
  double weight = received;
  double loss = 0;
  for (const Row& row : rows) {
    loss += std::pow(weight * row.x - row.y, 2);
  }
  const std::size_t batch =
      task.at("batch") == 0 ? rows.size() : task.at("batch").get<std::size_t>();
  for (int epoch = 0; epoch < task.at("local_epochs").get<int>(); ++epoch) {
    for (std::size_t first = 0; first < rows.size(); first += batch) {
      const std::size_t end = std::min(first + batch, rows.size());
      double gradient = 0;
      for (std::size_t i = first; i < end; ++i) {
        gradient += 2 * rows[i].x * (weight * rows[i].x - rows[i].y);
      }
      weight -= rate * gradient / static_cast<double>(end - first);
    }
  }
  WriteWeight(task.at("delta"), static_cast<float>(weight - received));
  const Json answer = {{"v", 1},
                       {"rows", rows.size()},
                       {"examples", rows.size()},
                       {"loss_sum_micro", std::llround(loss * 1e6)}};
  std::ofstream(task.at("answer").get<std::string>(), std::ios::trunc) << answer.dump();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const task_file = std::getenv("DOMICILE_TASK");
  if (argc != 2 || task_file == nullptr) {
    std::fprintf(stderr, "usage: DOMICILE_TASK=FILE line_program LEARNING_RATE\n");
    return 2;
  }
  try {
    return Train(Json::parse(ReadAll(task_file)), std::strtod(argv[1], nullptr));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "line_program: %s\n", error.what());
    return 3;
  }
}

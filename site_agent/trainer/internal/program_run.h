// The launcher's own side, in its process: its loop, and one run. No thread, no allocation that
// could matter: it lives as the first process of a namespace.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/file.h"
#include "site_agent/trainer/program_launcher.h"

namespace domicile::site_agent::internal {

// Between trainer and launcher, over pipes between two processes of one program.
enum class OrderKind : std::uint32_t { kNone = 0, kRun = 1, kCancel = 2 };
enum class ReportKind : std::uint32_t { kNone = 0, kReady = 1, kProgress = 2, kEnd = 3 };

struct Order {
  OrderKind kind = OrderKind::kNone;
  std::uint32_t dataset = 0;
};

struct Report {
  ReportKind kind = ReportKind::kNone;
  std::uint32_t value = 0;  // per cent, or a ProgramEnd
  std::uint32_t detail = 0;
};

// All of a record over a pipe; false at its end.
bool ReadRecord(int pipe, void* record, std::size_t bytes);
bool WriteRecord(int pipe, const void* record, std::size_t bytes);

// Lines of whole numbers, from bytes that a stranger wrote: the greatest so far, up to 100.
// Whatever is no such line changes nothing.
class ProgressLines {
 public:
  // True if the number has risen.
  bool Take(std::string_view bytes);
  std::uint32_t Percent() const { return percent_; }

 private:
  void EndLine();

  std::uint32_t percent_ = 0;
  std::uint32_t value_ = 0;
  std::uint32_t digits_ = 0;
  bool odd_ = false;
};

// Takes orders until their pipe ends.
[[noreturn]] void ServeOrders(const ProgramSpec& spec, int executable, int orders, int reports);

}  // namespace domicile::site_agent::internal

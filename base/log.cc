#include "base/log.h"

#include <string>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/text.h"

namespace domicile {

namespace {

constexpr std::size_t kLongestEntry = 4096;

}  // namespace

void StartLog(std::string_view program) {
  spdlog::drop(std::string(program));  // a second start replaces the first
  auto logger = spdlog::stderr_logger_mt(std::string(program));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %n %-7l %v", spdlog::pattern_time_type::utc);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void Log(LogLevel level, std::string_view text) {
  // A line break or an escape sequence inside would forge entries or drive a terminal.
  const std::string message = Visible(text, kLongestEntry);
  switch (level) {
    case LogLevel::kInfo:
      spdlog::info("{}", message);
      return;
    case LogLevel::kWarning:
      spdlog::warn("{}", message);
      return;
    case LogLevel::kError:
      spdlog::error("{}", message);
      return;
  }
}

}  // namespace domicile

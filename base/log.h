// The operator's log: one line an entry on standard error, for people and journals. It is not the
// audit log. Lines never hold a cell value, key or token. Thread-safe.
#pragma once

#include <string_view>

namespace domicile {

enum class LogLevel : unsigned char { kInfo, kWarning, kError };

// `program` stands in every line: "2026-12-01T09:30:00.250Z agent info  connected ...".
void StartLog(std::string_view program);
void Log(LogLevel level, std::string_view message);
inline void LogInfo(std::string_view message) { Log(LogLevel::kInfo, message); }
inline void LogWarning(std::string_view message) { Log(LogLevel::kWarning, message); }
inline void LogError(std::string_view message) { Log(LogLevel::kError, message); }

}  // namespace domicile

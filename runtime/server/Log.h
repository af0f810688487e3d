//===- Log.h - the server's log: lines for people, or JSON lines ------------===//
//
//   log.info("listening", {{"url", url}});
//   2026-01-31T12:00:00.123Z INFO listening url=http://127.0.0.1:8000
//   {"time":"2026-01-31T12:00:00.123Z","level":"info","event":"listening","url":"http://..."}
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_LOG_H
#define LLMRT_SERVER_LOG_H

#include <initializer_list>
#include <mutex>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <utility>

namespace llmrt::server {

/// Every member may be called from any thread; a line is written whole.
class Log {
public:
  enum class Level { Debug, Info, Warning, Error };
  using Fields = std::initializer_list<std::pair<std::string_view, nlohmann::ordered_json>>;

  Log(std::ostream &out, Level level, bool json) : out_(out), level_(level), json_(json) {}

  void debug(std::string_view event, Fields fields = {}) { write(Level::Debug, event, fields); }
  void info(std::string_view event, Fields fields = {}) { write(Level::Info, event, fields); }
  void warning(std::string_view event, Fields fields = {}) { write(Level::Warning, event, fields); }
  void error(std::string_view event, Fields fields = {}) { write(Level::Error, event, fields); }
  bool shows(Level level) const { return level >= level_; }

private:
  void write(Level level, std::string_view event, Fields fields);
  std::ostream &out_;
  Level level_;
  bool json_;
  std::mutex mutex_;
};

/// "debug", "info", "warning", "error"; Info for anything else.
Log::Level logLevel(std::string_view name);

} // namespace llmrt::server

#endif // LLMRT_SERVER_LOG_H

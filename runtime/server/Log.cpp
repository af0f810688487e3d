#include "runtime/server/Log.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace llmrt::server {
namespace {

constexpr const char *lower[] = {"debug", "info", "warning", "error"};
constexpr const char *upper[] = {"DEBUG", "INFO", "WARNING", "ERROR"};

/// UTC with milliseconds, as RFC 3339 writes it.
std::string timestamp() {
  auto now = std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  char text[48];
  size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(milliseconds));
  return text;
}

std::string dump(const nlohmann::ordered_json &value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Words as they are; anything that could be mistaken for more than one value in quotes.
std::string plain(const nlohmann::ordered_json &value) {
  if (!value.is_string())
    return dump(value);
  const auto &text = value.get_ref<const std::string &>();
  bool simple = !text.empty();
  for (unsigned char c : text)
    simple = simple && c > ' ' && c != '"' && c != '=' && c != '\\' && c < 0x7f;
  return simple ? text : dump(value);
}

} // namespace

Log::Level logLevel(std::string_view name) {
  for (int i = 0; i < 4; ++i)
    if (name == lower[i])
      return static_cast<Log::Level>(i);
  return Log::Level::Info;
}

void Log::write(Level level, std::string_view event, Fields fields) {
  if (!shows(level))
    return;
  std::string line;
  auto index = static_cast<size_t>(level);
  if (json_) {
    nlohmann::ordered_json object = {
        {"time", timestamp()}, {"level", lower[index]}, {"event", event}};
    for (const auto &[name, value] : fields)
      object[std::string(name)] = value;
    line = dump(object);
  } else {
    line = timestamp() + " " + upper[index] + " " + std::string(event);
    for (const auto &[name, value] : fields)
      line += " " + std::string(name) + "=" + plain(value);
  }
  line += '\n';
  std::lock_guard lock(mutex_);
  out_ << line << std::flush;
}

} // namespace llmrt::server

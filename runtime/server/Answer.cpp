#include "runtime/server/Answer.h"

namespace llmrt::server {

std::string dump(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void appendEvent(std::string &events, const Json &json) {
  events += "data: ";
  events += dump(json);
  events += "\n\n";
}

void appendEvent(std::string &events, std::string_view name, const Json &json) {
  events += "event: ";
  events += name;
  events += '\n';
  appendEvent(events, json);
}

void Answer::error(const ApiError &error, std::string &events) {
  events += "data: " + error.body() + "\n\n";
}

} // namespace llmrt::server

#include "runtime/server/ApiError.h"

#include <nlohmann/json.hpp>

namespace llmrt::server {

std::string ApiError::body() const {
  auto orNull = [](const std::string &text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json json;
  json["error"] = {
      {"message", message}, {"type", type}, {"param", orNull(param)}, {"code", orNull(code)}};
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

ApiError badRequest(std::string message, std::string param, std::string code) {
  return {400,
          std::move(message),
          "invalid_request_error",
          std::move(param),
          std::move(code),
          /*retryAfter=*/0};
}

ApiError serverError(std::string message) {
  return {500, std::move(message), "server_error", "", "", /*retryAfter=*/0};
}

ApiError drainingError() {
  return {503, "the server is shutting down", "server_error", "", "draining", 5};
}

ApiError fromStatus(const Status &status, std::string param) {
  switch (status.code()) {
  case StatusCode::InvalidArgument:
  case StatusCode::Unsupported:
  case StatusCode::ResourceExhausted: // it can never fit: the message has the numbers
    return badRequest(status.message(), std::move(param));
  case StatusCode::QueueFull:
    return {429, status.message(), "rate_limit_error", "", "queue_full", /*retryAfter=*/5};
  case StatusCode::DeadlineExceeded:
    return {408, status.message(), "timeout_error", "", "deadline_exceeded", 0};
  default:
    return serverError(status.message());
  }
}

const char *reasonPhrase(int status) {
  switch (status) {
  case 200:
    return "OK";
  case 204:
    return "No Content";
  case 400:
    return "Bad Request";
  case 401:
    return "Unauthorized";
  case 403:
    return "Forbidden";
  case 404:
    return "Not Found";
  case 405:
    return "Method Not Allowed";
  case 408:
    return "Request Timeout";
  case 413:
    return "Content Too Large";
  case 415:
    return "Unsupported Media Type";
  case 417:
    return "Expectation Failed";
  case 429:
    return "Too Many Requests";
  case 431:
    return "Request Header Fields Too Large";
  case 500:
    return "Internal Server Error";
  case 501:
    return "Not Implemented";
  case 503:
    return "Service Unavailable";
  default:
    return "Unknown";
  }
}

} // namespace llmrt::server

//===- Exchange.h - one HTTP request and its answer -------------------------===//
//
// What the API's handlers see of HTTP. All members may be called from any thread; answers are put
// on the connection in the order of the calls.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_EXCHANGE_H
#define LLMRT_SERVER_EXCHANGE_H

#include "runtime/server/ApiError.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace llmrt::server {

struct HttpRequest {
  std::string method, path, query;
  std::string authorization, apiKey; ///< headers Authorization and X-Api-Key
  std::string origin, contentType;
  std::string body;
  std::string id; ///< X-Request-Id of the client, or one of ours
  std::chrono::steady_clock::time_point arrival = std::chrono::steady_clock::now();
};

struct HttpResponse {
  int status = 200;
  std::string contentType = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

class Exchange {
public:
  virtual ~Exchange() = default;

  const HttpRequest &request() const { return request_; }
  /// Gives the body away, so that it need not stay in memory.
  std::string takeBody() { return std::move(request_.body); }

  /// A whole answer.
  virtual void respond(HttpResponse response) = 0;
  void respond(const ApiError &error) {
    HttpResponse response{error.status, "application/json", error.body()};
    if (error.retryAfter > 0)
      response.headers.emplace_back("Retry-After", std::to_string(error.retryAfter));
    if (error.status == 401)
      response.headers.emplace_back("WWW-Authenticate", "Bearer");
    respond(std::move(response));
  }
  /// Begins an answer of events (SSE) whose data comes by write(); comments keep it alive.
  virtual void startStream() = 0;
  virtual void write(std::string data) = 0;
  virtual void endStream() = 0;

  /// Called once, if the client goes before the answer is complete.
  virtual void onDisconnect(std::function<void()> action) = 0;
  /// Runs \p action on the connection's strand: one at a time, in order.
  virtual void post(std::function<void()> action) = 0;

protected:
  HttpRequest request_;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_EXCHANGE_H

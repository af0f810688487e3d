//===- Api.h - the endpoints ------------------------------------------------===//
#ifndef LLMRT_SERVER_API_H
#define LLMRT_SERVER_API_H

#include "runtime/server/CompletionRequest.h"
#include "runtime/server/RequestHandler.h"
#include "runtime/server/Served.h"
#include "runtime/server/TextEndpoints.h"
#include "runtime/server/WorkerPool.h"

#include <atomic>

namespace llmrt::server {

class Api final : public RequestHandler {
public:
  Api(const ServerOptions &options, Log &log);
  ~Api() override;

  /// From now on requests are answered.
  void serve(std::unique_ptr<Served> served);
  /// New requests get 503; running ones go on.
  void drain() { draining_.store(true); }
  /// Waits for requests that are being prepared, and ends the engine's.
  void stop();
  /// Requests that are not answered yet.
  uint32_t inFlight() const;
  /// Told to /metrics.
  void countConnections(std::function<size_t()> count) { connections_ = std::move(count); }

  std::optional<ApiError> checkHead(const HttpRequest &request) override;
  void handle(std::shared_ptr<Exchange> exchange) override;

private:
  using Handler = void (Api::*)(std::shared_ptr<Exchange>);
  using Prepare = std::variant<PreparedRequest, ApiError> (*)(JsonValue, const Served &);
  using Compute = Computed (*)(JsonValue, const Served &);
  struct Route {
    std::string_view method, path;
    Handler handler;
    bool open = false; ///< needs no key
    Prepare prepare = nullptr;
    Compute compute = nullptr;
  };
  static const Route routes[];
  const Route *find(const HttpRequest &request, bool &otherMethod) const;

  void health(std::shared_ptr<Exchange> exchange);
  void models(std::shared_ptr<Exchange> exchange);
  void version(std::shared_ptr<Exchange> exchange);
  void metrics(std::shared_ptr<Exchange> exchange);
  void plan(std::shared_ptr<Exchange> exchange);
  void page(std::shared_ptr<Exchange> exchange);
  void openApi(std::shared_ptr<Exchange> exchange);
  /// On a worker: reads the body and answers, or starts a generation.
  void work(std::shared_ptr<Exchange> exchange, const Route &route);

  void workOn(Served &served, const std::shared_ptr<Exchange> &exchange, const Route &route,
              EngineLoop::Ticket ticket);

  /// Null, after an answer of 503, while there is no model or the server drains.
  Served *ready(Exchange &exchange);
  bool hasKey(const HttpRequest &request) const;
  void logUnknown(const HttpRequest &request, const std::vector<std::string> &fields);

  const ServerOptions options_;
  Log &log_;
  std::atomic<bool> draining_{false};
  std::unique_ptr<Served> served_;
  std::atomic<Served *> ready_{nullptr};
  std::atomic<uint32_t> preparing_{0};
  std::function<size_t()> connections_;
  WorkerPool workers_; ///< reads and tokenizes requests
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_API_H

//===- Server.h - the OpenAI API over a model -------------------------------===//
//
//   Server::run:  listen ─▶ load (503 "loading") ─▶ serve ─▶ SIGTERM: drain ─▶ stop
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_SERVER_H
#define LLMRT_SERVER_SERVER_H

#include "runtime/server/Log.h"
#include "runtime/server/Options.h"
#include "runtime/server/Served.h"

#include <functional>
#include <memory>

namespace llmrt::server {

class Api;
class HttpServer;

class Server {
public:
  using Loader = std::function<Result<LoadedModel>()>;

  /// Listens; requests get 503 until load() has succeeded.
  static Result<std::unique_ptr<Server>> start(const ServerOptions &options, Log &log);
  ~Server();

  Status load(const Loader &loader);
  /// No new requests; running ones are answered.
  void drain();
  /// All answers are given.
  bool drained() const;
  /// Ends what is left.
  void stop();
  std::string url() const;
  uint16_t port() const;

  /// The life of a server process: start, load, serve until SIGTERM or SIGINT, drain. A second
  /// signal, or the drain timeout, ends the process with exit status 1.
  static Status run(const ServerOptions &options, Log &log, const Loader &loader);

private:
  Server(const ServerOptions &options, Log &log);
  const ServerOptions options_;
  Log &log_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<HttpServer> http_;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_SERVER_H

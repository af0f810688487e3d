#include "runtime/server/Server.h"

#include "runtime/server/Api.h"
#include "runtime/server/HttpServer.h"

#include <csignal>
#include <cstdlib>
#include <future>
#include <pthread.h>

namespace llmrt::server {

Result<std::unique_ptr<Server>> Server::start(const ServerOptions &options, Log &log) {
  std::signal(SIGPIPE, SIG_IGN); // a client that goes is an error of write()
  std::unique_ptr<Server> server(new Server(options, log));
  server->api_ = std::make_unique<Api>(options, log);
  LLMRT_ASSIGN_OR_RETURN(server->http_, HttpServer::listen(options, *server->api_));
  server->api_->countConnections([http = server->http_.get()] { return http->connections(); });
  return server;
}

Server::Server(const ServerOptions &options, Log &log) : options_(options), log_(log) {}
Server::~Server() { stop(); }

std::string Server::url() const { return http_->url(); }
uint16_t Server::port() const { return http_->port(); }

Status Server::load(const Loader &loader) {
  LLMRT_ASSIGN_OR_RETURN(LoadedModel loaded, loader());
  std::string description = loaded.description;
  LLMRT_ASSIGN_OR_RETURN(std::unique_ptr<Served> served,
                         Served::create(std::move(loaded), options_, log_));
  std::string name = served->name();
  api_->serve(std::move(served));
  log_.info("ready", {{"url", url()}, {"model", name}, {"engine", description}});
  return Status::ok();
}

void Server::drain() {
  api_->drain();
  http_->drain();
}

bool Server::drained() const { return api_->inFlight() == 0; }

void Server::stop() {
  if (!http_)
    return;
  // I/O first, then the engine, then what both hold: see Api::stop.
  http_->stop();
  api_->stop();
  http_.reset();
}

namespace {

/// Waits for SIGTERM or SIGINT, which are blocked, for \p milliseconds; 0 if none came.
int waitForSignal(const sigset_t &signals, long milliseconds) {
  timespec time = {milliseconds / 1000, (milliseconds % 1000) * 1'000'000};
  int signal = sigtimedwait(&signals, nullptr, &time);
  return signal > 0 ? signal : 0;
}

} // namespace

Status Server::run(const ServerOptions &options, Log &log, const Loader &loader) {
  // Before any thread is made, so that the signals come here only.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  LLMRT_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::start(options, log));
  log.info("listening", {{"url", server->url()}});
  std::future<Status> loading =
      std::async(std::launch::async, [&] { return server->load(loader); });
  int signal = 0;
  while (!signal && loading.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    signal = waitForSignal(signals, 10);
  if (signal) // nothing was accepted yet, and loading can't be interrupted
    std::_Exit(0);
  LLMRT_RETURN_IF_ERROR(loading.get());
  while (!signal)
    signal = waitForSignal(signals, 60'000);

  log.info("draining", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  server->drain();
  auto begin = std::chrono::steady_clock::now();
  while (!server->drained()) {
    bool late = options.drainTimeout > 0 && std::chrono::steady_clock::now() - begin >
                                                std::chrono::seconds(options.drainTimeout);
    if (late || waitForSignal(signals, 20)) {
      // Not in the orderly way, which would wait for the step at hand, perhaps in vain.
      log.warning("stopped before all requests were answered");
      std::_Exit(1);
    }
  }
  // What was answered may still be on its way to the client. Clients that keep a connection for
  // later, as their pools do, are not waited for.
  server->http_->close();
  for (int i = 0; i < 100 && server->http_->connections() > 0; ++i)
    waitForSignal(signals, 20);
  server->stop();
  log.info("stopped");
  return Status::ok();
}

} // namespace llmrt::server

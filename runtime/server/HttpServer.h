//===- HttpServer.h - listens, and keeps the connections --------------------===//
#ifndef LLMRT_SERVER_HTTPSERVER_H
#define LLMRT_SERVER_HTTPSERVER_H

#include "runtime/server/Connection.h"
#include "runtime/server/RequestHandler.h"
#include "runtime/support/Status.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/strand.hpp>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace llmrt::server {

class HttpServer final : public ConnectionHost {
public:
  /// Binds; fails with the address and the reason.
  static Result<std::unique_ptr<HttpServer>> listen(const ServerOptions &options,
                                                    RequestHandler &handler);
  ~HttpServer();

  uint16_t port() const { return port_; }
  /// "http://127.0.0.1:8000"
  std::string url() const;
  /// Every answer from now on closes its connection; idle connections are closed.
  void drain();
  /// After drain(), when all requests are answered: takes no more connections, and closes those
  /// that are open as soon as their answers are sent.
  void close();
  /// Stops the threads and drops every connection.
  void stop();
  size_t connections() const { return openConnections_.load(); }
  /// Runs \p action on an I/O thread after \p delay.
  void after(std::chrono::milliseconds delay, std::function<void()> action);

  const ServerOptions &options() const override { return options_; }
  bool draining() const override { return draining_.load(std::memory_order_relaxed); }
  bool closing() const override { return closing_.load(std::memory_order_relaxed); }

private:
  HttpServer(const ServerOptions &options, RequestHandler &handler)
      : options_(options), handler_(handler), acceptor_(boost::asio::make_strand(io_)) {}
  Status open();
  Status openTls();
  void finishConnections();
  void accept();
  void take(boost::asio::ip::tcp::socket socket);

  std::optional<ApiError> checkHead(const HttpRequest &request) override {
    return handler_.checkHead(request);
  }
  void handle(std::shared_ptr<Exchange> exchange) override;
  bool reserveBody(uint64_t bytes) override;
  void releaseBody(uint64_t bytes) override { bodyMemory_.fetch_sub(bytes); }
  void connectionClosed(uint64_t id) override;

  const ServerOptions options_;
  RequestHandler &handler_;
  std::atomic<bool> draining_{false}, closing_{false};
  std::atomic<uint64_t> bodyMemory_{0};
  std::atomic<size_t> openConnections_{0};
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::weak_ptr<Connection>> connections_;
  uint64_t nextId_ = 0;
  uint16_t port_ = 0;

  // Connections that are left go with the I/O context, and need what stands before it.
  std::optional<boost::asio::ssl::context> tls_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<std::thread> threads_;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_HTTPSERVER_H

#include "runtime/server/HttpServer.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <sys/resource.h>

namespace llmrt::server {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

/// A connection is a file descriptor: take as many as the system gives.
void raiseFileLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

} // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const ServerOptions &options,
                                                       RequestHandler &handler) {
  raiseFileLimit();
  std::unique_ptr<HttpServer> server(new HttpServer(options, handler));
  LLMRT_RETURN_IF_ERROR(server->open());
  return server;
}

Status HttpServer::openTls() {
  if (options_.tlsCertificate.empty() != options_.tlsKey.empty())
    return invalidArgument("TLS needs a certificate and its key");
  if (options_.tlsCertificate.empty())
    return Status::ok();
  tls_.emplace(asio::ssl::context::tls_server);
  error_code error;
  tls_->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                        asio::ssl::context::no_tlsv1_1,
                    error);
  tls_->use_certificate_chain_file(options_.tlsCertificate, error);
  if (error)
    return invalidFile(options_.tlsCertificate +
                       ": no certificate chain in PEM form: " + error.message());
  tls_->use_private_key_file(options_.tlsKey, asio::ssl::context::pem, error);
  if (error)
    return invalidFile(options_.tlsKey +
                       ": not the certificate's private key in PEM form: " + error.message());
  return Status::ok();
}

Status HttpServer::open() {
  LLMRT_RETURN_IF_ERROR(openTls());
  error_code error;
  std::string where = options_.host + ":" + std::to_string(options_.port);
  tcp::resolver resolver(io_);
  auto found = resolver.resolve(options_.host, std::to_string(options_.port),
                                tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty())
    return invalidArgument("can't listen on " + where + ": " + error.message());
  tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error)
    acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error)
    acceptor_.bind(endpoint, error);
  if (!error)
    acceptor_.listen(4096, error);
  if (error)
    return ioError("can't listen on " + where + ": " + error.message());
  port_ = acceptor_.local_endpoint(error).port();
  accept();
  for (unsigned i = 0; i < std::max(1u, options_.ioThreads); ++i)
    threads_.emplace_back([this] { io_.run(); });
  return Status::ok();
}

HttpServer::~HttpServer() { stop(); }

std::string HttpServer::url() const {
  std::string host =
      options_.host.find(':') == std::string::npos ? options_.host : "[" + options_.host + "]";
  return (tls_ ? "https://" : "http://") + host + ":" + std::to_string(port_);
}

void HttpServer::accept() {
  acceptor_.async_accept(asio::make_strand(io_), [this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || closing())
      return; // a connection that came is dropped
    if (!error)
      take(std::move(socket));
    else if (error == asio::error::no_descriptors || error == asio::error::no_buffer_space)
      // Others must close first; trying at once would only burn time.
      return after(std::chrono::milliseconds(50),
                   [this] { asio::post(acceptor_.get_executor(), [this] { accept(); }); });
    accept();
  });
}

void HttpServer::take(tcp::socket socket) {
  auto transport =
      tls_ ? Transport::tls(std::move(socket), *tls_) : Transport::plain(std::move(socket));
  bool full = openConnections_.fetch_add(1) >= options_.maxConnections;
  std::shared_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex_);
    uint64_t id = ++nextId_;
    connection = std::make_shared<Connection>(*this, id, std::move(transport));
    connections_.emplace(id, connection);
  }
  if (full)
    connection->refuse({503,
                        "the server has " + std::to_string(options_.maxConnections) +
                            " connections, as many as it takes",
                        "server_error", "", "overloaded", 5});
  else
    connection->start();
}

void HttpServer::handle(std::shared_ptr<Exchange> exchange) {
  // Out of memory and the like: this request fails, the others go on.
  try {
    handler_.handle(exchange);
  } catch (const std::exception &error) {
    exchange->respond(serverError(std::string("unexpected: ") + error.what()));
  }
}

bool HttpServer::reserveBody(uint64_t bytes) {
  if (bodyMemory_.fetch_add(bytes) + bytes <= options_.bodyMemory)
    return true;
  bodyMemory_.fetch_sub(bytes);
  return false;
}

void HttpServer::connectionClosed(uint64_t id) {
  openConnections_.fetch_sub(1);
  std::lock_guard lock(mutex_);
  connections_.erase(id);
}

void HttpServer::drain() {
  draining_.store(true);
  finishConnections();
}

void HttpServer::close() {
  closing_.store(true);
  asio::post(acceptor_.get_executor(), [this] {
    error_code ignored;
    acceptor_.close(ignored);
  });
  finishConnections();
}

void HttpServer::finishConnections() {
  std::vector<std::shared_ptr<Connection>> open;
  {
    std::lock_guard lock(mutex_);
    for (auto &[id, connection] : connections_)
      if (auto held = connection.lock())
        open.push_back(std::move(held));
  }
  for (auto &connection : open)
    connection->finish();
}

void HttpServer::stop() {
  io_.stop();
  for (std::thread &thread : threads_)
    thread.join();
  threads_.clear();
}

void HttpServer::after(std::chrono::milliseconds delay, std::function<void()> action) {
  auto timer = std::make_shared<asio::steady_timer>(io_, delay);
  timer->async_wait([timer, action = std::move(action)](error_code) { action(); });
}

} // namespace llmrt::server

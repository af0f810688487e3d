#include "runtime/server/Connection.h"

#include "runtime/server/RequestHead.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/beast/http/error.hpp>

namespace llmrt::server {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr size_t smallRead = 4 << 10, largeRead = 64 << 10;
/// Bytes of later requests that wait in memory while one is answered.
constexpr size_t pipelineLimit = 64 << 10;
/// Bodies up to this size are not counted against the memory for bodies.
constexpr uint64_t freeBody = 64 << 10;
constexpr unsigned lingerSeconds = 2;
/// What a connection that has asked nothing yet is given when the server drains.
constexpr unsigned firstRequestSeconds = 1;

} // namespace

class Connection::HttpExchange final : public Exchange,
                                       public std::enable_shared_from_this<HttpExchange> {
public:
  explicit HttpExchange(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  HttpRequest &mutableRequest() { return request_; }

  void respond(HttpResponse response) override {
    whileOpen([response = std::move(response)](Connection &c) mutable {
      c.respond(std::move(response));
    });
  }
  void startStream() override {
    whileOpen([](Connection &c) { c.startStream(); });
  }
  void write(std::string data) override {
    whileOpen([data = std::move(data)](Connection &c) { c.writeEvent(data); });
  }
  void endStream() override {
    whileOpen([](Connection &c) { c.endStream(); });
  }
  void onDisconnect(std::function<void()> action) override {
    post([self = shared_from_this(), action = std::move(action)]() mutable {
      if (self->connection_->exchange_ == self)
        self->disconnected_ = std::move(action);
      else
        action();
    });
  }
  void post(std::function<void()> action) override {
    asio::post(connection_->transport_->socket().get_executor(), std::move(action));
  }
  void disconnected() {
    if (disconnected_)
      std::exchange(disconnected_, nullptr)();
  }

private:
  /// Runs on the strand, if this is still what the connection answers.
  template <typename Action> void whileOpen(Action action) {
    asio::post(connection_->transport_->socket().get_executor(),
               [self = shared_from_this(), action = std::move(action)]() mutable {
                 if (self->connection_->exchange_ == self)
                   action(*self->connection_);
               });
  }
  std::shared_ptr<Connection> connection_;
  std::function<void()> disconnected_;
};

Connection::Connection(ConnectionHost &host, uint64_t id, std::unique_ptr<Transport> transport)
    : host_(host), id_(id), transport_(std::move(transport)),
      timer_(transport_->socket().get_executor()) {}

Connection::~Connection() {
  if (bodyCharged_)
    host_.releaseBody(bodyCharged_);
  host_.connectionClosed(id_);
}

void Connection::start() {
  asio::post(transport_->socket().get_executor(), [self = shared_from_this()] {
    error_code ignored;
    self->transport_->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
    self->setDeadline(self->host_.options().requestTimeout);
    self->transport_->start([self](error_code error, size_t) {
      if (error || self->phase_ == Phase::Closed)
        return self->close();
      if (self->phase_ == Phase::Handshake)
        self->phase_ = Phase::Idle;
      self->read();
    });
  });
}

void Connection::finish() {
  asio::post(transport_->socket().get_executor(), [self = shared_from_this()] {
    self->keepAlive_ = false;
    const bool isWaiting = self->phase_ == Phase::Idle || self->phase_ == Phase::Handshake;
    if (isWaiting && !self->requestWhole_ && !self->host_.closing())
      self->setDeadline(
          firstRequestSeconds); // its first request may be on the way, and is answered
    else if (isWaiting)
      self->close();
    else if (self->phase_ == Phase::Reading && !self->closeWhenSent_)
      self->fail(drainingError());
    else if (self->closeWhenSent_)
      self->flush();
  });
}

void Connection::refuse(ApiError error) {
  asio::post(transport_->socket().get_executor(), [self = shared_from_this(), error] {
    if (self->phase_ == Phase::Idle || self->phase_ == Phase::Handshake)
      self->fail(error);
  });
}

void Connection::read() {
  if (reading_ || phase_ == Phase::Closed || in_.size() >= pipelineLimit)
    return;
  readBuffer_.resize(phase_ == Phase::Reading && headSeen_ ? largeRead : smallRead);
  reading_ = true;
  transport_->readSome(asio::buffer(readBuffer_),
                       [self = shared_from_this()](error_code error, size_t bytes) {
                         self->reading_ = false;
                         self->onRead(error, bytes);
                       });
}

void Connection::onRead(error_code error, size_t bytes) {
  if (phase_ == Phase::Closed)
    return;
  if (error)
    return close();    // the client has gone: so does what was made for it
  if (!closeWhenSent_) // otherwise it is the rest of a request that was refused
    in_.append(readBuffer_.data(), bytes);
  consume();
  read();
}

void Connection::consume() {
  while ((phase_ == Phase::Idle || phase_ == Phase::Reading) && !closeWhenSent_ && !in_.empty()) {
    if (phase_ == Phase::Idle) {
      // Empty lines between requests are allowed (RFC 9112, 2.2).
      size_t blank = in_.find_first_not_of("\r\n");
      in_.erase(0, std::min(blank, in_.size()));
      if (in_.empty())
        return;
      phase_ = Phase::Reading;
      parser_.emplace();
      parser_->header_limit(host_.options().maxHeaderBytes);
      parser_->body_limit(host_.options().maxBodyBytes);
      headSeen_ = requestWhole_ = false;
      exchange_ = std::make_shared<HttpExchange>(shared_from_this());
      setDeadline(host_.options().requestTimeout);
    }
    error_code error;
    size_t used = parser_->put(asio::buffer(in_), error);
    in_.erase(0, used);
    bool needsMore = error == http::error::need_more;
    if (error && !needsMore)
      return failParse(error);
    if (!headSeen_ && parser_->is_header_done()) {
      headSeen_ = true;
      onHead();
      if (phase_ != Phase::Reading)
        return;
      parser_->eager(true);
    }
    if (headSeen_ && !chargeBody(parser_->get().body().size()))
      return;
    if (parser_->is_done())
      onRequest();
    else if (needsMore)
      return;
  }
}

bool Connection::chargeBody(uint64_t bytes) {
  if (bytes <= std::max(bodyCharged_, freeBody))
    return true;
  if (!host_.reserveBody(bytes - bodyCharged_)) {
    fail({503, "the server has no memory left for large requests; try again later", "server_error",
          "", "overloaded", 5});
    return false;
  }
  bodyCharged_ = bytes;
  return true;
}

void Connection::onHead() {
  const auto &head = parser_->get();
  HttpRequest &request = exchange_->mutableRequest();
  std::optional<ApiError> refusal = readHead(head, request);
  origin_ = request.origin;
  requestId_ = request.id;
  headOnly_ = request.method == "HEAD";
  chunked_ = head.version() >= 11;
  if (!refusal)
    refusal = host_.checkHead(request);
  if (refusal)
    return fail(*refusal);
  if (auto length = parser_->content_length(); length && !chargeBody(*length))
    return;
  if (!head[http::field::expect].empty() && !parser_->is_done())
    send("HTTP/1.1 100 Continue\r\n\r\n");
}

void Connection::onRequest() {
  exchange_->mutableRequest().body = std::move(parser_->get().body());
  keepAlive_ = keepAlive_ && parser_->keep_alive() && !host_.draining();
  parser_.reset();
  requestWhole_ = true;
  readBuffer_ = {};
  phase_ = Phase::Answering;
  setDeadline(0);
  host_.handle(exchange_);
}

void Connection::failParse(error_code error) {
  if (error == http::error::header_limit)
    return fail(
        {431,
         "the header is larger than " + std::to_string(host_.options().maxHeaderBytes) + " bytes",
         "invalid_request_error", "", "", 0});
  if (error == http::error::body_limit)
    return fail({413,
                 "the body is larger than the limit of " +
                     std::to_string(host_.options().maxBodyBytes) + " bytes",
                 "invalid_request_error", "", "request_too_large", 0});
  fail(badRequest("this is no HTTP/1.1 request: " + error.message()));
}

/// Answers and closes: what follows on the connection can't be trusted to be a request.
void Connection::fail(ApiError error) {
  if (requestId_.empty())
    requestId_ = newRequestId();
  keepAlive_ = false;
  phase_ = Phase::Answering;
  HttpResponse response{error.status, "application/json", error.body()};
  if (error.retryAfter > 0)
    response.headers.emplace_back("Retry-After", std::to_string(error.retryAfter));
  if (error.status == 401)
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  respond(std::move(response));
}

std::string Connection::head(int status, std::string_view contentType,
                             const HttpResponse *response) {
  std::string text =
      "HTTP/1.1 " + std::to_string(status) + " " + reasonPhrase(status) + "\r\nServer: llmc\r\n";
  if (!contentType.empty())
    text += "Content-Type: " + std::string(contentType) + "\r\n";
  if (response) {
    for (const auto &[name, value] : response->headers)
      text += name + ": " + value + "\r\n";
    if (status != 204)
      text += "Content-Length: " + std::to_string(response->body.size()) + "\r\n";
  } else {
    text += "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n";
    text += chunked_ ? "Transfer-Encoding: chunked\r\n" : "";
  }
  text += "X-Request-Id: " + requestId_ + "\r\n";
  const auto &allowed = host_.options().allowedOrigins;
  bool any = std::find(allowed.begin(), allowed.end(), "*") != allowed.end();
  if (!origin_.empty() &&
      (any || std::find(allowed.begin(), allowed.end(), origin_) != allowed.end()))
    text += "Access-Control-Allow-Origin: " + (any ? "*" : origin_) +
            "\r\nVary: Origin\r\nAccess-Control-Expose-Headers: X-Request-Id, Retry-After\r\n";
  text += keepAlive_ ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return text;
}

void Connection::respond(HttpResponse response) {
  if (streaming_)
    return; // the head is out: only the end of the stream can follow
  if (host_.draining())
    keepAlive_ = false;
  std::string text = head(response.status, response.contentType, &response);
  if (!headOnly_)
    text += response.body;
  send(std::move(text));
  answerDone();
}

void Connection::startStream() {
  if (streaming_)
    return;
  if (!chunked_)
    keepAlive_ = false;
  streaming_ = true;
  send(head(200, "text/event-stream; charset=utf-8", nullptr));
  setDeadline(host_.options().pingInterval);
}

void Connection::writeEvent(std::string_view data) {
  if (!streaming_ || data.empty())
    return;
  if (!chunked_)
    return send(std::string(data));
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", data.size());
  std::string chunk = size;
  chunk += data;
  chunk += "\r\n";
  send(std::move(chunk));
}

void Connection::endStream() {
  if (!streaming_)
    return;
  if (chunked_)
    send("0\r\n\r\n");
  if (host_.draining()) // the client was told otherwise, but may not rely on it
    keepAlive_ = false;
  answerDone();
}

void Connection::answerDone() {
  exchange_.reset();
  streaming_ = false;
  headOnly_ = false;
  if (bodyCharged_)
    host_.releaseBody(std::exchange(bodyCharged_, 0));
  if (!keepAlive_) {
    closeWhenSent_ = true;
    in_.clear();
    setDeadline(host_.options().writeTimeout);
    flush();
    return;
  }
  phase_ = Phase::Idle;
  origin_.clear();
  requestId_.clear();
  setDeadline(host_.options().keepAliveTimeout);
  asio::post(transport_->socket().get_executor(), [self = shared_from_this()] {
    self->consume();
    self->read();
  });
}

void Connection::send(std::string data) {
  if (phase_ == Phase::Closed)
    return;
  out_ += data;
  flush();
}

void Connection::flush() {
  if (writing_ || phase_ == Phase::Closed)
    return;
  if (out_.empty()) {
    if (!closeWhenSent_)
      return;
    if (host_.closing() && requestWhole_)
      return close();
    // Closing with unread bytes resets the connection, and the answer may be lost: say that
    // nothing more comes, and read until the client closes or for two seconds.
    error_code ignored;
    transport_->socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    setDeadline(lingerSeconds);
    read();
    return;
  }
  sending_.swap(out_);
  out_.clear();
  writing_ = true;
  writeStarted_ = Clock::now();
  transport_->writeAll(asio::buffer(sending_),
                       [self = shared_from_this()](error_code error, size_t) {
                         self->writing_ = false;
                         self->lastWrite_ = Clock::now();
                         if (error)
                           return self->close();
                         if (self->sending_.capacity() > largeRead)
                           self->sending_ = {};
                         self->flush();
                       });
}

/// 0: no deadline.
void Connection::setDeadline(unsigned seconds) {
  if (seconds == 0) {
    deadline_ = Clock::time_point::max();
    timer_.cancel();
    return;
  }
  deadline_ = Clock::now() + std::chrono::seconds(seconds);
  watchTime();
}

void Connection::watchTime() {
  timer_.expires_at(deadline_);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    if (error || self->phase_ == Phase::Closed || Clock::now() < self->deadline_)
      return;
    const ServerOptions &options = self->host_.options();
    if (self->streaming_) {
      auto now = Clock::now();
      if (self->writing_ && now - self->writeStarted_ > std::chrono::seconds(options.writeTimeout))
        return self->close();
      if (!self->writing_ && now - self->lastWrite_ >= std::chrono::seconds(options.pingInterval))
        self->writeEvent(": ping\n\n");
      return self->setDeadline(options.pingInterval);
    }
    if (self->phase_ == Phase::Reading && !self->closeWhenSent_) // slow, or half a request
      return self->fail({408,
                         "the request did not arrive within " +
                             std::to_string(options.requestTimeout) + " seconds",
                         "invalid_request_error", "", "", 0});
    self->close();
  });
}

void Connection::close() {
  if (phase_ == Phase::Closed)
    return;
  phase_ = Phase::Closed;
  timer_.cancel();
  error_code ignored;
  transport_->socket().close(ignored);
  if (exchange_)
    std::exchange(exchange_, nullptr)->disconnected();
}

} // namespace llmrt::server

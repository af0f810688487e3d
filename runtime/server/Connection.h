//===- Connection.h - HTTP/1.1 on one socket --------------------------------===//
//
// One read is always pending, also while an answer is made: so a client that goes is noticed at
// once. Its bytes go into a bounded buffer, from which the parser takes one request after the
// other. Everything runs on the connection's strand.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SERVER_CONNECTION_H
#define LLMRT_SERVER_CONNECTION_H

#include "runtime/server/Exchange.h"
#include "runtime/server/Options.h"
#include "runtime/server/Transport.h"

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

namespace llmrt::server {

/// What connections ask of the server that they belong to.
class ConnectionHost {
public:
  virtual ~ConnectionHost() = default;
  virtual const ServerOptions &options() const = 0;
  /// Looks at a request before its body is read: a refusal, or nothing.
  virtual std::optional<ApiError> checkHead(const HttpRequest &request) = 0;
  virtual void handle(std::shared_ptr<Exchange> exchange) = 0;
  /// No new request on connections that are open.
  virtual bool draining() const = 0;
  /// And no connection stays open that has been answered.
  virtual bool closing() const = 0;
  /// Sets \p bytes of memory aside for a body; false if there is no more.
  virtual bool reserveBody(uint64_t bytes) = 0;
  virtual void releaseBody(uint64_t bytes) = 0;
  virtual void connectionClosed(uint64_t id) = 0;
};

class Connection : public std::enable_shared_from_this<Connection> {
public:
  Connection(ConnectionHost &host, uint64_t id, std::unique_ptr<Transport> transport);
  ~Connection();

  void start();
  /// Closes now if no answer is under way, else after it; a request that has not arrived whole is
  /// refused. Any thread.
  void finish();
  /// Answers \p error and closes, without reading anything.
  void refuse(ApiError error);

private:
  class HttpExchange;
  enum class Phase { Handshake, Idle, Reading, Answering, Closed };
  using Clock = std::chrono::steady_clock;

  void read();
  void onRead(boost::system::error_code error, size_t bytes);
  void consume();
  void onHead();
  void onRequest();
  void fail(ApiError error);
  void failParse(boost::system::error_code error);
  bool chargeBody(uint64_t bytes);

  // Answers, on the strand.
  std::string head(int status, std::string_view contentType, const HttpResponse *response);
  void respond(HttpResponse response);
  void startStream();
  void writeEvent(std::string_view data);
  void endStream();
  void answerDone();
  void send(std::string data);
  void flush();

  void setDeadline(unsigned seconds);
  void watchTime();
  void close();

  ConnectionHost &host_;
  const uint64_t id_;
  std::unique_ptr<Transport> transport_;
  boost::asio::steady_timer timer_;
  Phase phase_ = Phase::Handshake;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point lastWrite_ = Clock::now(), writeStarted_;

  std::string in_; ///< bytes that were read and not parsed
  std::vector<char> readBuffer_;
  bool reading_ = false;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  std::optional<Parser> parser_;
  bool headSeen_ = false;
  uint64_t bodyCharged_ = 0;

  std::shared_ptr<HttpExchange> exchange_; ///< the one that is being answered
  std::string origin_, requestId_;         ///< of the request that is being answered
  bool keepAlive_ = true, streaming_ = false, chunked_ = true, headOnly_ = false;
  bool closeWhenSent_ = false;
  bool requestWhole_ = false; ///< nothing more of the request that is answered can come
  std::string out_, sending_;
  bool writing_ = false;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_CONNECTION_H

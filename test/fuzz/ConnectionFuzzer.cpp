//===- ConnectionFuzzer.cpp - any bytes on a connection ---------------------------===//
//
// What stands behind the first byte comes in from a client: once whole, once in pieces of so many
// bytes as the first byte says. Both must give the same requests, and every request an answer that
// a client of HTTP/1.1 can read, at most one refusal, as the last answer, and nothing after it.
//
//===----------------------------------------------------------------------===//
#include "runtime/server/Connection.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/http/message.hpp>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>

using namespace llmrt::server;
namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

void require(bool holds, const char *what) {
  if (holds)
    return;
  std::cerr << "ConnectionFuzzer: " << what << std::endl;
  std::abort();
}

/// A client that sends \p bytes and takes everything. It says that no more comes by hangUp() only.
class Client final : public Transport {
public:
  Client(asio::io_context &io, std::string_view bytes, size_t piece, std::string &received)
      : socket_(asio::make_strand(io)), bytes_(bytes), piece_(piece), received_(received) {}
  void start(Handler handler) override { answer(std::move(handler), {}, 0); }
  void readSome(asio::mutable_buffer buffer, Handler handler) override {
    size_t count = std::min({piece_, bytes_.size(), buffer.size()});
    if (count == 0) {
      waiting_ = std::move(handler);
      return;
    }
    std::memcpy(buffer.data(), bytes_.data(), count);
    bytes_.remove_prefix(count);
    answer(std::move(handler), {}, count);
  }
  void writeAll(asio::const_buffer data, Handler handler) override {
    received_.append(static_cast<const char *>(data.data()), data.size());
    answer(std::move(handler), {}, data.size());
  }
  asio::ip::tcp::socket &socket() override { return socket_; }
  void hangUp() {
    if (waiting_)
      answer(std::exchange(waiting_, nullptr), asio::error::eof, 0);
  }

private:
  void answer(Handler handler, error_code error, size_t bytes) {
    asio::post(socket_.get_executor(),
               [handler = std::move(handler), error, bytes] { handler(error, bytes); });
  }
  asio::ip::tcp::socket socket_; ///< never open: it lends its executor
  std::string_view bytes_;
  const size_t piece_;
  std::string &received_;
  Handler waiting_;
};

/// Answers each request by its path: whole, as a stream, with a refusal.
class Host final : public ConnectionHost {
public:
  Host() { options_.maxHeaderBytes = 1024, options_.maxBodyBytes = 2048; }
  const ServerOptions &options() const override { return options_; }
  std::optional<ApiError> checkHead(const HttpRequest &request) override {
    if (request.path.starts_with("/key"))
      return ApiError{401, "no key", "invalid_request_error", "", "invalid_api_key", 0};
    return std::nullopt;
  }
  void handle(std::shared_ptr<Exchange> exchange) override {
    const HttpRequest &request = exchange->request();
    require(std::all_of(request.id.begin(), request.id.end(),
                        [](unsigned char c) { return c > 0x20 && c < 0x7f; }),
            "a request's id could end a header");
    require(request.body.size() <= options_.maxBodyBytes, "a body over the limit");
    requests.push_back(request.method + " " + request.path + " " + request.query + " " +
                       request.body);
    heads.push_back(request.method == "HEAD");
    if (request.path.starts_with("/stream") && request.method != "HEAD") {
      exchange->startStream();
      exchange->write("data: 1\n\n");
      exchange->write("data: [DONE]\n\n");
      exchange->endStream();
    } else {
      exchange->respond(HttpResponse{200, "application/json", "{}"});
    }
  }
  bool draining() const override { return false; }
  bool closing() const override { return false; }
  bool reserveBody(uint64_t) override { return true; }
  void releaseBody(uint64_t) override {}
  void connectionClosed(uint64_t) override { ++closed; }

  std::vector<std::string> requests;
  std::vector<bool> heads;
  int closed = 0;

private:
  ServerOptions options_;
};

void checkAnswers(std::string_view received, const Host &host) {
  size_t answered = 0;
  bool refused = false;
  while (!received.empty()) {
    require(!refused, "bytes after a refusal");
    http::response_parser<http::string_body> parser;
    parser.eager(true);
    // A refusal answers a request that never came whole: what that was is not known here.
    bool known = answered < host.heads.size();
    parser.skip(known && host.heads[answered]);
    error_code error;
    size_t used = parser.put(asio::buffer(received), error);
    require(used > 0 && (!error || error == http::error::need_more), "an answer that is none");
    if (!parser.is_done()) { // until the connection is closed, or a refusal of HEAD: only a head
      require(parser.need_eof() || parser.get().result_int() >= 400, "an answer without an end");
      used = received.size();
    }
    unsigned status = parser.get().result_int();
    received.remove_prefix(std::min(used, received.size()));
    if (status == 100)
      continue;
    refused = status != 200;
    require(!refused || (status >= 400 && status < 600), "neither an answer nor a refusal");
    answered += !refused;
  }
  require(answered == host.requests.size(), "requests and answers differ");
}

std::vector<std::string> requestsOf(std::string_view bytes, size_t piece) {
  Host host;
  std::string received;
  asio::io_context io;
  auto own = std::make_unique<Client>(io, bytes, piece, received);
  Client &client = *own;
  auto connection = std::make_shared<Connection>(host, 1, std::move(own));
  connection->start();
  auto run = [&] {
    io.restart();
    while (io.poll() > 0)
      io.restart();
  };
  run();
  checkAnswers(received, host);
  client.hangUp();
  connection.reset(); // `client` goes with the last handler that holds it
  run();
  require(host.closed == 1, "a connection stays that the client has left");
  return host.requests;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  std::string_view bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  require(requestsOf(bytes, bytes.size()) == requestsOf(bytes, size_t(data[0] % 64) + 1),
          "pieces give other requests");
  return 0;
}

#include "runtime/server/Transport.h"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>

namespace llmrt::server {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

class PlainTransport final : public Transport {
public:
  explicit PlainTransport(tcp::socket socket) : socket_(std::move(socket)) {}
  void start(Handler handler) override {
    asio::post(socket_.get_executor(), [handler = std::move(handler)] { handler({}, 0); });
  }
  void readSome(asio::mutable_buffer buffer, Handler handler) override {
    socket_.async_read_some(buffer, std::move(handler));
  }
  void writeAll(asio::const_buffer data, Handler handler) override {
    asio::async_write(socket_, data, std::move(handler));
  }
  tcp::socket &socket() override { return socket_; }

private:
  tcp::socket socket_;
};

class TlsTransport final : public Transport {
public:
  TlsTransport(tcp::socket socket, asio::ssl::context &context)
      : stream_(std::move(socket), context) {}
  void start(Handler handler) override {
    stream_.async_handshake(
        asio::ssl::stream_base::server,
        [handler = std::move(handler)](boost::system::error_code error) { handler(error, 0); });
  }
  void readSome(asio::mutable_buffer buffer, Handler handler) override {
    stream_.async_read_some(buffer, std::move(handler));
  }
  void writeAll(asio::const_buffer data, Handler handler) override {
    asio::async_write(stream_, data, std::move(handler));
  }
  tcp::socket &socket() override { return stream_.next_layer(); }

private:
  asio::ssl::stream<tcp::socket> stream_;
};

} // namespace

std::unique_ptr<Transport> Transport::plain(tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}
std::unique_ptr<Transport> Transport::tls(tcp::socket socket, asio::ssl::context &context) {
  return std::make_unique<TlsTransport>(std::move(socket), context);
}

} // namespace llmrt::server

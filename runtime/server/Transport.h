//===- Transport.h - bytes over TCP, plain or with TLS ----------------------===//
#ifndef LLMRT_SERVER_TRANSPORT_H
#define LLMRT_SERVER_TRANSPORT_H

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>

namespace llmrt::server {

/// The executor is a strand; handlers run on it.
class Transport {
public:
  using Handler = std::function<void(boost::system::error_code, size_t)>;
  virtual ~Transport() = default;
  /// The TLS handshake; nothing for plain TCP.
  virtual void start(Handler handler) = 0;
  virtual void readSome(boost::asio::mutable_buffer buffer, Handler handler) = 0;
  virtual void writeAll(boost::asio::const_buffer data, Handler handler) = 0;
  virtual boost::asio::ip::tcp::socket &socket() = 0;

  static std::unique_ptr<Transport> plain(boost::asio::ip::tcp::socket socket);
  static std::unique_ptr<Transport> tls(boost::asio::ip::tcp::socket socket,
                                        boost::asio::ssl::context &context);
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_TRANSPORT_H

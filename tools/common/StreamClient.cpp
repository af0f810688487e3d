#include "tools/common/StreamClient.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

namespace llmc::tools {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using llmrt::invalidArgument;
using llmrt::ioError;
using llmrt::Result;
using llmrt::Status;

Result<ServerUrl> parseUrl(const std::string &url) {
  ServerUrl parsed;
  std::string rest = url;
  for (const char *scheme : {"http://", "https://"})
    if (rest.starts_with(scheme)) {
      parsed.tls = scheme[4] == 's';
      rest = rest.substr(std::string(scheme).size());
      size_t slash = std::min(rest.find('/'), rest.size());
      parsed.prefix = rest.substr(slash);
      std::string authority = rest.substr(0, slash);
      size_t colon = authority.rfind(':');
      if (colon != std::string::npos && authority.find(']', colon) == std::string::npos) {
        parsed.port = authority.substr(colon + 1);
        authority.resize(colon);
      } else {
        parsed.port = parsed.tls ? "443" : "80";
      }
      if (authority.starts_with('[') && authority.ends_with(']'))
        authority = authority.substr(1, authority.size() - 2);
      parsed.host = authority;
      while (parsed.prefix.ends_with('/'))
        parsed.prefix.pop_back();
      if (parsed.prefix.ends_with("/v1"))
        parsed.prefix.resize(parsed.prefix.size() - 3);
      if (!parsed.host.empty() && !parsed.port.empty())
        return parsed;
    }
  return invalidArgument("'" + url + "' is no URL of a server, as http://127.0.0.1:8000");
}

namespace {

/// Takes the text of events as it comes.
class EventReader {
public:
  explicit EventReader(StreamTimes &times) : times_(times) {}

  void push(std::string_view text) {
    held_ += text;
    size_t begin = 0;
    for (size_t end; (end = held_.find('\n', begin)) != std::string::npos; begin = end + 1)
      line(std::string_view(held_).substr(begin, end - begin));
    held_.erase(0, begin);
  }
  bool done() const { return done_; }
  const std::string &error() const { return error_; }

private:
  void line(std::string_view text) {
    if (text.ends_with('\r'))
      text.remove_suffix(1);
    if (!text.starts_with("data:"))
      return;
    text.remove_prefix(text.starts_with("data: ") ? 6 : 5);
    if (text == "[DONE]") {
      done_ = true;
      return;
    }
    auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object())
      return;
    if (json.contains("error"))
      error_ = json["error"].dump();
    if (json.contains("usage") && json["usage"].is_object()) {
      times_.promptTokens = json["usage"].value("prompt_tokens", int64_t(0));
      times_.outputTokens = json["usage"].value("completion_tokens", int64_t(0));
    }
    if (json.contains("choices") && json["choices"].is_array() && !json["choices"].empty())
      if (json["choices"][0].is_object() && json["choices"][0].value("text", "") != "")
        times_.tokens.push_back(StreamTimes::Clock::now());
  }

  StreamTimes &times_;
  std::string held_, error_;
  bool done_ = false;
};

template <typename Stream>
Status exchange(Stream &stream, const ServerUrl &url, const std::string &apiKey,
                const std::string &body, StreamTimes &times) {
  http::request<http::string_body> request(http::verb::post, url.prefix + "/v1/completions", 11);
  request.set(http::field::host, url.host);
  request.set(http::field::content_type, "application/json");
  request.set(http::field::connection, "close");
  if (!apiKey.empty())
    request.set(http::field::authorization, "Bearer " + apiKey);
  request.body() = body;
  request.prepare_payload();
  error_code error;
  times.sent = StreamTimes::Clock::now();
  http::write(stream, request, error);
  if (error)
    return ioError("sending the request failed: " + error.message());

  boost::beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  http::read_header(stream, buffer, parser, error);
  if (error)
    return ioError("no answer: " + error.message());
  EventReader events(times);
  std::string refusal;
  unsigned code = parser.get().result_int();
  char piece[16384];
  while (!parser.is_done()) {
    parser.get().body().data = piece;
    parser.get().body().size = sizeof piece;
    // What has come, not as much as fits: the times of events count.
    http::read_some(stream, buffer, parser, error);
    bool full = error == http::error::need_buffer;
    std::string_view read(piece, sizeof piece - parser.get().body().size);
    if (code == 200)
      events.push(read);
    else if (refusal.size() < 4096)
      refusal += read;
    if (error && !full)
      return ioError("the answer broke off: " + error.message());
  }
  times.done = StreamTimes::Clock::now();
  if (code != 200)
    return ioError("status " + std::to_string(code) + ": " + refusal.substr(0, 300));
  if (!events.error().empty())
    return ioError("the server failed: " + events.error().substr(0, 300));
  if (!events.done())
    return ioError("the stream has no end ([DONE])");
  return Status::ok();
}

} // namespace

Result<StreamTimes> streamCompletion(const ServerUrl &url, const std::string &apiKey,
                                     const std::string &body, int timeoutSeconds) {
  asio::io_context io;
  error_code error;
  tcp::resolver resolver(io);
  auto addresses = resolver.resolve(url.host, url.port, error);
  if (error)
    return ioError(url.host + ": " + error.message());
  tcp::socket socket(io);
  asio::connect(socket, addresses, error);
  if (error)
    return ioError(url.host + ":" + url.port + ": " + error.message());
  socket.set_option(tcp::no_delay(true), error);
  timeval limit = {timeoutSeconds, 0};
  setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  StreamTimes times;
  if (!url.tls) {
    LLMRT_RETURN_IF_ERROR(exchange(socket, url, apiKey, body, times));
    return times;
  }
  asio::ssl::context context(asio::ssl::context::tls_client);
  context.set_default_verify_paths(error);
  asio::ssl::stream<tcp::socket> stream(std::move(socket), context);
  stream.set_verify_mode(asio::ssl::verify_peer, error);
  stream.set_verify_callback(asio::ssl::host_name_verification(url.host), error);
  SSL_set_tlsext_host_name(stream.native_handle(), url.host.c_str());
  stream.handshake(asio::ssl::stream_base::client, error);
  if (error)
    return ioError("TLS: " + error.message());
  LLMRT_RETURN_IF_ERROR(exchange(stream, url, apiKey, body, times));
  return times;
}

} // namespace llmc::tools

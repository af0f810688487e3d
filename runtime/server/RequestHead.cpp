#include "runtime/server/RequestHead.h"

#include <algorithm>
#include <charconv>
#include <random>

namespace llmrt::server {

namespace http = boost::beast::http;

namespace {

/// What may be echoed in a header and written to a log.
bool isHarmlessId(std::string_view id) {
  return !id.empty() && id.size() <= 128 &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

/// "%2F" to "/"; nothing if an escape is cut or no hexadecimal number.
std::optional<std::string> percentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    unsigned byte = 0;
    if (text.size() - i < 3)
      return std::nullopt;
    auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16);
    if (error != std::errc() || end != text.data() + i + 3)
      return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

bool equalsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return std::tolower(static_cast<unsigned char>(x)) ==
                  std::tolower(static_cast<unsigned char>(y));
         });
}

} // namespace

std::string newRequestId() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  char text[32];
  std::snprintf(text, sizeof text, "req-%016llx", static_cast<unsigned long long>(generator()));
  return text;
}

std::optional<ApiError> readHead(const http::request_header<> &head, HttpRequest &request) {
  auto text = [](boost::core::string_view view) { return std::string(view.data(), view.size()); };
  request.method = text(head.method_string());
  request.authorization = text(head[http::field::authorization]);
  request.apiKey = text(head["x-api-key"]);
  request.contentType = text(head[http::field::content_type]);
  request.origin = text(head[http::field::origin]);
  request.id = text(head["x-request-id"]);
  if (!isHarmlessId(request.id))
    request.id = newRequestId();
  std::string target = text(head.target());
  size_t question = std::min(target.find('?'), target.size());
  std::optional<std::string> path = percentDecoded(std::string_view(target).substr(0, question));
  if (!path)
    return badRequest("the path of the request has a broken % escape");
  request.path = *path;
  request.query = target.substr(std::min(question + 1, target.size()));

  auto refuse = [](int status, std::string message) {
    return ApiError{status, std::move(message), "invalid_request_error", "", "", 0};
  };
  std::string encoding = text(head[http::field::content_encoding]);
  if (!encoding.empty() && !equalsIgnoringCase(encoding, "identity"))
    return refuse(415, "Content-Encoding '" + encoding.substr(0, 40) +
                           "' is not supported; send the body as it is");
  std::string transfer = text(head[http::field::transfer_encoding]);
  if (!transfer.empty() && !equalsIgnoringCase(transfer, "chunked"))
    return refuse(501, "Transfer-Encoding may only be 'chunked'");
  std::string expect = text(head[http::field::expect]);
  if (!expect.empty() && !equalsIgnoringCase(expect, "100-continue"))
    return refuse(417, "Expect may only be '100-continue'");
  return std::nullopt;
}

} // namespace llmrt::server

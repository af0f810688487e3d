//===- RequestHead.h - what the server reads of a request's header ------------===//
#ifndef LLMRT_SERVER_REQUESTHEAD_H
#define LLMRT_SERVER_REQUESTHEAD_H

#include "runtime/server/ApiError.h"
#include "runtime/server/Exchange.h"

#include <boost/beast/http/message.hpp>
#include <optional>
#include <string>

namespace llmrt::server {

/// A random name for a request whose client gave it none ("req-" and 16 hexadecimal digits).
std::string newRequestId();

/// Fills \p request, but for its body, from \p head (RFC 9110). A refusal if the path can't be
/// decoded (400), or the body is compressed (415), in a coding other than chunked (501), or
/// announced with an expectation other than 100-continue (417); method, origin and id are set then
/// too.
std::optional<ApiError> readHead(const boost::beast::http::request_header<> &head,
                                 HttpRequest &request);

} // namespace llmrt::server

#endif // LLMRT_SERVER_REQUESTHEAD_H

//===- ApiError.h - a refusal in OpenAI's form ------------------------------===//
#ifndef LLMRT_SERVER_APIERROR_H
#define LLMRT_SERVER_APIERROR_H

#include "runtime/support/Status.h"

#include <string>

namespace llmrt::server {

/// What becomes {"error": {"message", "type", "param", "code"}} with an HTTP status.
struct ApiError {
  int status = 500;
  std::string message;
  std::string type = "server_error";
  std::string param;  ///< the field at fault; null in the answer if empty
  std::string code;   ///< null in the answer if empty
  int retryAfter = 0; ///< seconds, as a Retry-After header; 0: none

  std::string body() const;
};

/// 400: the value of \p param is wrong.
ApiError badRequest(std::string message, std::string param = {}, std::string code = {});
/// 500: a fault of the server.
ApiError serverError(std::string message);
/// 503: the server takes no new requests.
ApiError drainingError();
/// A failure of the runtime: the caller's mistakes are 400, everything else is 500.
ApiError fromStatus(const Status &status, std::string param = {});
/// The reason phrase of an HTTP status that this server gives.
const char *reasonPhrase(int status);

} // namespace llmrt::server

#endif // LLMRT_SERVER_APIERROR_H

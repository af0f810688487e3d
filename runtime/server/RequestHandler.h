//===- RequestHandler.h - who answers requests ------------------------------===//
#ifndef LLMRT_SERVER_REQUESTHANDLER_H
#define LLMRT_SERVER_REQUESTHANDLER_H

#include "runtime/server/Exchange.h"

#include <memory>
#include <optional>

namespace llmrt::server {

/// Both functions are called on I/O threads and must not wait.
class RequestHandler {
public:
  virtual ~RequestHandler() = default;
  /// A refusal before the body is read: wrong key, path or method.
  virtual std::optional<ApiError> checkHead(const HttpRequest &request) = 0;
  virtual void handle(std::shared_ptr<Exchange> exchange) = 0;
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_REQUESTHANDLER_H

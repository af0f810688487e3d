//===- Options.h - what a server is started with ----------------------------===//
#ifndef LLMRT_SERVER_OPTIONS_H
#define LLMRT_SERVER_OPTIONS_H

#include <cstdint>
#include <string>
#include <vector>

namespace llmrt::server {

/// Times are in seconds, sizes in bytes.
struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000; ///< 0: the system chooses
  unsigned ioThreads = 2;
  std::vector<std::string> apiKeys;   ///< empty: everybody may ask
  std::string tlsCertificate, tlsKey; ///< PEM files; empty: plain HTTP
  /// Origins of web pages that may ask, "*" for all; empty: none.
  std::vector<std::string> allowedOrigins;

  /// Names by which the model is asked for, the first is its own. Empty: the plan's name, and every
  /// name is taken.
  std::vector<std::string> servedNames;
  uint32_t maxQueuedRequests = 256; ///< that wait while all sequences are busy
  std::string toolCallParser = "auto", reasoningParser = "auto";
  bool vllmMetricNames = false;

  uint32_t maxConnections = 8192;
  uint32_t maxHeaderBytes = 16 << 10;
  uint64_t maxBodyBytes = 32 << 20;
  /// Memory that bodies above 64 KiB may take together.
  uint64_t bodyMemory = 512 << 20;
  unsigned requestTimeout = 60;   ///< from a request's first byte to its last
  unsigned keepAliveTimeout = 75; ///< for the next request
  unsigned writeTimeout = 60;     ///< without a byte taken by the client
  unsigned pingInterval = 15;     ///< comments on a stream that has nothing to say
  unsigned stepTimeout = 120;     ///< a step that takes longer makes /health say "stuck"
  unsigned drainTimeout = 0;      ///< for running requests after SIGTERM; 0: as long as they take

  bool jsonLog = false;
  std::string logLevel = "info"; ///< "debug", "info", "warning", "error"
};

} // namespace llmrt::server

#endif // LLMRT_SERVER_OPTIONS_H

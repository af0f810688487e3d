//===- StreamClient.h - one streamed request to an OpenAI-compatible server -===//
#ifndef LLMC_TOOLS_COMMON_STREAMCLIENT_H
#define LLMC_TOOLS_COMMON_STREAMCLIENT_H

#include "runtime/support/Status.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace llmc::tools {

struct ServerUrl {
  bool tls = false;
  std::string host, port, prefix; ///< prefix: the path before /v1, without a slash at its end
};
/// "http://host:8000", with or without /v1 at its end.
llmrt::Result<ServerUrl> parseUrl(const std::string &url);

/// When what came, and how much.
struct StreamTimes {
  using Clock = std::chrono::steady_clock;
  Clock::time_point sent{}, done{};
  std::vector<Clock::time_point> tokens; ///< arrival of each event with text
  int64_t promptTokens = 0, outputTokens = 0;
};

/// POSTs \p body to /v1/completions on a connection of its own and reads the events. Blocks.
llmrt::Result<StreamTimes> streamCompletion(const ServerUrl &url, const std::string &apiKey,
                                            const std::string &body, int timeoutSeconds);

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_STREAMCLIENT_H

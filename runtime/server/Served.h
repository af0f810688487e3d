//===- Served.h - the model that a server answers for -----------------------===//
#ifndef LLMRT_SERVER_SERVED_H
#define LLMRT_SERVER_SERVED_H

#include "runtime/engine/Model.h"
#include "runtime/server/Generation.h"
#include "runtime/server/MessageParser.h"
#include "runtime/server/Options.h"

#include <ctime>
#include <memory>
#include <string>
#include <vector>

namespace llmrt::server {

/// A model and the engine that runs it, as the caller of the server provides them.
struct LoadedModel {
  std::shared_ptr<const Model> model;
  std::unique_ptr<Engine> engine;
  std::string description; ///< for the log: threads, CPU level
};

/// Made once, when loading has ended; const but for the engine and the metrics.
struct Served {
  /// Fails where the model can't be talked to: no tokenizer.
  static Result<std::unique_ptr<Served>> create(LoadedModel loaded, const ServerOptions &options,
                                                Log &log);

  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> names; ///< the first is the model's own
  bool anyName = false;           ///< requests may name the model as they like
  SamplingParams samplingDefaults;
  std::optional<ChatTemplate> chatTemplate; ///< none: the model takes no chats
  ToolForm toolForm = ToolForm::None;       ///< how it writes tool calls, where it takes tools
  bool reasoning = false;                   ///< it may write <think>
  int32_t vocabulary = 0;                   ///< ids that requests may name
  int64_t maxContext = 0;
  int64_t created = static_cast<int64_t>(std::time(nullptr));
  std::unique_ptr<EngineLoop> engine;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<GenerationHost> generations;

  const std::string &name() const { return names.front(); }
  bool serves(const std::string &asked) const;
};

/// A token as answers spell it: its text, with U+FFFD for parts of characters, and its bytes.
struct TokenText {
  std::string text, bytes;
};
TokenText tokenText(const Tokenizer &tokenizer, int32_t id);

} // namespace llmrt::server

#endif // LLMRT_SERVER_SERVED_H

//===- Handles.h - what stands behind the C API's handles -------------------===//
#ifndef LLMRT_API_HANDLES_H
#define LLMRT_API_HANDLES_H

#include "runtime/engine/EngineThread.h"
#include "runtime/engine/Model.h"

#include <llmrt/llmrt.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct llmrt_plan {
  std::shared_ptr<const llmrt::Model> model;
};

namespace llmrt::capi {

/// Remembers the message for llmrt_last_error and returns the code.
llmrt_status report(const Status &status);

/// Runs \p body, which returns a Status; no exception leaves.
template <typename Body> llmrt_status guarded(const Body &body) {
  try {
    return report(body());
  } catch (const std::bad_alloc &) {
    return report(resourceExhausted("out of memory"));
  } catch (const std::exception &error) {
    return report(internalError(std::string("unexpected: ") + error.what()));
  } catch (...) {
    return report(internalError("unexpected exception"));
  }
}

/// Reads a structure that begins with its size: what an older caller doesn't have keeps the value
/// in \p options; what a newer one has beyond it must be zero.
template <typename Options>
Status readOptions(const Options *given, Options &options, const char *what) {
  if (!given)
    return Status::ok();
  if (given->size < sizeof(size_t))
    return invalidArgument(std::string(what) + ".size is not set; it must be sizeof(" + what + ")");
  size_t known = given->size < sizeof(Options) ? given->size : sizeof(Options);
  const char *bytes = reinterpret_cast<const char *>(given);
  for (size_t i = sizeof(Options); i < given->size; ++i)
    if (bytes[i] != 0)
      return unsupported(std::string(what) + " sets a field that this version (" +
                         llmrt_version_string() + ") doesn't know");
  std::memcpy(static_cast<void *>(&options), given, known);
  return Status::ok();
}

/// One token event as the C API shows it; \p top has room for maxLogprobs.
llmrt_token tokenOf(const TokenEvent &event, llmrt_token_logprob *top);
/// One end; \p stopString keeps the string.
llmrt_result resultOf(const FinishEvent &event, std::string &stopString);

/// One request: forwards what the engine says to the callbacks, and keeps the last result.
class ApiRequest : public RequestListener {
public:
  explicit ApiRequest(const llmrt_generate_options &options, int64_t promptTokens)
      : options_(options) {
    result_.size = sizeof(result_);
    result_.prompt_tokens = promptTokens;
  }
  bool onToken(const TokenEvent &event) override;
  void onFinish(const FinishEvent &event) override;

  bool finished() const { return finished_; }
  const llmrt_result &result() const { return result_; }
  const Status &status() const { return status_; }

private:
  bool giveText(int32_t choice, std::string_view text) {
    if (text.empty())
      return true;
    bool goOn = !options_.on_text || options_.on_text(options_.user, text.data(), text.size()) == 0;
    return (!options_.on_choice_text ||
            options_.on_choice_text(options_.user, choice, text.data(), text.size()) == 0) &&
           goOn;
  }
  llmrt_generate_options options_; ///< its arrays are not used any more
  llmrt_result result_{};
  Status status_;
  std::string stopString_;
  bool finished_ = false;
};

/// The request that \p given asks for, without its listener.
Result<RequestOptions> requestOf(const Model &model, const llmrt_generate_options &options,
                                 const int32_t *prompt, size_t count, bool wantText);
llmrt_generate_options defaultOptions(const llmrt_plan *plan);
inline Status missing(const char *what) { return invalidArgument(std::string(what) + " is NULL"); }

} // namespace llmrt::capi

struct llmrt_engine {
  std::shared_ptr<const llmrt::Model> model;
  std::unique_ptr<llmrt::Engine> engine;       ///< until it is started
  std::unique_ptr<llmrt::EngineThread> thread; ///< from then on
  const llmrt::EngineMetrics *metrics = nullptr;
  std::vector<std::unique_ptr<llmrt::capi::ApiRequest>> requests;
  std::atomic<bool> inUse{false}; ///< by a call: another thread, or a callback, is refused
};

#endif // LLMRT_API_HANDLES_H

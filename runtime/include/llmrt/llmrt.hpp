//===- llmrt.hpp - the C API with classes -----------------------------------===//
//
// Header-only, over llmrt.h: handles close themselves, failures are llmrt::Error, buffers are
// strings and vectors. An exception thrown by a callback cancels its request and leaves generate().
//
//   llmrt::Plan plan("model.plan");
//   llmrt::Engine engine(plan);
//   engine.generate(plan.tokenize("Once upon a time"), llmrt::Options(plan).maxNewTokens(64),
//                   [](std::string_view text) { std::cout << text << std::flush; });
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_LLMRT_HPP
#define LLMRT_LLMRT_HPP

#include <llmrt/llmrt.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace llmrt {
// A namespace of its own inside, so that these names never meet the library's internal ones.
inline namespace api {

class Error : public std::runtime_error {
public:
  Error(llmrt_status status, const std::string &message)
      : std::runtime_error(message), status_(status) {}
  llmrt_status status() const { return status_; }

private:
  llmrt_status status_;
};

inline void check(llmrt_status status) {
  if (status != LLMRT_OK)
    throw Error(status, llmrt_last_error());
}

struct Message {
  std::string role, content;
};

class Plan {
public:
  explicit Plan(const std::string &path, const llmrt_plan_options *options = nullptr) {
    llmrt_plan *plan = nullptr;
    check(llmrt_plan_open(path.c_str(), options, &plan));
    handle_.reset(plan);
  }

  llmrt_plan_info info() const {
    llmrt_plan_info info = {};
    info.size = sizeof(info);
    check(llmrt_plan_get_info(get(), &info));
    return info;
  }

  std::vector<int32_t> tokenize(std::string_view text,
                                uint32_t flags = LLMRT_TOKENIZE_ADD_SPECIAL) const {
    size_t count = 0;
    check(llmrt_tokenize(get(), text.data(), text.size(), flags, nullptr, 0, &count));
    std::vector<int32_t> ids(count);
    check(llmrt_tokenize(get(), text.data(), text.size(), flags, ids.data(), count, &count));
    return ids;
  }

  std::string detokenize(const std::vector<int32_t> &ids, uint32_t flags = 0) const {
    return filled([&](char *text, size_t capacity, size_t *length) {
      return llmrt_detokenize(get(), ids.data(), ids.size(), flags, text, capacity, length);
    });
  }

  /// A conversation as token ids; control tokens spelled in messages stay text.
  std::vector<int32_t> encodeChat(const std::vector<Message> &messages,
                                  bool addGenerationPrompt = true) const {
    std::vector<llmrt_message> list = raw(messages);
    size_t count = 0;
    check(llmrt_encode_chat(get(), list.data(), list.size(), addGenerationPrompt, nullptr, 0,
                            &count));
    std::vector<int32_t> ids(count);
    check(llmrt_encode_chat(get(), list.data(), list.size(), addGenerationPrompt, ids.data(), count,
                            &count));
    return ids;
  }

  /// The same as text, to be shown.
  std::string applyChatTemplate(const std::vector<Message> &messages,
                                bool addGenerationPrompt = true) const {
    std::vector<llmrt_message> list = raw(messages);
    return filled([&](char *text, size_t capacity, size_t *length) {
      return llmrt_apply_chat_template(get(), list.data(), list.size(), addGenerationPrompt, text,
                                       capacity, length);
    });
  }

  const llmrt_plan *get() const { return handle_.get(); }

private:
  static std::vector<llmrt_message> raw(const std::vector<Message> &messages) {
    std::vector<llmrt_message> list;
    for (const Message &m : messages)
      list.push_back({m.role.c_str(), m.content.c_str()});
    return list;
  }
  template <typename Fill> static std::string filled(const Fill &fill) {
    size_t length = 0;
    check(fill(nullptr, 0, &length));
    std::string text(length, '\0');
    check(fill(text.data(), length + 1, &length));
    return text;
  }
  struct Close {
    void operator()(llmrt_plan *plan) const { llmrt_plan_close(plan); }
  };
  std::unique_ptr<llmrt_plan, Close> handle_;
};

/// llmrt_generate_options, one setter a field that owns or copies what it is given.
class Options {
public:
  Options() { llmrt_generate_options_init(nullptr, &raw_, sizeof(raw_)); }
  /// The model's recommended sampling.
  explicit Options(const Plan &plan) {
    llmrt_generate_options_init(plan.get(), &raw_, sizeof(raw_));
  }

  Options &maxNewTokens(int64_t n) { return raw_.max_new_tokens = n, *this; }
  Options &temperature(float t) { return raw_.temperature = t, *this; }
  Options &topK(int32_t k) { return raw_.top_k = k, *this; }
  Options &topP(float p) { return raw_.top_p = p, *this; }
  Options &minP(float p) { return raw_.min_p = p, *this; }
  Options &repetitionPenalty(float r) { return raw_.repetition_penalty = r, *this; }
  Options &presencePenalty(float p) { return raw_.presence_penalty = p, *this; }
  Options &frequencyPenalty(float p) { return raw_.frequency_penalty = p, *this; }
  Options &seed(uint64_t s) { return raw_.seed = s, *this; }
  Options &ignoreEos(bool ignore = true) { return raw_.ignore_eos = ignore, *this; }
  Options &logprobs(int32_t n) { return raw_.logprobs = n, *this; }
  Options &minTokens(int32_t n) { return raw_.min_tokens = n, *this; }
  Options &choices(int32_t n) { return raw_.choices = n, *this; }
  Options &priority(int32_t p) { return raw_.priority = p, *this; }
  Options &timeout(double seconds) { return raw_.timeout_seconds = seconds, *this; }
  Options &cacheSalt(std::string salt) { return salt_ = std::move(salt), *this; }
  /// What the text must be; the last one given counts.
  Options &jsonSchema(std::string text) { return constrain(std::move(text), 's'); }
  Options &regex(std::string text) { return constrain(std::move(text), 'r'); }
  Options &grammar(std::string text) { return constrain(std::move(text), 'g'); }
  Options &stopStrings(std::vector<std::string> strings) {
    return stops_ = std::move(strings), *this;
  }

  /// Valid while this object is unchanged.
  llmrt_generate_options raw() const {
    stopPointers_.clear();
    for (const std::string &stop : stops_)
      stopPointers_.push_back(stop.c_str());
    llmrt_generate_options options = raw_;
    options.stop_strings = stopPointers_.data();
    options.stop_string_count = stopPointers_.size();
    options.cache_salt = salt_.empty() ? nullptr : salt_.c_str();
    options.json_schema = constraintKind_ == 's' ? constraint_.c_str() : nullptr;
    options.regex = constraintKind_ == 'r' ? constraint_.c_str() : nullptr;
    options.grammar = constraintKind_ == 'g' ? constraint_.c_str() : nullptr;
    return options;
  }

private:
  Options &constrain(std::string text, char kind) {
    constraint_ = std::move(text);
    constraintKind_ = kind;
    return *this;
  }
  llmrt_generate_options raw_;
  std::string salt_, constraint_;
  char constraintKind_ = 0;
  std::vector<std::string> stops_;
  mutable std::vector<const char *> stopPointers_;
};

/// A request whose events are fetched; a started engine makes them. Closing it cancels.
class Stream {
public:
  explicit Stream(llmrt_stream *stream) : handle_(stream) {}
  /// The next event; of kind LLMRT_EVENT_NONE when none came in time, LLMRT_EVENT_END after the
  /// last. Pointers in it are valid until the next call.
  llmrt_event next(int timeoutMs = -1) {
    llmrt_event event = {};
    event.size = sizeof(event);
    check(llmrt_stream_next(handle_.get(), timeoutMs, &event));
    return event;
  }

private:
  struct Close {
    void operator()(llmrt_stream *stream) const { llmrt_stream_close(stream); }
  };
  std::unique_ptr<llmrt_stream, Close> handle_;
};

class Engine {
public:
  using OnText = std::function<void(std::string_view)>;
  using OnToken = std::function<void(const llmrt_token &)>;

  explicit Engine(const Plan &plan, const llmrt_engine_options *options = nullptr) {
    llmrt_engine *engine = nullptr;
    check(llmrt_engine_create(plan.get(), options, &engine));
    handle_.reset(engine);
  }

  /// Runs one request to its end; the callbacks hear of text and tokens as they come.
  llmrt_result generate(const std::vector<int32_t> &prompt, const Options &options,
                        OnText onText = {}, OnToken onToken = {}) {
    Callbacks callbacks{std::move(onText), std::move(onToken), nullptr};
    llmrt_generate_options raw = options.raw();
    raw.user = &callbacks;
    if (callbacks.onText)
      raw.on_text = [](void *user, const char *text, size_t length) {
        auto &c = *static_cast<Callbacks *>(user);
        return c.guarded([&] { c.onText({text, length}); });
      };
    if (callbacks.onToken)
      raw.on_token = [](void *user, const llmrt_token *token) {
        auto &c = *static_cast<Callbacks *>(user);
        return c.guarded([&] { c.onToken(*token); });
      };
    llmrt_result result = {};
    result.size = sizeof(result);
    llmrt_status status = llmrt_generate(get(), prompt.data(), prompt.size(), &raw, &result);
    if (callbacks.thrown)
      std::rethrow_exception(callbacks.thrown);
    check(status);
    return result;
  }

  /// Gives the engine a thread of its own: from then on every function may be called from any
  /// thread.
  void start() { check(llmrt_engine_start(get())); }
  /// Waits until all requests have ended; no more are taken.
  void drain() { check(llmrt_engine_drain(get())); }
  Stream stream(const std::vector<int32_t> &prompt, const Options &options, bool wantText = true) {
    llmrt_generate_options raw = options.raw();
    llmrt_stream *stream = nullptr;
    check(llmrt_stream_open(get(), prompt.data(), prompt.size(), &raw, wantText, &stream));
    return Stream(stream);
  }
  llmrt_metrics metrics() const {
    llmrt_metrics metrics = {};
    metrics.size = sizeof(metrics);
    check(llmrt_engine_get_metrics(get(), &metrics));
    return metrics;
  }

  /// Ends what runs; from any thread.
  void cancel(uint64_t request = LLMRT_ALL_REQUESTS) { check(llmrt_cancel(get(), request)); }

  llmrt_engine *get() const { return handle_.get(); }

private:
  struct Callbacks {
    OnText onText;
    OnToken onToken;
    std::exception_ptr thrown;
    /// No exception may cross the C functions: it is kept, and the request cancelled.
    template <typename Call> int guarded(const Call &call) {
      try {
        call();
        return 0;
      } catch (...) {
        thrown = std::current_exception();
        return 1;
      }
    }
  };
  struct Destroy {
    void operator()(llmrt_engine *engine) const { llmrt_engine_destroy(engine); }
  };
  std::unique_ptr<llmrt_engine, Destroy> handle_;
};

} // namespace api
} // namespace llmrt

#endif // LLMRT_LLMRT_HPP

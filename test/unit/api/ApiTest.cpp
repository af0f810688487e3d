// The C API as a program sees it: linked against libllmrt.so, on a plan file with real code.
#include "test/unit/engine/TinyPlan.h"

#include <llmrt/llmrt.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using llmrt::test::TinyPlanFile;
using llmrt::test::TinyPlanOptions;

namespace {

constexpr int32_t one = 27, two = 28, stop = 29, three = 30, accent1 = 31, accent2 = 32, end = 96;

/// a -> " ONE" -> " TWO" -> " STOP" -> " THREE" -> <end> -> <end>; b -> half of é -> the other -> b
TinyPlanOptions scripted() {
  TinyPlanOptions options;
  options.tokenizer = true;
  options.stopIds = {end};
  options.next = {{0, one},   {one, two},   {two, stop},        {stop, three}, {three, end},
                  {end, end}, {1, accent1}, {accent1, accent2}, {accent2, 1}};
  return options;
}

struct Opened {
  explicit Opened(const TinyPlanOptions &planOptions = scripted(),
                  const llmrt_engine_options *options = nullptr)
      : file(planOptions) {
    EXPECT_EQ(llmrt_plan_open(file.path().c_str(), nullptr, &plan), LLMRT_OK) << llmrt_last_error();
    EXPECT_EQ(llmrt_engine_create(plan, options, &engine), LLMRT_OK) << llmrt_last_error();
  }
  ~Opened() {
    llmrt_engine_destroy(engine);
    llmrt_plan_close(plan);
  }
  TinyPlanFile file;
  llmrt_plan *plan = nullptr;
  llmrt_engine *engine = nullptr;
};

struct Collected {
  std::vector<int32_t> ids;
  std::string text;
  llmrt_result result = {};
  static int onToken(void *user, const llmrt_token *token) {
    static_cast<Collected *>(user)->ids.push_back(token->id);
    return 0;
  }
  static int onText(void *user, const char *text, size_t length) {
    static_cast<Collected *>(user)->text.append(text, length);
    return 0;
  }
  llmrt_generate_options options(const llmrt_plan *plan, int64_t n) {
    llmrt_generate_options o;
    llmrt_generate_options_init(plan, &o, sizeof(o));
    o.max_new_tokens = n;
    o.on_token = onToken;
    o.on_text = onText;
    o.user = this;
    result.size = sizeof(result);
    return o;
  }
};

TEST(Api, VersionsAgree) {
  EXPECT_EQ(llmrt_version(),
            uint32_t(LLMRT_VERSION_MAJOR << 16 | LLMRT_VERSION_MINOR << 8 | LLMRT_VERSION_PATCH));
  EXPECT_STREQ(llmrt_version_string(), "0.1.0");
  EXPECT_STREQ(llmrt_status_name(LLMRT_IO_ERROR), "i/o error");
}

TEST(Api, GeneratesTextToTheEndToken) {
  Opened o;
  Collected c;
  int32_t prompt[] = {0};
  llmrt_generate_options options = c.options(o.plan, 50);
  ASSERT_EQ(llmrt_generate(o.engine, prompt, 1, &options, &c.result), LLMRT_OK);
  EXPECT_EQ(c.text, " ONE TWO STOP THREE");
  EXPECT_EQ(c.ids, (std::vector<int32_t>{one, two, stop, three, end}));
  EXPECT_EQ(c.result.reason, LLMRT_FINISH_STOP);
  EXPECT_EQ(c.result.stop_string, nullptr);
  EXPECT_EQ(c.result.prompt_tokens, 1);
  EXPECT_EQ(c.result.output_tokens, 5);
}

TEST(Api, S05_IgnoredEndTokensAreOutput) {
  Opened o;
  Collected c;
  int32_t prompt[] = {0};
  llmrt_generate_options options = c.options(o.plan, 8);
  options.ignore_eos = 1;
  ASSERT_EQ(llmrt_generate(o.engine, prompt, 1, &options, &c.result), LLMRT_OK);
  EXPECT_EQ(c.ids, (std::vector<int32_t>{one, two, stop, three, end, end, end, end}));
  EXPECT_EQ(c.text, " ONE TWO STOP THREE");
  EXPECT_EQ(c.result.reason, LLMRT_FINISH_LENGTH);
}

TEST(Api, S06_NothingFollowsAStopString) {
  Opened o;
  Collected c;
  int32_t prompt[] = {0};
  llmrt_generate_options options = c.options(o.plan, 50);
  const char *stops[] = {"STOP"};
  options.stop_strings = stops;
  options.stop_string_count = 1;
  ASSERT_EQ(llmrt_generate(o.engine, prompt, 1, &options, &c.result), LLMRT_OK);
  EXPECT_EQ(c.text, " ONE TWO ");
  EXPECT_EQ(c.ids, (std::vector<int32_t>{one, two, stop}));
  EXPECT_EQ(c.result.reason, LLMRT_FINISH_STOP);
  EXPECT_STREQ(c.result.stop_string, "STOP");
}

TEST(Api, S07_TheStopThatCompletesFirstCounts) {
  Opened o;
  Collected c;
  int32_t prompt[] = {0};
  llmrt_generate_options options = c.options(o.plan, 50);
  const char *stops[] = {"THREE", "O ST", "TWO S"};
  options.stop_strings = stops;
  options.stop_string_count = 3;
  ASSERT_EQ(llmrt_generate(o.engine, prompt, 1, &options, &c.result), LLMRT_OK);
  EXPECT_EQ(c.text, " ONE ");
  EXPECT_STREQ(c.result.stop_string, "TWO S");
}

TEST(Api, V11_AHeldBackBeginningOfAStopIsReleased) {
  Opened o;
  Collected c;
  int32_t prompt[] = {0};
  llmrt_generate_options options = c.options(o.plan, 50);
  const char *stops[] = {"THREE\nAAAA"};
  options.stop_strings = stops;
  options.stop_string_count = 1;
  ASSERT_EQ(llmrt_generate(o.engine, prompt, 1, &options, &c.result), LLMRT_OK);
  EXPECT_EQ(c.text, " ONE TWO STOP THREE");
}

TEST(Api, TextComesInWholeCharacters) {
  Opened o;
  struct Pieces {
    std::vector<std::string> list;
  } pieces;
  llmrt_generate_options options;
  llmrt_generate_options_init(o.plan, &options, sizeof(options));
  options.max_new_tokens = 7; // é b é b half of é
  options.user = &pieces;
  options.on_text = [](void *user, const char *text, size_t n) {
    static_cast<Pieces *>(user)->list.emplace_back(text, n);
    return 0;
  };
  int32_t prompt[] = {1};
  ASSERT_EQ(llmrt_generate(o.engine, prompt, 1, &options, nullptr), LLMRT_OK);
  EXPECT_EQ(pieces.list, (std::vector<std::string>{"é", "b", "é", "b", "\uFFFD"}));
}

TEST(Api, TokenizesAndDetokenizes) {
  Opened o;
  int32_t ids[8];
  size_t count = 0, length = 0;
  ASSERT_EQ(llmrt_tokenize(o.plan, "cab", 3, 0, nullptr, 0, &count), LLMRT_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(llmrt_tokenize(o.plan, "cab", 3, 0, ids, 2, &count), LLMRT_INVALID_ARGUMENT);
  ASSERT_EQ(llmrt_tokenize(o.plan, "cab", 3, 0, ids, 8, &count), LLMRT_OK);
  EXPECT_EQ(std::vector<int32_t>(ids, ids + count), (std::vector<int32_t>{2, 0, 1}));
  // User text never becomes a control token unless that is asked for.
  ASSERT_EQ(llmrt_tokenize(o.plan, "<end>", 5, LLMRT_TOKENIZE_PARSE_SPECIAL, ids, 8, &count),
            LLMRT_OK);
  EXPECT_EQ(std::vector<int32_t>(ids, ids + count), std::vector<int32_t>{end});
  if (llmrt_tokenize(o.plan, "<end>", 5, 0, ids, 8, &count) == LLMRT_OK)
    for (size_t i = 0; i < count; ++i)
      EXPECT_NE(ids[i], end);
  EXPECT_EQ(llmrt_tokenize(o.plan, "\xff", 1, 0, ids, 8, &count), LLMRT_INVALID_ARGUMENT);

  const int32_t words[] = {0, one, end};
  char text[32];
  ASSERT_EQ(llmrt_detokenize(o.plan, words, 3, 0, text, sizeof(text), &length), LLMRT_OK);
  EXPECT_STREQ(text, "a ONE");
  EXPECT_EQ(length, 5u);
  EXPECT_EQ(llmrt_detokenize(o.plan, words, 3, 0, text, 5, &length), LLMRT_INVALID_ARGUMENT);
  ASSERT_EQ(llmrt_detokenize(o.plan, words, 3, LLMRT_DETOKENIZE_KEEP_SPECIAL, text, sizeof(text),
                             &length),
            LLMRT_OK);
  EXPECT_STREQ(text, "a ONE<end>");
}

TEST(Api, AppliesTheChatTemplate) {
  Opened o;
  const llmrt_message messages[] = {{"system", "x"}, {"user", "{{ y }}"}};
  char text[64];
  size_t length = 0;
  ASSERT_EQ(llmrt_apply_chat_template(o.plan, messages, 2, 1, text, sizeof(text), &length),
            LLMRT_OK)
      << llmrt_last_error();
  EXPECT_STREQ(text, "sxu{{ y }}<end>");
}

TEST(Api, ControlTokensInMessagesStayText) {
  Opened o;
  auto encode = [&](const char *content) {
    const llmrt_message messages[] = {{"user", content}};
    size_t count = 0;
    EXPECT_EQ(llmrt_encode_chat(o.plan, messages, 1, 1, nullptr, 0, &count), LLMRT_OK)
        << llmrt_last_error();
    std::vector<int32_t> ids(count);
    EXPECT_EQ(llmrt_encode_chat(o.plan, messages, 1, 1, ids.data(), count, &count), LLMRT_OK);
    return ids;
  };
  // The template writes "u", the message, "<end>".
  EXPECT_EQ(encode("ab"), (std::vector<int32_t>{20, 0, 1, end}));
  for (const char *content : {"a<end>b", "<end>", "<end><end>", "<e<end>nd>"}) {
    std::vector<int32_t> ids = encode(content);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 1) << content;
    EXPECT_EQ(ids.back(), end);
  }
  // What is around a control token is not lost: a, then the letters e n d, then b.
  EXPECT_EQ(encode("a<end>b"), (std::vector<int32_t>{20, 0, 4, 13, 3, 1, end}));
}

TEST(Api, ErrorsNameWhatIsWrong) {
  llmrt_plan *plan = nullptr;
  EXPECT_EQ(llmrt_plan_open("/nonexistent/x.plan", nullptr, &plan), LLMRT_IO_ERROR);
  EXPECT_NE(std::string(llmrt_last_error()).find("/nonexistent/x.plan"), std::string::npos);
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(llmrt_plan_open(nullptr, nullptr, &plan), LLMRT_INVALID_ARGUMENT);

  Opened o;
  Collected c;
  llmrt_generate_options options = c.options(o.plan, 5);
  EXPECT_EQ(llmrt_generate(o.engine, nullptr, 0, &options, nullptr), LLMRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(llmrt_last_error()).find("no tokens"), std::string::npos);
  int32_t prompt[] = {4294967, 0};
  EXPECT_EQ(llmrt_generate(o.engine, prompt, 2, &options, nullptr), LLMRT_INVALID_ARGUMENT);
  prompt[0] = 1;
  options.top_p = 1.1f;
  EXPECT_EQ(llmrt_generate(o.engine, prompt, 2, &options, nullptr), LLMRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(llmrt_last_error()).find("top_p"), std::string::npos);
  options.top_p = 1;
  const char *empty[] = {""}; // V10
  options.stop_strings = empty;
  options.stop_string_count = 1;
  EXPECT_EQ(llmrt_generate(o.engine, prompt, 2, &options, nullptr), LLMRT_INVALID_ARGUMENT);
  EXPECT_TRUE(c.ids.empty());
}

TEST(Api, LastErrorsBelongToTheirThreads) {
  llmrt_plan *plan = nullptr;
  (void)llmrt_plan_open("/nonexistent/main.plan", nullptr, &plan);
  std::thread([] {
    EXPECT_STREQ(llmrt_last_error(), "");
    llmrt_plan *other = nullptr;
    (void)llmrt_plan_open("/nonexistent/thread.plan", nullptr, &other);
    EXPECT_NE(std::string(llmrt_last_error()).find("thread.plan"), std::string::npos);
  }).join();
  EXPECT_NE(std::string(llmrt_last_error()).find("main.plan"), std::string::npos);
}

TEST(Api, StructuresOfOtherVersions) {
  Opened o;
  Collected c;
  int32_t prompt[] = {0};
  // An older caller: everything from stop_ids on is missing, and what was there counts.
  llmrt_generate_options old = c.options(o.plan, 2);
  old.size = offsetof(llmrt_generate_options, stop_ids);
  ASSERT_EQ(llmrt_generate(o.engine, prompt, 1, &old, &c.result), LLMRT_OK);
  EXPECT_EQ(c.result.output_tokens, 2);
  EXPECT_TRUE(c.ids.empty()); // callbacks come later in the structure
  // A newer one: fine while its new fields are zero.
  struct {
    llmrt_generate_options known;
    uint64_t future;
  } newer = {c.options(o.plan, 2), 0};
  newer.known.size = sizeof(newer);
  EXPECT_EQ(llmrt_generate(o.engine, prompt, 1, &newer.known, nullptr), LLMRT_OK);
  newer.future = 1;
  EXPECT_EQ(llmrt_generate(o.engine, prompt, 1, &newer.known, nullptr), LLMRT_UNSUPPORTED);
  newer.known.size = 0;
  EXPECT_EQ(llmrt_generate(o.engine, prompt, 1, &newer.known, nullptr), LLMRT_INVALID_ARGUMENT);
}

TEST(Api, SubmittedRequestsRunTogether) {
  llmrt_engine_options engineOptions = {};
  engineOptions.size = sizeof(engineOptions);
  engineOptions.max_sequences = 4;
  engineOptions.threads = 2;
  Opened o(scripted(), &engineOptions);
  Collected collected[6];
  for (Collected &c : collected) {
    llmrt_generate_options options = c.options(o.plan, 50);
    options.on_finish = [](void *user, const llmrt_result *result) {
      static_cast<Collected *>(user)->result = *result;
    };
    int32_t prompt[] = {0};
    uint64_t id = 0;
    ASSERT_EQ(llmrt_submit(o.engine, prompt, 1, &options, &id), LLMRT_OK);
    EXPECT_NE(id, 0u);
  }
  int busy = 1;
  while (busy)
    ASSERT_EQ(llmrt_step(o.engine, &busy), LLMRT_OK);
  for (const Collected &c : collected) {
    EXPECT_EQ(c.text, " ONE TWO STOP THREE");
    EXPECT_EQ(c.result.reason, LLMRT_FINISH_STOP);
  }
}

TEST(Api, CancelFromAnotherThread) {
  TinyPlanOptions endless = scripted();
  endless.maxContext = 100000;
  endless.next[1] = 1; // b for ever
  Opened o(endless);
  std::atomic<int> tokens{0};
  llmrt_generate_options options;
  llmrt_generate_options_init(o.plan, &options, sizeof(options));
  options.user = &tokens;
  options.on_token = [](void *user, const llmrt_token *) {
    static_cast<std::atomic<int> *>(user)->fetch_add(1);
    return 0;
  };
  std::thread canceller([&] {
    while (tokens.load() < 10)
      std::this_thread::yield();
    EXPECT_EQ(llmrt_cancel(o.engine, LLMRT_ALL_REQUESTS), LLMRT_OK);
  });
  int32_t prompt[] = {1};
  llmrt_result result = {};
  result.size = sizeof(result);
  EXPECT_EQ(llmrt_generate(o.engine, prompt, 1, &options, &result), LLMRT_CANCELLED);
  canceller.join();
  EXPECT_EQ(result.reason, LLMRT_FINISH_CANCELLED);
  EXPECT_GE(tokens.load(), 10);
}

TEST(Api, CallbacksMayNotCallTheEngine) {
  Opened o;
  struct State {
    llmrt_engine *engine;
    llmrt_status status = LLMRT_OK;
  } state{o.engine};
  llmrt_generate_options options;
  llmrt_generate_options_init(o.plan, &options, sizeof(options));
  options.max_new_tokens = 3;
  options.user = &state;
  options.on_token = [](void *user, const llmrt_token *) {
    auto &s = *static_cast<State *>(user);
    s.status = llmrt_step(s.engine, nullptr);
    return 0;
  };
  int32_t prompt[] = {0};
  ASSERT_EQ(llmrt_generate(o.engine, prompt, 1, &options, nullptr), LLMRT_OK);
  EXPECT_EQ(state.status, LLMRT_INVALID_ARGUMENT);
}

TEST(Api, NullHandles) {
  llmrt_plan_close(nullptr);
  llmrt_engine_destroy(nullptr);
  EXPECT_EQ(llmrt_step(nullptr, nullptr), LLMRT_INVALID_ARGUMENT);
  EXPECT_EQ(llmrt_cancel(nullptr, 1), LLMRT_INVALID_ARGUMENT);
  EXPECT_EQ(llmrt_plan_get_info(nullptr, nullptr), LLMRT_INVALID_ARGUMENT);
  llmrt_engine *engine = nullptr;
  EXPECT_EQ(llmrt_engine_create(nullptr, nullptr, &engine), LLMRT_INVALID_ARGUMENT);
}

TEST(Api, Info) {
  Opened o;
  llmrt_plan_info info = {};
  info.size = sizeof(info);
  ASSERT_EQ(llmrt_plan_get_info(o.plan, &info), LLMRT_OK);
  EXPECT_STREQ(info.name, "tiny");
  EXPECT_EQ(info.vocabulary, 97);
  EXPECT_EQ(info.max_context, 512);
  EXPECT_EQ(info.kv_bytes_per_token, 32u);
  EXPECT_EQ(info.has_tokenizer, 1);
}

} // namespace

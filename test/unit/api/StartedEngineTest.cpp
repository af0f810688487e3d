// Engines with a thread of their own: submit, fetch, cancel, drain, metrics, from many threads.
#include <llmrt/llmrt.hpp>

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

namespace {

/// A tiny plan that ApiPlan.cpp made: after "a" it writes " ONE TWO STOP THREE" and ends.
extern "C" const char *llmrtTestPlanPath();

llmrt_engine_options engineOptions(uint32_t sequences) {
  llmrt_engine_options options = {};
  options.size = sizeof(options);
  options.threads = 1;
  options.max_sequences = sequences;
  options.kv_tokens = 2048;
  return options;
}

struct Opened {
  explicit Opened(llmrt_engine_options options = engineOptions(4))
      : plan(llmrtTestPlanPath()), engine(plan, &options) {
    engine.start();
  }
  llmrt::Plan plan;
  llmrt::Engine engine;
};

struct Answer {
  std::string text, stop;
  std::vector<int32_t> ids;
  llmrt_finish_reason reason = LLMRT_FINISH_NONE;
};

std::vector<Answer> fetch(llmrt::Stream &stream, size_t choices = 1) {
  std::vector<Answer> answers(choices);
  for (;;) {
    llmrt_event event = stream.next();
    if (event.kind == LLMRT_EVENT_END)
      return answers;
    bool isToken = event.kind == LLMRT_EVENT_TOKEN;
    Answer &a = answers.at(size_t(isToken ? event.token.choice : event.result.choice));
    a.text.append(event.text, event.text_length);
    if (isToken) {
      EXPECT_EQ(event.token.index, int64_t(a.ids.size()));
      a.ids.push_back(event.token.id);
    } else {
      a.reason = event.result.reason;
      a.stop = event.result.stop_string ? event.result.stop_string : "";
      EXPECT_EQ(event.result.output_tokens, int64_t(a.ids.size()));
    }
  }
}

TEST(StartedEngine, StreamsAreFetched) {
  Opened o;
  llmrt::Stream stream = o.engine.stream(
      o.plan.tokenize("a"), llmrt::Options(o.plan).maxNewTokens(50).stopStrings({"STOP"}));
  Answer answer = fetch(stream)[0];
  EXPECT_EQ(answer.text, " ONE TWO ");
  EXPECT_EQ(answer.stop, "STOP");
  EXPECT_EQ(answer.reason, LLMRT_FINISH_STOP);
  EXPECT_EQ(stream.next(0).kind, LLMRT_EVENT_END) << "again and again";
  llmrt_metrics metrics = o.engine.metrics();
  EXPECT_EQ(metrics.generation_tokens, 3);
  EXPECT_EQ(metrics.finished_stop, 1);
}

TEST(StartedEngine, ManyThreadsAtOnce) {
  Opened o;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        if (t % 2) {
          llmrt::Stream stream =
              o.engine.stream(o.plan.tokenize("a"), llmrt::Options(o.plan).maxNewTokens(50));
          right += fetch(stream)[0].text == " ONE TWO STOP THREE";
        } else { // generate waits
          std::string text;
          llmrt_result result =
              o.engine.generate(o.plan.tokenize("a"), llmrt::Options(o.plan).maxNewTokens(50),
                                [&](std::string_view piece) { text += piece; });
          right += text == " ONE TWO STOP THREE" && result.reason == LLMRT_FINISH_STOP;
        }
        EXPECT_GE(o.engine.metrics().steps, 0);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 80);
  o.engine.drain();
  EXPECT_THROW((void)o.engine.stream({0}, llmrt::Options(o.plan)), llmrt::Error);
}

TEST(StartedEngine, ChoicesHaveTheirNumbers) {
  Opened o;
  llmrt::Stream stream = o.engine.stream(
      o.plan.tokenize("bcd"),
      llmrt::Options(o.plan).maxNewTokens(20).temperature(5).seed(3).choices(3).ignoreEos());
  std::vector<Answer> answers = fetch(stream, 3);
  for (const Answer &answer : answers)
    EXPECT_EQ(answer.ids.size(), 20u);
  EXPECT_NE(answers[0].ids, answers[1].ids);
  EXPECT_NE(answers[1].ids, answers[2].ids);
}

TEST(StartedEngine, GrammarsHold) {
  Opened o;
  // The model's own choice is spaced words; the regex wants letters.
  llmrt::Stream stream = o.engine.stream(
      o.plan.tokenize("a"), llmrt::Options(o.plan).maxNewTokens(50).regex("x[a-c]{3}(yy|z)"));
  Answer answer = fetch(stream)[0];
  EXPECT_EQ(answer.text, "xaaayy"); // of equals, the lowest ids
  EXPECT_EQ(answer.reason, LLMRT_FINISH_STOP);
  try {
    (void)o.engine.stream({0}, llmrt::Options(o.plan).regex("(a"));
    FAIL();
  } catch (const llmrt::Error &error) {
    EXPECT_NE(std::string(error.what()).find("'(' without ')'"), std::string::npos);
  }
}

TEST(StartedEngine, ClosingAStreamCancelsItsRequest) {
  // The tiny model may be done before the stream is closed; a request that waits for it is not.
  Opened o(engineOptions(1));
  auto endless = [&] {
    return o.engine.stream(o.plan.tokenize("bcd"),
                           llmrt::Options(o.plan).maxNewTokens(-1).ignoreEos());
  };
  {
    std::vector<llmrt::Stream> streams;
    for (int i = 0; i < 20; ++i)
      streams.push_back(endless());
    EXPECT_EQ(streams.front().next().kind, LLMRT_EVENT_TOKEN);
  }
  o.engine.drain();
  const llmrt_metrics metrics = o.engine.metrics();
  EXPECT_GT(metrics.finished_cancelled, 0);
  EXPECT_EQ(metrics.finished_cancelled + metrics.finished_length, 20);
}

TEST(StartedEngine, TimeoutsAndFullQueuesHaveTheirOwnStatus) {
  llmrt_engine_options options = engineOptions(1);
  options.max_queued = 1;
  Opened o(options);
  auto endless = [&] { return llmrt::Options(o.plan).maxNewTokens(-1).ignoreEos().timeout(0.05); };
  std::vector<llmrt::Stream> streams;
  bool full = false;
  for (int i = 0; i < 20 && !full; ++i)
    try {
      streams.push_back(o.engine.stream(o.plan.tokenize("bcd"), endless()));
    } catch (const llmrt::Error &error) {
      EXPECT_EQ(error.status(), LLMRT_QUEUE_FULL);
      full = true;
    }
  EXPECT_TRUE(full);
  for (llmrt::Stream &stream : streams) {
    llmrt_event event;
    do
      event = stream.next();
    while (event.kind == LLMRT_EVENT_TOKEN);
    EXPECT_EQ(event.kind, LLMRT_EVENT_FINISH);
    // The context may have been full before the time was over.
    if (event.result.reason == LLMRT_FINISH_ERROR) {
      EXPECT_EQ(event.result.status, LLMRT_DEADLINE_EXCEEDED);
    }
  }
}

TEST(StartedEngine, WrongUseIsRefused) {
  llmrt::Plan plan(llmrtTestPlanPath());
  llmrt::Engine engine(plan);
  llmrt_stream *stream = nullptr;
  const int32_t prompt[] = {0};
  EXPECT_EQ(llmrt_stream_open(engine.get(), prompt, 1, nullptr, 0, &stream),
            LLMRT_INVALID_ARGUMENT);
  EXPECT_EQ(llmrt_engine_drain(engine.get()), LLMRT_INVALID_ARGUMENT);
  engine.start();
  EXPECT_EQ(llmrt_engine_start(engine.get()), LLMRT_INVALID_ARGUMENT);
  int busy = 0;
  EXPECT_EQ(llmrt_step(engine.get(), &busy), LLMRT_INVALID_ARGUMENT);
  llmrt_generate_options options;
  llmrt_generate_options_init(plan.get(), &options, sizeof(options));
  options.on_finish = [](void *, const llmrt_result *) {};
  EXPECT_EQ(llmrt_stream_open(engine.get(), prompt, 1, &options, 0, &stream),
            LLMRT_INVALID_ARGUMENT);
  llmrt_metrics metrics = {};
  EXPECT_EQ(llmrt_engine_get_metrics(engine.get(), &metrics), LLMRT_INVALID_ARGUMENT);
  llmrt_engine_options bad = engineOptions(1);
  bad.speculative_config = "{\"method\": \"magic\"}";
  EXPECT_THROW(llmrt::Engine(plan, &bad), llmrt::Error);
  llmrt_stream_close(nullptr);
}

} // namespace

//===- TestBench.h - an engine over a scripted model, for tests -------------===//
#ifndef LLMRT_TEST_UNIT_ENGINE_TESTBENCH_H
#define LLMRT_TEST_UNIT_ENGINE_TESTBENCH_H

#include "runtime/engine/CpuEngine.h"
#include "runtime/engine/Engine.h"

#include "test/unit/engine/ScriptedExecutor.h"

namespace llmrt::test {

inline constexpr int32_t vocabulary = 97;

inline ModelShape shapeOf(int64_t context = 4096, int64_t shortContext = INT64_MAX) {
  ModelShape shape;
  shape.vocabulary = vocabulary;
  shape.maxContext = context;
  shape.shortContext = shortContext;
  shape.maxTokens = 512;
  shape.maxSequences = 64;
  shape.maxRows = 512;
  shape.queryTile = 8;
  shape.kvBytesPerToken = 4;
  return shape;
}

struct BenchOptions {
  int64_t context = 4096, shortContext = INT64_MAX;
  /// Layers that see all tokens, and layers that see these many, with pools of their own.
  std::vector<int64_t> windows = {};
  EngineLimits limits{.maxBatchedTokens = 64,
                      .maxSequences = 8,
                      .blockTokens = 16,
                      .kvBlocks = 256,
                      .maxRows = 64,
                      .sampledVocabulary = vocabulary};
  ScriptedExecutor::Script script = [](const std::vector<int32_t> &context) {
    return hashScript(context, vocabulary);
  };
};

struct TestBench {
  explicit TestBench(const BenchOptions &setup = {}, std::unique_ptr<Drafter> drafter = nullptr) {
    ModelShape shape = shapeOf(setup.context, setup.shortContext);
    EngineLimits limits = setup.limits;
    if (!setup.windows.empty()) {
      shape.kvGroups = {{0, 4}};
      for (int64_t window : setup.windows)
        shape.kvGroups.push_back({window, 4});
      limits.windowBlocks = windowBlocks(shape, limits, limits.kvBlocks);
    }
    auto owned = std::make_unique<ScriptedExecutor>(shape, setup.script);
    executor = owned.get();
    engine = std::move(*Engine::create(std::move(owned), limits, std::move(drafter)));
  }
  Result<RequestId> add(std::vector<int32_t> prompt, int64_t n, RecordingListener &listener,
                        std::function<void(RequestOptions &)> more = {}) {
    RequestOptions options;
    options.prompt = std::move(prompt);
    options.maxNewTokens = n;
    options.listener = &listener;
    if (more)
      more(options);
    return engine->add(std::move(options));
  }
  void drain() {
    for (int i = 0; engine->busy(); ++i) {
      ASSERT_LT(i, 100000) << "the engine makes no progress";
      (void)engine->step();
    }
  }
  ScriptedExecutor *executor;
  std::unique_ptr<Engine> engine;
};

inline std::vector<int32_t> promptOf(int n, int salt = 1) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < n; ++i)
    prompt.push_back((i * 31 + salt * 7) % vocabulary);
  return prompt;
}

/// What \p script says without an engine.
inline std::vector<int32_t>
expected(std::vector<int32_t> context, int n,
         const ScriptedExecutor::Script &script = BenchOptions().script) {
  std::vector<int32_t> out;
  for (int i = 0; i < n; ++i) {
    out.push_back(script(context));
    context.push_back(out.back());
  }
  return out;
}

/// A script that sees \p window tokens.
inline ScriptedExecutor::Script windowedScript(size_t window) {
  return [window](const std::vector<int32_t> &context) {
    size_t first = context.size() > window ? context.size() - window : 0;
    return hashScript({context.begin() + ptrdiff_t(first), context.end()}, vocabulary);
  };
}

} // namespace llmrt::test

#endif // LLMRT_TEST_UNIT_ENGINE_TESTBENCH_H

// The CUDA backend over the stand-in driver: choice of device and code, memory, steps, graphs,
// failures. Kernels run in checked mode.
#include "runtime/device/cuda/CudaExecutor.h"

#include "runtime/device/cuda/Architecture.h"
#include "runtime/engine/DeviceEngine.h"
#include "test/emulator/Emulator.h"
#include "test/emulator/TinyCudaPlan.h"
#include "test/unit/engine/ScriptedExecutor.h"
#include "test/unit/engine/TinyPlan.h"

using namespace llmrt;
using namespace llmrt::test;

namespace {

std::vector<int32_t> promptOf(int n, int salt = 1) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < n; ++i)
    prompt.push_back((i * 31 + salt * 7) % tinyVocabulary);
  return prompt;
}

std::vector<int32_t> expected(std::vector<int32_t> context, int n) {
  std::vector<int32_t> out;
  for (int i = 0; i < n; ++i) {
    out.push_back(hashScript(context, tinyVocabulary));
    context.push_back(out.back());
  }
  return out;
}

std::unique_ptr<Engine> engineOf(EngineOptions options = {}) {
  auto engine = createEngine(tinyCudaPlan(), options);
  EXPECT_TRUE(engine) << engine.status().message();
  return std::move(*engine);
}

CudaExecutor &executorOf(Engine &engine) { return static_cast<CudaExecutor &>(engine.executor()); }

std::vector<int32_t> generate(Engine &engine, std::vector<int32_t> prompt, int64_t n) {
  RecordingListener listener;
  RequestOptions request;
  request.prompt = std::move(prompt);
  request.maxNewTokens = n;
  request.listener = &listener;
  auto id = engine.add(std::move(request));
  EXPECT_TRUE(id) << id.status().message();
  while (engine.busy()) {
    Status s = engine.step();
    EXPECT_TRUE(s) << s.message();
    if (!s)
      break;
  }
  return listener.ids;
}

/// The refusals: case M20.
TEST(Architecture, TheBestForTheDevice) {
  using cuda::chooseArchitecture;
  const std::string names[] = {"compute_80", "sm_80", "sm_86", "sm_90a", "sm_120a"};
  auto best = [&](int major, int minor) { return names[*chooseArchitecture(names, major, minor)]; };
  EXPECT_EQ(best(8, 0), "sm_80");
  EXPECT_EQ(best(8, 6), "sm_86");
  EXPECT_EQ(best(8, 9), "sm_86"); // cubins run on later minors of their major
  EXPECT_EQ(best(9, 0), "sm_90a");
  EXPECT_EQ(best(10, 0), "compute_80"); // another major: PTX
  EXPECT_EQ(best(12, 1), "compute_80"); // sm_120a is for 12.0 alone
  const std::string few[] = {"sm_90a", "sm_86"};
  auto none = chooseArchitecture(few, 8, 0);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.status().code(), StatusCode::Unsupported);
  EXPECT_EQ(none.status().message(),
            "the plan has CUDA code for sm_90a, sm_86, and this device is sm_80; compile the model "
            "with --target cuda:sm_80");
  const std::string unknown[] = {"sm_99"};
  none = chooseArchitecture(unknown, 9, 0);
  ASSERT_FALSE(none);
  EXPECT_NE(none.status().message().find("for sm_99, and this device is sm_90"), std::string::npos);
}

TEST(CudaExecutor, PromptChunksBlocksAndGraphsDoNotChangeAnything) {
  for (int64_t chunk : {1, 7, 128})
    for (int64_t block : {16, 64}) {
      EngineOptions options;
      options.maxBatchedTokens = chunk;
      options.blockTokens = block;
      auto engine = engineOf(options);
      EXPECT_EQ(generate(*engine, promptOf(100), 40), expected(promptOf(100), 40))
          << chunk << " " << block;
      // The prompt's chunks of several tokens are launched one by one, all the rest is replayed.
      uint64_t single = chunk == 1 ? 139 : 39 + (100 % chunk == 1);
      EXPECT_EQ(executorOf(*engine).graphSteps(), single) << chunk;
    }
}

TEST(CudaExecutor, MixedBatchesOfPrefillAndDecode) {
  EngineOptions options;
  options.maxSequences = 16;
  options.maxBatchedTokens = 40;
  options.kvTokens = 2000;
  for (simt::Order order : {simt::Order::Forward, simt::Order::Reverse, simt::Order::Random}) {
    simt::options().order = order;
    auto engine = engineOf(options);
    std::vector<RecordingListener> listeners(24);
    for (int i = 0; i < 24; ++i) {
      RequestOptions request;
      request.prompt = promptOf(1 + i * 3, i);
      request.maxNewTokens = 1 + (i * 7) % 20;
      request.listener = &listeners[size_t(i)];
      ASSERT_TRUE(engine->add(std::move(request)));
    }
    while (engine->busy())
      ASSERT_TRUE(engine->step());
    for (int i = 0; i < 24; ++i)
      EXPECT_EQ(listeners[size_t(i)].ids, expected(promptOf(1 + i * 3, i), 1 + (i * 7) % 20)) << i;
    EXPECT_GT(executorOf(*engine).graphSteps(), 0u);
    EXPECT_LT(executorOf(*engine).graphSteps(), executorOf(*engine).steps());
  }
  simt::options().order = simt::Order::Forward;
}

TEST(CudaExecutor, AnotherModelOnTheSameDevice) {
  size_t before = simt::allocatedBytes();
  {
    auto one = engineOf(), other = engineOf();
    EXPECT_EQ(generate(*one, promptOf(9), 12), expected(promptOf(9), 12));
    EXPECT_EQ(generate(*other, promptOf(5), 12), expected(promptOf(5), 12));
    one.reset();
    EXPECT_EQ(generate(*other, promptOf(9), 12), expected(promptOf(9), 12));
  }
  EXPECT_EQ(simt::allocatedBytes(), before); // all of it was given back
}

TEST(CudaExecutor, BlocksAreCopiedSavedAndLoaded) {
  CudaExecutorOptions options;
  options.largest = {8, 1, 1, 8};
  auto executor = CudaExecutor::create(tinyCudaPlan(), options);
  ASSERT_TRUE(executor) << executor.status().message();
  ASSERT_TRUE((*executor)->createKvPool(3, 16));
  ASSERT_EQ((*executor)->kvBlockBytes(0), 16u * 32);
  std::vector<uint8_t> bytes(16 * 32), back(16 * 32, 9);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = uint8_t(i * 7);
  ASSERT_TRUE((*executor)->loadKvBlock(1, bytes.data(), 0));
  ASSERT_TRUE((*executor)->copyKvBlock(1, 2, 0));
  (*executor)->clearKvBlock(1, 0);
  ASSERT_TRUE((*executor)->saveKvBlock(2, back.data(), 0));
  EXPECT_EQ(back, bytes);
  ASSERT_TRUE((*executor)->saveKvBlock(1, back.data(), 0));
  EXPECT_EQ(back, std::vector<uint8_t>(16 * 32, 0));
}

TEST(CudaExecutor, EachGroupOfLayersHasBlocksOfItsOwn) {
  CudaExecutorOptions options;
  options.largest = {8, 1, 1, 8};
  auto executor = CudaExecutor::create(tinyCudaPlan([](fbs::PlanT &plan) {
                                         auto layer =
                                             std::make_unique<fbs::KvLayerT>(*plan.kv->layers[0]);
                                         plan.model->layers = 2;
                                         layer->window = 8;
                                         layer->key_size = 8;
                                         plan.kv->layers.push_back(std::move(layer));
                                         plan.kv->bytes_per_token += (8 + 4) * 4;
                                       }),
                                       options);
  ASSERT_TRUE(executor) << executor.status().message();
  EXPECT_EQ((*executor)->shape().kvGroups, (std::vector<KvGroup>{{0, 32}, {8, 48}}));
  int64_t blocks[] = {3, 2};
  ASSERT_TRUE((*executor)->createKvPools(blocks, 16));
  std::vector<std::vector<uint8_t>> bytes;
  for (uint32_t group = 0; group < 2; ++group) {
    ASSERT_EQ((*executor)->kvBlockBytes(group), group ? 16u * 48 : 16u * 32);
    for (int32_t block = 0; block < blocks[group]; ++block) {
      bytes.emplace_back((*executor)->kvBlockBytes(group), uint8_t(10 * group + block + 1));
      ASSERT_TRUE((*executor)->loadKvBlock(block, bytes.back().data(), group));
    }
  }
  auto read = [&](int32_t block, uint32_t group) {
    std::vector<uint8_t> back((*executor)->kvBlockBytes(group));
    EXPECT_TRUE((*executor)->saveKvBlock(block, back.data(), group));
    return back;
  };
  for (int32_t block = 0; block < 3; ++block)
    EXPECT_EQ(read(block, 0), bytes[size_t(block)]);
  for (int32_t block = 0; block < 2; ++block)
    EXPECT_EQ(read(block, 1), bytes[size_t(3 + block)]);
  ASSERT_TRUE((*executor)->copyKvBlock(0, 1, 1));
  (*executor)->clearKvBlock(0, 1);
  EXPECT_EQ(read(1, 1), bytes[3]);
  EXPECT_EQ(read(0, 1), std::vector<uint8_t>(16 * 48, 0));
  EXPECT_EQ(read(0, 0), bytes[0]) << "another group's block of the same number";
  LlmrtStep step{};
  EXPECT_FALSE((*executor)->execute(step)) << "the other group's table is missing";
}

TEST(CudaExecutor, TooLittleMemoryIsRefusedWithNumbers) {
  // The stand-in's device has 128 MiB, 64 of which are left to the driver.
  EngineOptions options;
  options.kvTokens = int64_t(100) << 20;
  auto engine = createEngine(tinyCudaPlan(), options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.status().code(), StatusCode::ResourceExhausted);
  EXPECT_NE(
      engine.status().message().find("MiB of free memory; the model needs 3264 MiB (a KV cache of"),
      std::string::npos)
      << engine.status().message();
}

TEST(CudaExecutor, ADeviceThatIsNotThere) {
  EngineOptions options;
  options.device = *parseDevice("cuda:3");
  auto engine = createEngine(tinyCudaPlan(), options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.status().message(),
            "there is no CUDA device 3; this process sees 1, counted from 0");
}

TEST(CudaExecutor, CodeThatTheDeviceDoesNotTake) {
  auto engine = createEngine(tinyCudaPlan([](fbs::PlanT &h) {
                               for (auto *list : {&h.cuda_kernels, &h.cuda_sampling})
                                 for (auto &k : *list)
                                   k->sm = "sm_90a";
                               h.modules[0]->level = "sm_90a.tiny";
                             }),
                             {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.status().code(), StatusCode::Unsupported);
  EXPECT_NE(engine.status().message().find("sm_90a, and this device is sm_80"), std::string::npos);
}

TEST(CudaExecutor, AFailedKernelEndsTheEngineAndIsNamedWhenLaunchesBlock) {
  auto broken = [](fbs::PlanT &h) { h.cuda_kernels[2]->entry = "broken"; };
  auto failure = [&] {
    auto engine = createEngine(tinyCudaPlan(broken), {});
    EXPECT_TRUE(engine) << engine.status().message();
    RequestOptions request;
    RecordingListener listener;
    request.prompt = promptOf(3);
    request.maxNewTokens = 1;
    request.listener = &listener;
    EXPECT_TRUE((*engine)->add(std::move(request)));
    Status s = (*engine)->step();
    EXPECT_EQ((*engine)->step().message(), s.message()); // it stays failed
    return s;
  };
  // In processes of their own: the error stays with the device.
  auto exitsWith = [&](const char *text) {
    Status s = failure();
    std::fprintf(stderr, "%s\n", s.message().c_str());
    std::exit(s.code() == StatusCode::Internal && s.message().find(text) != std::string::npos ? 7
                                                                                              : 1);
  };
  EXPECT_EXIT(exitsWith("a step of 3 tokens failed on device 0 (SIMT emulator 8.0, sm_80); set "
                        "CUDA_LAUNCH_BLOCKING=1 to learn the kernel: CUDA_ERROR_ILLEGAL_ADDRESS"),
              testing::ExitedWithCode(7), "broken: global out of bounds");
  ASSERT_EQ(setenv("CUDA_LAUNCH_BLOCKING", "1", 1), 0);
  EXPECT_EXIT(exitsWith("command 'reflect', kernel 'broken': CUDA_ERROR_ILLEGAL_ADDRESS"),
              testing::ExitedWithCode(7), "tiny_kernels.cu");
  ASSERT_EQ(unsetenv("CUDA_LAUNCH_BLOCKING"), 0);
}

TEST(Device, NamesAreParsed) {
  using Kind = DeviceChoice::Kind;
  EXPECT_EQ(parseDevice("")->kind, Kind::Plan);
  EXPECT_EQ(parseDevice("cpu")->kind, Kind::Cpu);
  EXPECT_EQ(parseDevice("cuda")->kind, Kind::Cuda);
  EXPECT_EQ(parseDevice("cuda:12")->ordinal, 12);
  for (const char *bad : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "cpu:0"})
    EXPECT_FALSE(parseDevice(bad)) << bad;
}

TEST(Device, APlanRunsOnWhatItIsFor) {
  EngineOptions options;
  options.device = *parseDevice("cuda");
  EXPECT_FALSE(createEngine(tinyPlan(), options));
  options.device = *parseDevice("cpu");
  EXPECT_FALSE(createEngine(tinyCudaPlan(), options));
  auto engine = engineOf();
  EXPECT_EQ(deviceName(*engine), "device 0 (SIMT emulator 8.0, sm_80)");
}

} // namespace

int main(int argc, char **argv) {
  setenv("SIMT_DEVICES", "8.0:128", 1);
  setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  testing::InitGoogleTest(&argc, argv);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  return RUN_ALL_TESTS();
}

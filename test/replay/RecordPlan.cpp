//===- RecordPlan.cpp - a plan's run, recorded kernel by kernel ---------------===//
//
// record_plan PLAN FILE: runs a batch of requests on this machine with the plan's least level and
// writes a recording (Format.h) of every call of every step, for the plan's code of level
// LLMC_RECORD_LEVEL.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cpu/FloatMode.h"
#include "runtime/engine/CpuEngine.h"
#include "test/replay/ForeignObject.h"
#include "test/replay/Recorder.h"

#include <cstdio>
#include <cstdlib>
#include <optional>

namespace llmrt {

/// The plan's code of the recorded level.
class OtherCode {
public:
  static Result<OtherCode> load(std::span<const std::byte> bytes, const std::string &level,
                                llmc::replay::Recorder &recorder) {
    OtherCode code;
    const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    if (llmc::replay::ForeignObject::isForeign(text)) {
      code.foreign_ = std::make_unique<llmc::replay::ForeignObject>(text);
      recorder.addCode(code.foreign_->memory(), code.foreign_->size());
    } else {
      LLMRT_ASSIGN_OR_RETURN(code.own_, CodeModule::load(bytes, level));
    }
    return code;
  }
  Result<const void *> kernel(const char *symbol) const {
    if (!foreign_) {
      LLMRT_ASSIGN_OR_RETURN(LlmrtKernel function, own_->kernel(symbol));
      return reinterpret_cast<const void *>(function);
    }
    if (const void *function = foreign_->find(symbol))
      return function;
    return invalidFile(std::string("no kernel ") + symbol);
  }

private:
  std::optional<CodeModule> own_;
  std::unique_ptr<llmc::replay::ForeignObject> foreign_;
};

/// A CPU executor's commands, one by one.
struct CpuExecutorPeer {
  static void announce(const CpuExecutor &executor, llmc::replay::Recorder &recorder) {
    recorder.add(executor.arena_.data(), executor.scratchOffset_);
    recorder.add(executor.pools_[0].memory.data(), executor.pools_[0].memory.size());
    for (uint32_t i = 0; i < executor.plan_->head().weights()->size(); ++i)
      recorder.add(executor.plan_->weight(i).data(), executor.plan_->weight(i).size());
  }

  static Status execute(CpuExecutor &executor, LlmrtStep &step, const OtherCode &other,
                        llmc::replay::Recorder &recorder) {
    executor.bind({step.T, step.S, step.R, step.Q});
    step.kv = executor.pools_[0].memory.data();
    step.blockTokens = executor.blockTokens_;
    step.blockBytes = int64_t(executor.pools_[0].blockBytes);
    executor.countAttention(executor.items_->cut(step));
    uint8_t *scratch = executor.arena_.data() + executor.scratchOffset_;
    ScopedFloatMode mode;
    const fbs::Plan &head = executor.plan_->head();
    for (uint32_t i = 0; i < executor.commands_.size(); ++i) {
      const fbs::Command &command = *head.commands()->Get(i);
      const fbs::Kernel &kernel = *head.kernels()->Get(command.kernel());
      LLMRT_ASSIGN_OR_RETURN(const void *function, other.kernel(kernel.symbol()->c_str()));
      const CpuExecutor::Command &own = executor.commands_[i];
      void *const *bindings = executor.bindings_.data() + own.firstBinding;
      recorder.before(command.name()->str(), function, step, bindings, command.bindings()->size(),
                      own.scalars, command.scalars()->size(), 0, executor.taskCounts_[i], scratch,
                      kernel.scratch_bytes());
      own.kernel(&step, bindings, own.scalars, 0, executor.taskCounts_[i], scratch);
      recorder.after(scratch, kernel.scratch_bytes());
    }
    return Status::ok();
  }
};

} // namespace llmrt

using namespace llmrt;

namespace {

template <typename T> T orExit(Result<T> result, const char *what) {
  if (result)
    return std::move(*result);
  std::fprintf(stderr, "record_plan: %s: %s\n", what, result.status().message().c_str());
  std::exit(1);
}
void orExit(const Status &status, const char *what) {
  if (!status.isOk()) {
    std::fprintf(stderr, "record_plan: %s: %s\n", what, status.message().c_str());
    std::exit(1);
  }
}

class RecordingExecutor final : public StepExecutor {
public:
  RecordingExecutor(std::unique_ptr<CpuExecutor> inner, OtherCode other,
                    llmc::replay::Recorder &recorder)
      : inner_(std::move(inner)), other_(std::move(other)), recorder_(recorder) {}

  const ModelShape &shape() const override { return inner_->shape(); }
  Status createKvPool(int64_t blocks, int64_t blockTokens) override {
    LLMRT_RETURN_IF_ERROR(inner_->createKvPool(blocks, blockTokens));
    CpuExecutorPeer::announce(*inner_, recorder_);
    return Status::ok();
  }
  void clearKvBlock(int32_t block, uint32_t group) override { inner_->clearKvBlock(block, group); }
  Status execute(LlmrtStep &step) override {
    return CpuExecutorPeer::execute(*inner_, step, other_, recorder_);
  }
  const float *logits() const override { return inner_->logits(); }

private:
  std::unique_ptr<CpuExecutor> inner_;
  OtherCode other_;
  llmc::replay::Recorder &recorder_;
};

OtherCode codeOf(const Plan &plan, const std::string &level, llmc::replay::Recorder &recorder) {
  for (const fbs::CodeModule *module : *plan.head().modules())
    if (module->level()->string_view() == level)
      return orExit(
          OtherCode::load(std::as_bytes(plan.segment(module->segment())), level, recorder),
          "the code");
  std::fprintf(stderr, "record_plan: %s has no code for %s\n", plan.name().c_str(), level.c_str());
  std::exit(1);
}

struct Quiet final : RequestListener {
  bool onToken(const TokenEvent &) override { return true; }
  void onFinish(const FinishEvent &event) override { orExit(event.status, "a request"); }
};

} // namespace

int main(int argc, char **argv) {
  const char *level = std::getenv("LLMC_RECORD_LEVEL");
  if (argc != 3 || !level) {
    std::fprintf(stderr, "usage: LLMC_RECORD_LEVEL=LEVEL record_plan PLAN FILE\n");
    return 2;
  }
  std::shared_ptr<const Plan> plan = orExit(Plan::open(argv[1]), "the plan");
  // The level of reference is the least one, which the unit tests compare with plain loops.
  setenv("LLMRT_CPU_LEVEL", plan->head().modules()->Get(0)->level()->c_str(), 1);

  // One step of many tokens (the prompts), then of three, two and one.
  constexpr int64_t lengths[] = {40, 16, 3}, answers[] = {5, 3, 2};
  CpuEngineOptions options;
  options.threads = 1;
  options.maxSequences = std::size(lengths);
  options.maxBatchedTokens = 64;
  options.kvTokens = 160;
  const ModelShape shape = modelShape(plan->head());
  EngineLimits limits = orExit(engineLimits(shape, options), "the engine");
  sizeKvPools(shape, options, limits, 0);
  limits.windowBlocks.clear(); // what is recorded has one pool
  CpuExecutorOptions device;
  device.threads = 1;
  device.largest = largestStep(limits, shape);

  llmc::replay::Recorder recorder(argv[2], level);
  auto executor =
      std::make_unique<RecordingExecutor>(orExit(CpuExecutor::create(plan, device), "the executor"),
                                          codeOf(*plan, level, recorder), recorder);
  auto engine = orExit(Engine::create(std::move(executor), limits), "the engine");
  Quiet listener;
  for (size_t s = 0; s < std::size(lengths); ++s) {
    RequestOptions request;
    for (int64_t i = 0; i < lengths[s]; ++i)
      request.prompt.push_back(int32_t((i * 31 + int64_t(s) * 7 + 5) % shape.vocabulary));
    request.maxNewTokens = answers[s];
    request.listener = &listener;
    orExit(engine->add(std::move(request)), "a request");
  }
  while (engine->busy())
    orExit(engine->step(), "a step");
  return 0;
}

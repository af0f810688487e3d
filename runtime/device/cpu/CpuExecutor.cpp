#include "runtime/device/cpu/CpuExecutor.h"

#include "runtime/device/cpu/LoadModule.h"
#include "runtime/device/cpu/ThreadCount.h"
#include "runtime/plan/PlanFormat.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace llmrt {
namespace {

/// Every thread's scratch starts on a page of its own: no line of cache is shared.
constexpr uint64_t scratchAlignment = 4096;

bool sameDims(const StepDims &a, const StepDims &b) {
  return a.T == b.T && a.S == b.S && a.R == b.R && a.Q == b.Q;
}

} // namespace

ModelShape modelShape(const fbs::Plan &plan) {
  ModelShape shape;
  StepDims limits = stepLimits(*plan.limits());
  shape.vocabulary = static_cast<int32_t>(plan.model()->vocab_size());
  shape.maxContext = plan.model()->max_context();
  shape.maxTokens = limits.T;
  shape.maxSequences = limits.S;
  shape.maxRows = limits.R;
  shape.queryTile = plan.limits()->query_tile();
  shape.kvBytesPerToken = plan.kv()->bytes_per_token();
  shape.blockTokens = plan.kv()->block_tokens();
  if (plan.model()->rope_original_context())
    shape.shortContext = plan.model()->rope_original_context();
  shape.kvGroups = KvGroups(*plan.kv(), shape.maxContext).groups();
  shape.window = shape.kvGroups[0].window;
  return shape;
}

uint64_t scratchBytesAThread(const fbs::Plan &plan) {
  uint64_t most = 0;
  for (const fbs::Kernel *kernel : *plan.kernels())
    most = std::max(most, kernel->scratch_bytes());
  constexpr uint64_t unbounded = UINT64_MAX - scratchAlignment; // what no rounding overflows
  return alignUp(std::min(most, unbounded), scratchAlignment);
}

Result<std::unique_ptr<CpuExecutor>> CpuExecutor::create(std::shared_ptr<const Plan> plan,
                                                         const CpuExecutorOptions &options) {
  if (plan->head().main())
    return invalidArgument(plan->name() + ": the plan is of a graph that is no decoder");
  LLMRT_ASSIGN_OR_RETURN(LoadedModule module, loadModule(*plan));
  std::unique_ptr<CpuExecutor> executor(new CpuExecutor(std::move(plan), std::move(module.code)));
  executor->level_ = module.level;
  executor->lesserCode_ = module.isLesser;
  executor->takesTrees_ = module.abi >= LLMRT_KERNEL_ABI_TREES;
  LLMRT_RETURN_IF_ERROR(executor->prepare(options));
  return executor;
}

Status CpuExecutor::prepare(const CpuExecutorOptions &options) {
  const fbs::Plan &head = plan_->head();
  shape_ = modelShape(head);
  largest_ = options.largest;
  assert(largest_.T <= shape_.maxTokens && largest_.S <= shape_.maxSequences &&
         largest_.R <= shape_.maxRows && "beyond the plan's limits");
  unsigned threads = chooseThreadCount(options.threads);
  items_.emplace(head, largest_.Q, threads);
  LLMRT_RETURN_IF_ERROR(prepareCommands());

  LLMRT_ASSIGN_OR_RETURN(pool_, ThreadPool::create(threads, uint32_t(commands_.size())));
  predictor_.emplace(plan_, defaultLimits(cpuLevelName(level_), threads));

  // One allocation: slots | outputs | scratch of each thread | attention's partial results.
  layout_.update(head, largest_);
  uint64_t end = layout_.total();
  for (const fbs::Output *output : *head.outputs())
    end += alignUp(uint64_t(evaluate(*output->size(), largest_)), kPlanAlignment);
  scratchOffset_ = alignUp(end, scratchAlignment);
  scratchBytes_ = scratchBytesAThread(head);
  if (scratchBytes_ > (uint64_t(1) << 40) / threads)
    return unsupported(plan_->name() + ": a kernel asks for " + std::to_string(scratchBytes_) +
                       " bytes of scratch a thread");
  const uint64_t partials = scratchOffset_ + scratchBytes_ * threads;
  LLMRT_ASSIGN_OR_RETURN(
      arena_, Memory::allocate(partials + items_->bytes(), "the arena of the largest step"));
  items_->setMemory(arena_.data() + partials);
  outputOffsets_.resize(head.outputs()->size());
  bind(largest_);
  return Status::ok();
}

Status CpuExecutor::prepareCommands() {
  const fbs::Plan &head = plan_->head();
  std::vector<LlmrtKernel> kernels(head.kernels()->size());
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    const fbs::Kernel &kernel = *head.kernels()->Get(i);
    if (kernel.target() != fbs::Target::Cpu)
      return unsupported(plan_->name() + ": kernel '" + kernel.symbol()->str() +
                         "' is not for a CPU");
    Result<LlmrtKernel> code = code_.kernel(kernel.symbol()->c_str());
    if (!code)
      return code.status().withContext(plan_->name());
    kernels[i] = *code;
  }
  for (const fbs::Command *command : *head.commands()) {
    commands_.push_back({kernels[command->kernel()], command->scalars()->data(),
                         static_cast<uint32_t>(bindings_.size())});
    for (const fbs::Binding *binding : *command->bindings()) {
      uint32_t place = static_cast<uint32_t>(bindings_.size());
      bindings_.push_back(nullptr);
      switch (binding->kind()) {
      case fbs::BindingKind::Weight: // kernels only read what is mapped read-only
        bindings_[place] = const_cast<void *>(plan_->weightData(binding->index()));
        break;
      case fbs::BindingKind::Buffer:
        moving_.push_back({place, head.buffers()->Get(binding->index())->slot(), false});
        break;
      case fbs::BindingKind::Output:
        moving_.push_back({place, binding->index(), true});
        break;
      }
    }
    StepDims most = largest_;
    if (command->tasks()->per_tile() != 0) {
      attentionCommands_.push_back(static_cast<uint32_t>(commands_.size() - 1));
      most.Q = items_->most();
    }
    int64_t tasks = evaluate(*command->tasks(), most);
    if (tasks > ThreadPool::maxTasks)
      return unsupported(plan_->name() + ": command '" + command->name()->str() + "' has " +
                         std::to_string(tasks) + " tasks in the largest step; the most is " +
                         std::to_string(ThreadPool::maxTasks));
  }
  taskCounts_.resize(commands_.size());
  return Status::ok();
}

void CpuExecutor::bind(const StepDims &dims) {
  const fbs::Plan &head = plan_->head();
  layout_.update(head, dims);
  uint64_t end = layout_.total();
  for (uint32_t i = 0; i < outputOffsets_.size(); ++i) {
    outputOffsets_[i] = end;
    end += alignUp(uint64_t(evaluate(*head.outputs()->Get(i)->size(), dims)), kPlanAlignment);
  }
  assert(end <= scratchOffset_ && "a step beyond the arena");
  for (const MovingBinding &m : moving_)
    bindings_[m.place] =
        arena_.data() + (m.output ? outputOffsets_[m.slot] : layout_.offsets()[m.slot]);
  for (uint32_t i = 0; i < taskCounts_.size(); ++i)
    taskCounts_[i] = evaluate(*head.commands()->Get(i)->tasks(), dims);
  itemCount_ = dims.Q;
  logits_ = reinterpret_cast<const float *>(arena_.data() + outputOffsets_[0]);
  bound_ = dims;
}

void CpuExecutor::countAttention(int64_t items) {
  StepDims dims = bound_;
  dims.Q = items;
  for (uint32_t command : attentionCommands_)
    taskCounts_[command] = evaluate(*plan_->head().commands()->Get(command)->tasks(), dims);
  itemCount_ = items;
}

Status CpuExecutor::addPool(int64_t blocks, int64_t blockTokens, uint64_t bytesPerToken) {
  KvPool pool;
  if (__builtin_mul_overflow(uint64_t(blockTokens), bytesPerToken, &pool.blockBytes))
    return resourceExhausted("a KV block of " + std::to_string(blockTokens) + " tokens is too big");
  uint64_t bytes;
  if (__builtin_mul_overflow(pool.blockBytes, uint64_t(blocks), &bytes))
    return resourceExhausted("a KV pool of " + std::to_string(blocks) + " blocks is too big");
  blockTokens_ = blockTokens;
  LLMRT_ASSIGN_OR_RETURN(pool.memory,
                         Memory::allocate(bytes, "the KV pool of " + std::to_string(blocks) +
                                                     " blocks of " + std::to_string(blockTokens) +
                                                     " tokens"));
  pools_.push_back(std::move(pool));
  return Status::ok();
}

Status CpuExecutor::createKvPool(int64_t blocks, int64_t blockTokens) {
  kvRows_.emplace(*plan_->head().kv(), nullptr);
  return addPool(blocks, blockTokens, shape_.kvBytesPerToken);
}

Status CpuExecutor::createKvPools(std::span<const int64_t> blocks, int64_t blockTokens) {
  assert(blocks.size() == shape_.kvGroups.size() && "a pool for each group");
  for (size_t group = 0; group < blocks.size(); ++group)
    LLMRT_RETURN_IF_ERROR(
        addPool(blocks[group], blockTokens, shape_.kvGroups[group].bytesPerToken));
  // A layer lies elsewhere in its group's blocks than in those of all layers, for which the plan
  // names its place.
  const KvGroups groups(*plan_->head().kv(), shape_.maxContext);
  kvRows_.emplace(*plan_->head().kv(), &groups);
  kvPrefixes_.resize(commands_.size());
  for (uint32_t i = 0; i < commands_.size(); ++i) {
    const fbs::Command &command = *plan_->head().commands()->Get(i);
    if (!KvGroups::hasPrefix(plan_->head().kernels()->Get(command.kernel())->kind()->string_view()))
      continue;
    KvGroups::Place place = groups.place(command.scalars()->Get(0));
    kvPrefixes_[i] = place.prefix;
    commands_[i].scalars = &kvPrefixes_[i];
    commands_[i].pool = place.group;
  }
  return Status::ok();
}

void CpuExecutor::clearKvBlock(int32_t block, uint32_t group) {
  std::memset(kvBlock(block, group), 0, pools_[group].blockBytes);
}

Status CpuExecutor::copyKvBlock(int32_t from, int32_t to, uint32_t group) {
  std::memcpy(kvBlock(to, group), kvBlock(from, group), pools_[group].blockBytes);
  return Status::ok();
}

Status CpuExecutor::saveKvBlock(int32_t block, uint8_t *host, uint32_t group) {
  std::memcpy(host, kvBlock(block, group), pools_[group].blockBytes);
  return Status::ok();
}

Status CpuExecutor::loadKvBlock(int32_t block, const uint8_t *host, uint32_t group) {
  std::memcpy(kvBlock(block, group), host, pools_[group].blockBytes);
  return Status::ok();
}

void CpuExecutor::moveKv(int64_t from, int64_t to, uint32_t group) {
  kvRows_->move(group, blockTokens_, kvBlock(int32_t(from / blockTokens_), group),
                from % blockTokens_, kvBlock(int32_t(to / blockTokens_), group), to % blockTokens_);
}

void CpuExecutor::runTasks(void *context, uint32_t phase, int64_t begin, int64_t end,
                           unsigned thread) {
  const auto &self = *static_cast<const CpuExecutor *>(context);
  const Command &command = self.commands_[phase];
  command.kernel(&self.pools_[command.pool].step, self.bindings_.data() + command.firstBinding,
                 command.scalars, begin, end,
                 self.arena_.data() + self.scratchOffset_ + thread * self.scratchBytes_);
}

Status CpuExecutor::executeGroups(LlmrtStep &step, std::span<const KvTable> narrower) {
  if (narrower.size() + 1 != pools_.size())
    return internalError("a step with tables of " + std::to_string(narrower.size() + 1) +
                         " KV groups for " + std::to_string(pools_.size()) + " pools");
  StepDims dims{step.T, step.S, step.R, step.Q};
  if (dims.T > largest_.T || dims.S > largest_.S || dims.R > largest_.R || dims.Q > largest_.Q)
    return internalError("a step larger than the executor was made for");
  if (!sameDims(dims, bound_))
    bind(dims);
  if (int64_t items = items_->cut(step); items != itemCount_)
    countAttention(items);
  step.kv = pools_[0].memory.data();
  step.blockTokens = blockTokens_;
  step.blockBytes = int64_t(pools_[0].blockBytes);
  for (size_t i = 0; i < pools_.size(); ++i) {
    LlmrtStep &own = pools_[i].step = step;
    if (i == 0)
      continue;
    own.blockTable = narrower[i - 1].blockTable;
    own.slots = narrower[i - 1].slots;
    own.kv = pools_[i].memory.data();
    own.blockBytes = int64_t(pools_[i].blockBytes);
  }
  if (seconds_.empty())
    pool_->run(taskCounts_, runTasks, this);
  else
    runMeasured();
  return Status::ok();
}

static int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void CpuExecutor::measureCommands(std::span<double> seconds) {
  assert((seconds.empty() || seconds.size() == commands_.size()) && "one number a command");
  seconds_ = seconds;
  doneAt_.assign(seconds.empty() ? 0 : commands_.size() * threads(), 0);
}

void CpuExecutor::runTimedTasks(void *context, uint32_t phase, int64_t begin, int64_t end,
                                unsigned thread) {
  runTasks(context, phase, begin, end, thread);
  auto &self = *static_cast<CpuExecutor *>(context);
  self.doneAt_[thread * self.commands_.size() + phase] = nanoseconds();
}

void CpuExecutor::runMeasured() {
  std::fill(doneAt_.begin(), doneAt_.end(), 0);
  int64_t before = nanoseconds();
  pool_->run(taskCounts_, runTimedTasks, this);
  for (size_t c = 0; c < commands_.size(); ++c) {
    int64_t done = before; // a command without tasks takes no time
    for (unsigned thread = 0; thread < threads(); ++thread)
      done = std::max(done, doneAt_[thread * commands_.size() + c]);
    seconds_[c] += static_cast<double>(done - before) * 1e-9;
    before = done;
  }
}

} // namespace llmrt

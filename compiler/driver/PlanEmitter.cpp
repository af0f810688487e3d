//===- PlanEmitter.cpp - writes the plan file -----------------------------------------===//

#include "compiler/driver/PlanEmitter.h"
#include "compiler/passes/plan/KernelFormat.h"
#include "compiler/quantize/Quantize.h"
#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/device/cuda/KernelAbi.h"
#include "runtime/plan/PlanWriter.h"

#include <atomic>
#include <cstring>
#include <thread>

using namespace mlir;
using namespace llmc;
namespace fbs = llmrt::fbs;
using llmrt::Result;
using llmrt::Status;

namespace {

/// One weight to be written.
struct WeightTask {
  WeightView view;
  WeightFormat format;
  uint64_t rows, columns, offset, size;
  std::span<const float> importance; ///< of the columns, or empty
};

/// Tiles that one thread takes at a time: enough to amortise the hand-out, few enough that memory
/// stays small (16 rows of K values each).
constexpr uint64_t kTilesATurn = 8;

/// Packs tiles [begin, end) of a matrix and writes them.
class TileWriter {
public:
  TileWriter(llmrt::PlanWriter &writer, uint32_t segment) : writer(writer), segment(segment) {}

  Status write(const WeightTask &task, uint64_t begin, uint64_t end) {
    uint64_t first = begin * kTileRows, last = std::min(task.rows, end * kTileRows);
    if (task.format.packing == Packing::Rows) {
      values.resize((last - first) * task.columns);
      LLMRT_RETURN_IF_ERROR(task.view.readRows(first, last, values.data()));
      auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
      return writer.write(segment, task.offset + first * task.columns * sizeof(float),
                          {bytes, values.size() * sizeof(float)});
    }
    uint64_t tileBytes = *packedTileBytes(task.format, task.columns);
    packed.resize((end - begin) * tileBytes);
    if (task.format.packing == Packing::N16)
      LLMRT_RETURN_IF_ERROR(packFloats(task, first, last, tileBytes));
    else
      LLMRT_RETURN_IF_ERROR(packIntegers(task, first, last, tileBytes));
    return writer.write(segment, task.offset + begin * tileBytes, packed);
  }

private:
  Status packFloats(const WeightTask &task, uint64_t first, uint64_t last, uint64_t tileBytes) {
    values.resize((last - first) * task.columns);
    LLMRT_RETURN_IF_ERROR(task.view.readRows(first, last, values.data()));
    for (uint64_t row = first, tile = 0; row < last; row += kTileRows, ++tile) {
      std::vector<const float *> rows;
      for (uint64_t i = row; i < std::min(last, row + kTileRows); ++i)
        rows.push_back(values.data() + (i - first) * task.columns);
      packTile(task.format, task.columns, rows, packed.data() + tile * tileBytes);
    }
    return Status::ok();
  }

  Status packIntegers(const WeightTask &task, uint64_t first, uint64_t last, uint64_t tileBytes) {
    if (std::optional<WeightFormat> own = task.view.quantizedFormat();
        own && holdsCodesOf(task.format, *own)) {
      // The source's own integers: no second rounding.
      LLMRT_RETURN_IF_ERROR(task.view.readQuantizedRows(first, last, quantized));
    } else {
      values.resize((last - first) * task.columns);
      LLMRT_RETURN_IF_ERROR(task.view.readRows(first, last, values.data()));
      LLMRT_RETURN_IF_ERROR(quantizeRows(task.format, values.data(), last - first, task.columns,
                                         quantized, task.importance));
    }
    for (uint64_t row = first, tile = 0; row < last; row += kTileRows, ++tile) {
      std::vector<QuantizedRow> rows;
      for (uint64_t i = row; i < std::min(last, row + kTileRows); ++i)
        rows.push_back(quantized.row(i - first));
      packTile(task.format, task.columns, rows, packed.data() + tile * tileBytes);
    }
    return Status::ok();
  }

  llmrt::PlanWriter &writer;
  uint32_t segment;
  std::vector<float> values;
  std::vector<uint8_t> packed;
  QuantizedRows quantized;
};

} // namespace

/// Packs and writes all of \p tasks on \p threads threads; the first failure stops them.
static Status writeWeights(const std::vector<WeightTask> &tasks, llmrt::PlanWriter &writer,
                           uint32_t segment, unsigned threads, Progress &progress) {
  struct Turn {
    size_t task;
    uint64_t begin, end;
  };
  std::vector<Turn> turns;
  for (size_t i = 0; i < tasks.size(); ++i) {
    uint64_t tiles = (tasks[i].rows + kTileRows - 1) / kTileRows;
    for (uint64_t begin = 0; begin < tiles; begin += kTilesATurn)
      turns.push_back({i, begin, std::min(tiles, begin + kTilesATurn)});
  }
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status failure;
  auto work = [&] {
    TileWriter tiles(writer, segment);
    for (size_t i; (i = next.fetch_add(1)) < turns.size();) {
      const Turn &turn = turns[i];
      const WeightTask &task = tasks[turn.task];
      if (Status status = tiles.write(task, turn.begin, turn.end); !status) {
        std::lock_guard lock(mutex);
        if (failure.isOk())
          failure = status;
        next = turns.size();
        return;
      }
      progress.advance((turn.end - turn.begin) * kTileRows * task.columns);
    }
  };
  std::vector<std::thread> pool;
  for (unsigned i = 1; i < threads; ++i)
    pool.emplace_back(work);
  work();
  for (std::thread &thread : pool)
    thread.join();
  return failure;
}

/// A test that every model can take: ids spread over the vocabulary, enough of them for the kernels
/// of large steps, then some tokens one by one. Null for a context that can't hold two tokens.
static std::unique_ptr<fbs::SelfTestT> makeSelfTest(const fbs::ModelT &model) {
  constexpr uint32_t promptTokens = 24, newTokens = 8;
  const uint32_t context = std::min(model.max_context, promptTokens + newTokens);
  if (context < 2)
    return nullptr;
  auto test = std::make_unique<fbs::SelfTestT>();
  test->tokens.resize(std::min(newTokens, context / 2));
  uint64_t state = 0;
  for (size_t i = test->tokens.size(); i != context; ++i) {
    // Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014).
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    test->prompt.push_back(static_cast<int32_t>((z ^ (z >> 31)) % model.vocab_size));
  }
  return test;
}

Status llmc::writePlan(plan::ProgramOp program, const ModelFiles &files, const PlanExtras &extras,
                       const std::string &path, const EmitOptions &options, Progress &progress) {
  LLMRT_ASSIGN_OR_RETURN(std::unique_ptr<fbs::PlanT> head, buildHead(program, extras));
  std::vector<WeightTask> tasks;
  uint64_t size = 0, values = 0;
  size_t index = 0;
  for (plan::WeightOp op : program.getOps<plan::WeightOp>()) {
    const fbs::WeightT &weight = *head->weights[index++];
    LLMRT_ASSIGN_OR_RETURN(WeightView view, readableWeight(op.getSource(), files));
    std::span<const float> importance;
    if (auto known = extras.importance.find(view.name());
        known != extras.importance.end() && known->second.size() == weight.columns)
      importance = known->second;
    tasks.push_back({std::move(view), weightFormat(op.getFormatAttr()), weight.rows, weight.columns,
                     weight.offset, weight.size, importance});
    size = std::max(size, weight.offset + weight.size);
    values += weight.rows * weight.columns;
  }

  LLMRT_ASSIGN_OR_RETURN(std::unique_ptr<llmrt::PlanWriter> writer,
                         llmrt::PlanWriter::create(path));
  auto bytes = [](const std::string &s) {
    return std::span(reinterpret_cast<const uint8_t *>(s.data()), s.size());
  };
  auto addModules = [&](const std::vector<CodeImage> &images, fbs::Target target,
                        uint32_t abi) -> Status {
    for (const CodeImage &code : images) {
      LLMRT_ASSIGN_OR_RETURN(
          uint32_t segment,
          writer->addSegment(fbs::SegmentKind::Code, "code." + code.level, bytes(code.bytes)));
      auto module = std::make_unique<fbs::CodeModuleT>();
      module->level = code.level;
      module->segment = segment;
      module->target = target;
      module->kernel_abi = abi;
      head->modules.push_back(std::move(module));
    }
    return Status::ok();
  };
  LLMRT_RETURN_IF_ERROR(addModules(extras.code, fbs::Target::Cpu, LLMRT_KERNEL_ABI));
  LLMRT_RETURN_IF_ERROR(addModules(extras.cuda.modules, fbs::Target::Cuda, LLMRT_CUDA_ABI));
  if (!extras.tokenizerBlob.empty()) {
    LLMRT_ASSIGN_OR_RETURN(
        uint32_t segment,
        writer->addSegment(fbs::SegmentKind::Tokenizer, "tokenizer", bytes(extras.tokenizerBlob)));
    head->text->tokenizer_segment = static_cast<int32_t>(segment);
  }
  LLMRT_ASSIGN_OR_RETURN(uint32_t segment,
                         writer->addSegment(fbs::SegmentKind::Weights, "weights", size));
  for (auto &weight : head->weights)
    weight->segment = segment;
  progress.begin("weights", values);
  LLMRT_RETURN_IF_ERROR(writeWeights(tasks, *writer, segment, options.threads, progress));
  // A file that shrank while it was read would have left zeros behind.
  for (size_t i = 0; i < files.size(); ++i)
    LLMRT_RETURN_IF_ERROR(files[i].checkStillWhole());
  progress.begin("write");
  if (!options.selfTest)
    return writer->finish(*head);
  head->self_test = makeSelfTest(*head->model);
  auto run = [&](const std::string &file, fbs::SelfTestT &test) {
    return options.selfTest(file, test.prompt, test.tokens, test.logits_fingerprint);
  };
  Status tested;
  LLMRT_RETURN_IF_ERROR(writer->finish(*head, {}, run, &tested));
  if (!tested)
    emitRemark(program.getLoc()) << "the plan has no self-test: " << tested.message();
  return Status::ok();
}

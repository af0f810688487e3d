//===- StepExecutor.h - what an engine asks of a device ---------------------===//
//
// The engine decides what a step holds; an executor runs it. There is one a device: CpuExecutor
// runs a plan's machine code; tests script one.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_STEPEXECUTOR_H
#define LLMRT_DEVICE_STEPEXECUTOR_H

#include "runtime/device/RowDraws.h"
#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/plan/KvGroups.h"
#include "runtime/support/SlowFallback.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace llmrt {

/// What a model can take, from its plan.
struct ModelShape {
  int32_t vocabulary = 0;       ///< rows of the logits and of the embedding
  int64_t maxContext = 0;       ///< tokens a sequence
  int64_t maxTokens = 0;        ///< T of a step
  int64_t maxSequences = 0;     ///< S of a step
  int64_t maxRows = 0;          ///< R of a step
  int64_t queryTile = 1;        ///< tokens a query tile
  uint64_t kvBytesPerToken = 0; ///< over all layers; 0: the model keeps no KV
  int64_t blockTokens = 16;     ///< the plan's default
  /// Tokens that the widest layer looks back at, the current one counted; 0: all of them.
  int64_t window = 0;
  /// Layers by how far they look back, the widest first; with two or more, each may have a pool.
  std::vector<KvGroup> kvGroups;
  /// Sequences of more tokens take other rotary frequencies (longrope), all of their tokens.
  int64_t shortContext = std::numeric_limits<int64_t>::max();
};

/// Of one group of layers: the step's fields of the same names.
struct KvTable {
  const int32_t *blockTable;
  const int64_t *slots;
};

class StepExecutor {
public:
  virtual ~StepExecutor() = default;

  virtual const ModelShape &shape() const = 0;

  /// Provides the KV pool, all of it zero; once, before the first step. Memory is taken as blocks
  /// are first written.
  virtual Status createKvPool(int64_t blocks, int64_t blockTokens) = 0;
  /// The same with a pool for each of ModelShape::kvGroups, of that many blocks.
  virtual Status createKvPools(std::span<const int64_t> blocks, int64_t blockTokens) {
    return unsupported("this device has one KV pool for all layers");
  }
  /// Makes a block zero again before another sequence gets it: a masked key is multiplied by zero,
  /// and zero times a NaN left behind is NaN.
  virtual void clearKvBlock(int32_t block, uint32_t group = 0) = 0;

  /// Copies a block, for answers that part after a common beginning.
  virtual Status copyKvBlock(int32_t from, int32_t to, uint32_t group = 0) {
    return unsupported("this device can't copy KV blocks");
  }
  /// Bytes of a block in host memory; 0: blocks can't be moved there.
  virtual uint64_t kvBlockBytes(uint32_t group = 0) const { return 0; }
  /// Moves a block to and from \p host, kvBlockBytes() long.
  virtual Status saveKvBlock(int32_t block, uint8_t *host, uint32_t group = 0) {
    return unsupported("this device can't swap KV blocks");
  }
  virtual Status loadKvBlock(int32_t block, const uint8_t *host, uint32_t group = 0) {
    return unsupported("this device can't swap KV blocks");
  }

  /// Whether steps may have LlmrtStep::ancestors; then moveKv() works.
  virtual bool takesTrees() const { return false; }
  /// Moves a token's keys and values from one slot (block * blockTokens + offset) to another.
  virtual void moveKv(int64_t from, int64_t to, uint32_t group = 0) {}

  /// Runs one step within the limits that the executor was made for; the caller leaves the step's
  /// kv fields alone. When it returns, logits() holds [R, vocabulary]; rows that rowDraws() gave to
  /// the device hold anything.
  virtual Status execute(LlmrtStep &step) = 0;
  /// The same over a pool for each group: the step has the tables of the first, \p narrower those
  /// of the others.
  virtual Status executeGroups(LlmrtStep &step, std::span<const KvTable> narrower) {
    return narrower.empty() ? execute(step) : internalError("this device has one KV pool");
  }
  virtual const float *logits() const = 0;
  /// Null: the host draws all tokens.
  virtual RowDraws *rowDraws() { return nullptr; }

  /// Seconds that a step like \p step should take, by the plan's roofline; 0: unknown.
  virtual double predictSeconds(const LlmrtStep &step) { return 0; }

  /// Adds what this device has seen.
  virtual void addSlowFallbacks(SlowFallbackCounts &counts) const {}
};

} // namespace llmrt

#endif // LLMRT_DEVICE_STEPEXECUTOR_H

//===- KernelAbi.h - what a CUDA kernel of a plan is given -------------------===//
//
// The one contract between the CUDA kernels in a plan and the runtime that launches them. Plain C
// without includes: the runtime reads it, and it is part of the text that NVRTC compiles. Append
// only: LLMRT_CUDA_ABI grows with every change, a plan records the value it was built with, and a
// runtime accepts every value up to its own.
//
// Every entry is
//     extern "C" __global__ void NAME(const LlmrtCudaStep *step, LlmrtCudaBindings b)
// or, of attention on sm_90a over 16-bit keys and values of one size, 64 or 128 (ABI 3),
//     extern "C" __global__ void NAME(const LlmrtCudaStep *step, LlmrtCudaBindings b,
//                                     const __grid_constant__ LlmrtKvMaps maps)
// `step` is in device memory: a graph that was captured for a bucket of sizes replays with new
// contents. A grid may be larger than the step needs (it is that of the bucket); blocks beyond the
// step's own T, S, R and Q return at once.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_DEVICE_CUDA_KERNELABI_H
#define LLMRT_DEVICE_CUDA_KERNELABI_H

#define LLMRT_CUDA_ABI 3

#define LLMRT_CUDA_MAX_BINDINGS 12
#define LLMRT_CUDA_MAX_SCALARS 8

/// Something is added to a logit before a token is drawn.
typedef struct LlmrtCudaLogitChange {
  int id;
  float bias; ///< minus infinity: the token is never drawn
} LlmrtCudaLogitChange;

/// How a token is drawn from a row of logits (runtime/decode/README.md says what each step is).
typedef struct LlmrtCudaRowSampling {
  unsigned long long noiseKey; ///< PositionNoise::key()
  double scale;                ///< 1 / temperature; 0: the largest logit
  double floor;    ///< min-p: tokens below the top logit plus this go; minus infinity: off
  int topK;        ///< 0: off; else below the number of sampled tokens
  float topP;      ///< 1: off; above 0
  int firstChange; ///< among LlmrtCudaStep.changes: biases, then bans; no id twice in either
  int biases;      ///< how many
  int bans;        ///< how many; their bias is minus infinity
  int onDevice;    ///< 0: the host draws
} LlmrtCudaRowSampling;

/// One step over a ragged batch (design: architecture, "the step"). All pointers are of the device.
typedef struct LlmrtCudaStep {
  long long T;           ///< new tokens of this step
  long long S;           ///< sequences
  long long R;           ///< rows that need logits
  long long Q;           ///< query tiles, see tileSeq
  const int *tokens;     ///< [T] token ids, each below the vocabulary's size
  const int *positions;  ///< [T] position of each token in its own sequence
  const int *queryStart; ///< [S+1] tokens of sequence s are [queryStart[s], queryStart[s+1])
  const int *contextLen; ///< [S] length of the sequence after this step
  const int *blockTable; ///< [S, maxBlocks] KV blocks of each sequence
  long long maxBlocks;
  const long long *slots;  ///< [T] where a token's K and V go: block * blockTokens + offset
  const int *logitRows;    ///< [R] indices into the T tokens
  const int *tileSeq;      ///< [Q] the sequence of a query tile
  const int *tileStart;    ///< [Q] its first token, an index into the T tokens
  const int *tileCount;    ///< [Q] its tokens: 1 .. the plan's query tile
  unsigned char *kv;       ///< the KV pool: [blocks][blockBytes], 256-byte aligned
  long long blockTokens;   ///< tokens a block: a multiple of 16
  long long blockBytes;    ///< blockTokens * the plan's KV bytes a token
  const int *ancestors;    ///< [T, ancestorWidth], or null: no token has a tree
  long long ancestorWidth; ///< see codegen/cuda/kernels/README.md, "Trees"
  const int *longContext;  ///< [T] 1: the token's sequence takes longrope's long factors (ABI 2)
  /// Since ABI 3. [R], or null: the host draws the tokens of all rows.
  const LlmrtCudaRowSampling *sampling;
  const LlmrtCudaLogitChange *changes; ///< of all rows
  int sampledVocabulary;               ///< tokens that may be drawn: the first ones of a row
  float massUnit;                      ///< ProbabilityMass::unit()
} LlmrtCudaStep;

/// By value: the command's buffers in the order of its kernel's signature and its scalars.
typedef struct LlmrtCudaBindings {
  void *pointers[LLMRT_CUDA_MAX_BINDINGS];
  long long scalars[LLMRT_CUDA_MAX_SCALARS];
  /// The kernel's workspace (plan: CudaKernel.scratch), 256-byte aligned; null where it is 0 bytes.
  /// Zeroed once when the plan is loaded; one piece serves all commands, which run in order.
  void *scratch;
} LlmrtCudaBindings;

/// A CUtensorMap: what cuTensorMapEncodeTiled writes, and the kernel hands to the copy unit.
typedef struct LlmrtTensorMap {
  unsigned long long opaque[16];
} __attribute__((aligned(64))) LlmrtTensorMap;

/// The keys and the values of one layer's cache (ABI 3): 16-bit elements, dimensions from the
/// innermost [element, offset in the block, KV head, block], zeros beyond; swizzled by 128 bytes in
/// shared memory. A copy takes 64 elements of 16 tokens of a head and block (page), or of one.
typedef struct LlmrtKvMaps {
  LlmrtTensorMap keyPage, keyToken, valuePage, valueToken;
} LlmrtKvMaps;

/// KV memory of one block on CUDA: the layers one after the other, layer l at blockTokens * (KV
/// bytes a token of the layers before l). Inside a layer, for each KV head all keys, then all
/// values, row-major: [kvHeads] { K: [blockTokens][keySize], V: [blockTokens][valueSize] };
/// with int8 values { K, V, f32 scales of the keys [blockTokens], f32 scales of the values }.

#endif // LLMRT_DEVICE_CUDA_KERNELABI_H

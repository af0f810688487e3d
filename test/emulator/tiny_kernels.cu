// test/unit/engine/tiny_kernels.c as CUDA: a model whose logits follow from every token of the
// context, launched in every way that a plan can ask for.
#include "sampling.cuh"

constexpr int kVocabulary = 97, kContextSplit = 64;

static inline __device__ int *cell(const LlmrtCudaStep *step, long long slot) {
  return (int *)(step->kv + slot / step->blockTokens * step->blockBytes +
                 slot % step->blockTokens * 4);
}

static inline __device__ void rememberTile(const LlmrtCudaStep *step, long long prefix) {
  if (blockIdx.x >= step->Q)
    return;
  int first = step->tileStart[blockIdx.x], count = step->tileCount[blockIdx.x];
  for (int i = threadIdx.x; i < count; i += blockDim.x)
    *cell(step, step->slots[first + i] + prefix) = step->tokens[first + i] + 1;
}

// A block a query tile; one entry for tiles of several tokens, one for tiles of one.
extern "C" __global__ void remember_long(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  if (blockIdx.x < step->Q && step->tileCount[blockIdx.x] > 1)
    rememberTile(step, b.scalars[0]);
}
extern "C" __global__ void remember_single(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  if (blockIdx.x < step->Q && step->tileCount[blockIdx.x] == 1)
    rememberTile(step, b.scalars[0]);
}

// A thread a token; of the blocks in z the one whose piece of the context holds the token works.
extern "C" __global__ void reflect(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  long long t = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= step->T || step->positions[t] / kContextSplit != (int)blockIdx.z)
    return;
  int s = 0;
  while (step->queryStart[s + 1] <= t)
    ++s;
  unsigned hash = 2166136261u;
  for (long long p = 0; p <= step->positions[t]; ++p) {
    long long block = step->blockTable[s * step->maxBlocks + p / step->blockTokens];
    hash = (hash ^ (unsigned)*cell(step, block * step->blockTokens + p % step->blockTokens)) *
           16777619u;
  }
  ((int *)b.pointers[0])[t] = (int)((hash >> 7) % kVocabulary);
}

static inline __device__ void selectRow(const LlmrtCudaStep *step, const LlmrtCudaBindings &b,
                                        long long r) {
  if (r >= step->R)
    return;
  int t = step->logitRows[r];
  float dictated = ((const float *)b.pointers[1])[step->tokens[t]];
  ((int *)b.pointers[2])[r] =
      dictated >= 0 ? (int)dictated : ((const int *)b.pointers[0])[t] % kVocabulary;
}
// Two variants: up to four rows, and any number.
extern "C" __global__ void select_few(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  if (step->R > 4) // the wrong variant writes nothing
    return;
  selectRow(step, b, threadIdx.x);
}
extern "C" __global__ void select_many(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  selectRow(step, b, (long long)blockIdx.x * blockDim.x + threadIdx.x);
}

struct ScoreShared {
  int chosen;
};
extern "C" __global__ void score(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  ScoreShared &shared = *(ScoreShared *)simt::sharedMemory();
  if (blockIdx.x >= step->R)
    return;
  if (threadIdx.x == 0)
    shared.chosen = ((const int *)b.pointers[0])[blockIdx.x];
  __syncthreads();
  for (int v = threadIdx.x; v < kVocabulary; v += blockDim.x)
    ((float *)b.pointers[1])[blockIdx.x * kVocabulary + v] =
        v == shared.chosen ? 10.0f : -(float)v / 128;
  // A counter in the workspace, left at zero.
  unsigned *counter = (unsigned *)b.scratch;
  if (threadIdx.x == 0 && atomicAdd(counter, 1u) == gridDim.x - 1)
    atomicExch(counter, 0u);
}

// As the emitter writes it, with slices for so small a vocabulary.
struct Draws {
  static constexpr int kVocabulary = ::kVocabulary, kSlice = 32;
  static constexpr int kThreads = 64, kSelectThreads = 64;
};
static_assert(sizeof(Sampling<Draws>::Row) == 104, "the scratch of a row");
static_assert(sizeof(Sampling<Draws>::SelectShared) == 16424, "the launch gives this much");
extern "C" __global__ void sample_top(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  Sampling<Draws>::top(step, b);
}
extern "C" __global__ void sample_select(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  Sampling<Draws>::select(step, b);
}
extern "C" __global__ void sample_draw(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  Sampling<Draws>::draw(step, b);
}
extern "C" __global__ void sample_pick(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  Sampling<Draws>::pick(step, b);
}

// For the tests of failure.
extern "C" __global__ void broken(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  ((int *)b.pointers[0])[step->T + (1 << 24)] = 1;
}

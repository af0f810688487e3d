// The attention of an 8B-shaped model's prompt, as the compiler writes it: 32 heads over 8 KV heads of an f16 cache,
// a context of 32,768, 32 tokens a query tile. -DLLMC_HOPPER: the kernels of sm_90a.
#ifdef LLMC_HOPPER
#include "attention_sm90.cuh"
#else
#include "attention.cuh"
#endif

template <int D> struct Shape {
  static constexpr int kHeads = 32, kKvHeads = 8;
  static constexpr int kKeySize = D, kValueSize = D;
  static constexpr int kKv = kF16;
  static constexpr float kScale = D == 128 ? 0.0883883476f : 0.125f;
  static constexpr float kSoftcap = 0.0f;
  static constexpr int kWindow = 0;
  static constexpr bool kAlibi = false, kSinks = false, kLatent = false;
#ifdef LLMC_HOPPER
  static constexpr int kKeyTile = 128, kStages = D == 128 ? 2 : 4, kRowWarps = 8;
#else
  static constexpr int kKeyTile = 64, kStages = 2, kRowWarps = 4;
#endif
  static constexpr int kSplitKeys = 1024, kMaxSplits = 32, kValueParts = 1;
  static constexpr long long kCounterBytes = 256;
};

#ifdef LLMC_HOPPER
constexpr int kThreads = 384;
template <int D> using Prefill = WgmmaPrefill<Shape<D>, 2>;
static_assert(sizeof(Prefill<128>::Shared) == 197632 && sizeof(Prefill<64>::Shared) == 164864,
              "AttentionSpeed.cpp gives this much");
#else
constexpr int kThreads = 128;
template <int D> struct Prefill : PrefillAttention<Shape<D>> {
  LLMC_MEMBER void run(const LlmrtCudaStep *step, const LlmrtCudaBindings &b, const LlmrtKvMaps &) {
    PrefillAttention<Shape<D>>::run(step, b);
  }
};
static_assert(sizeof(PrefillAttention<Shape<128>>::Shared) == 98304 &&
                  sizeof(PrefillAttention<Shape<64>>::Shared) == 49152,
              "AttentionSpeed.cpp gives this much");
#endif

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_d128(const LlmrtCudaStep *step, LlmrtCudaBindings b,
                   const __grid_constant__ LlmrtKvMaps maps) {
  Prefill<128>::run(step, b, maps);
}
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_d64(const LlmrtCudaStep *step, LlmrtCudaBindings b,
                  const __grid_constant__ LlmrtKvMaps maps) {
  Prefill<64>::run(step, b, maps);
}

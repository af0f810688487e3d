//===- elementwise.cuh - one operation on each element --------------------------===//
#ifndef LLMC_CUDA_ELEMENTWISE_CUH
#define LLMC_CUDA_ELEMENTWISE_CUH

#include "math.cuh"
#include "rows.cuh"

/// y[m, i] = f(a[m, i], b[m, i]), over M * D elements; y may be a or b.
///   Config: kRows, kWidth, kBinary, kThreads; static float apply(float a, float b)
template <class Config>
LLMC_FN void runElementwise(const LlmrtCudaStep *step, const LlmrtCudaBindings &bindings) {
  const long long count = countRows<Config::kRows>(step) * Config::kWidth;
  const long long i = static_cast<long long>(blockIdx.x) * Config::kThreads + threadIdx.x;
  if (i >= count)
    return;
  const float a = binding<const float>(bindings, 0)[i];
  const float b = Config::kBinary ? binding<const float>(bindings, 1)[i] : 0.0f;
  binding<float>(bindings, Config::kBinary ? 2 : 1)[i] = Config::apply(a, b);
}

#endif // LLMC_CUDA_ELEMENTWISE_CUH

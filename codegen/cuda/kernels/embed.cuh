//===- embed.cuh - rows of a table, rows of a matrix --------------------------===//
#ifndef LLMC_CUDA_EMBED_CUH
#define LLMC_CUDA_EMBED_CUH

#include "rows.cuh"

/// y[t, :] = w[tokens[t], :] * scale, or of a table of positions w[positions[t], :]; a position
/// beyond the table takes its last row. Grid: a block a token.
///   Config: kWidth, Weight (a WeightFormat), kScale, kPositions (rows of the table; 0: of tokens)
template <class Config>
LLMC_FN void runEmbed(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
  const long long t = blockIdx.x;
  if (t >= step->T)
    return;
  const unsigned char *w = binding<const unsigned char>(b, 0);
  float *y = binding<float>(b, 1) + t * Config::kWidth;
  const long long row =
      Config::kPositions > 0 ? min(step->positions[t], Config::kPositions - 1) : step->tokens[t];
  for (int k = threadIdx.x; k < Config::kWidth; k += blockDim.x)
    y[k] = Config::Weight::at(w, row, k, Config::kWidth) * Config::kScale;
}

/// y[r, :] = x[logitRows[r], :]. Grid: a block a row.
///   Config: kWidth
template <class Config>
LLMC_FN void runGatherRows(const LlmrtCudaStep *step, const LlmrtCudaBindings &b) {
  const long long r = blockIdx.x;
  if (r >= step->R)
    return;
  const float *x =
      binding<const float>(b, 0) + static_cast<long long>(step->logitRows[r]) * Config::kWidth;
  float *y = binding<float>(b, 1) + r * Config::kWidth;
  for (int k = threadIdx.x; k < Config::kWidth; k += blockDim.x)
    y[k] = x[k];
}

#endif // LLMC_CUDA_EMBED_CUH

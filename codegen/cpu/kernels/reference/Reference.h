//===- Reference.h - every kernel as plain loops ------------------------------===//
//
// The oracle of the kernels' tests, always built. What is defined to the bit (integer and float
// products, quantization) is written with the same roundings in the plainest order; what uses a
// transcendental function is computed in double. Matrices are row-major and unpacked.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_CODEGEN_CPU_KERNELS_REFERENCE_REFERENCE_H
#define LLMC_CODEGEN_CPU_KERNELS_REFERENCE_REFERENCE_H

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace llmc::reference {

/// y[m][n] = sum over k ascending, one fused multiply-add each. x [M, K], w [N, K].
std::vector<float> gemmFloat(int64_t m, int64_t n, int64_t k, const float *x, const float *w);

/// A matrix of integers in groups along K.
struct QuantizedMatrix {
  int64_t rows = 0, columns = 0, group = 0;
  std::vector<int32_t> q;    ///< [rows, columns]: i4 without minimum already less 8
  std::vector<float> scales; ///< [rows, groups]
  std::vector<float> mins;   ///< [rows, groups] or empty
  int64_t groups() const { return (columns + group - 1) / group; }
};

/// Int8 rows of activations, unpacked.
struct QuantizedRows {
  int64_t rows = 0, columns = 0, group = 0;
  std::vector<int8_t> q;     ///< [rows, columns]
  std::vector<float> scales; ///< [rows, groups]
  std::vector<int32_t> sums; ///< [rows, groups]
  int64_t groups() const { return (columns + group - 1) / group; }
};

/// The rule of Quantize.h: amax / 127, nearest even, +-127, 0 for zeros, NaN for what isn't finite.
QuantizedRows quantizeRows(int64_t rows, int64_t columns, int64_t group, const float *x);

/// The rule of GemmInt.h. [x.rows, w.rows]
std::vector<float> gemmInt(const QuantizedRows &x, const QuantizedMatrix &w);

/// One row in double: RMS norm (\p mean false) or layer norm.
std::vector<double> norm(std::span<const float> x, std::span<const float> w,
                         std::span<const float> bias, bool mean, double eps, bool plusOne);

/// 0 none, 1 SiLU, 2 GELU (erf), 3 GELU (tanh), 4 ReLU, 5 sigmoid.
double activate(double x, int64_t activation);

/// One query over keys and values [count, size] in double; zeros without keys. The last key is at
/// the query's position; \p slope is ALiBi's. A \p sink is one more score, of a key without a
/// value.
std::vector<double> attend(std::span<const float> q, std::span<const float> keys,
                           std::span<const float> values, int64_t count, int64_t valueSize,
                           double scale, double softcap, double slope = 0,
                           std::optional<double> sink = std::nullopt);

/// How a router chooses, see llm.route. scoring: 0 softmax, 1 sigmoid, 2 softmax of the chosen.
struct RouteRule {
  int64_t chosen = 1, scoring = 0;
  bool normalize = false;
  int64_t groups = 0, topGroups = 0;
  bool groupBestTwo = false;
  double scale = 1;
};
struct Routing {
  std::vector<int32_t> experts;
  std::vector<double> weights;
};
/// One row of logits, in double; \p correction may be empty.
Routing route(std::span<const float> logits, std::span<const float> correction,
              const RouteRule &rule);

} // namespace llmc::reference

#endif // LLMC_CODEGEN_CPU_KERNELS_REFERENCE_REFERENCE_H

#include "codegen/cpu/kernels/reference/Reference.h"

#include <algorithm>
#include <cmath>

using namespace llmc;

std::vector<double> reference::attend(std::span<const float> q, std::span<const float> keys,
                                      std::span<const float> values, int64_t count,
                                      int64_t valueSize, double scale, double softcap, double slope,
                                      std::optional<double> sink) {
  std::vector<double> out(valueSize), scores(count);
  double largest = sink.value_or(-INFINITY);
  for (int64_t t = 0; t < count; ++t) {
    double score = 0;
    for (size_t d = 0; d < q.size(); ++d)
      score += double(q[d]) * keys[t * q.size() + d];
    score *= scale;
    if (softcap != 0)
      score = softcap * std::tanh(score / softcap);
    score += slope * static_cast<double>(t - (count - 1));
    scores[t] = score;
    largest = std::max(largest, score);
  }
  double sum = sink ? std::exp(*sink - largest) : 0;
  for (int64_t t = 0; t < count; ++t) {
    const double p = std::exp(scores[t] - largest);
    sum += p;
    for (int64_t i = 0; i < valueSize; ++i)
      out[i] += p * values[t * valueSize + i];
  }
  for (double &v : out)
    v = sum == 0 ? 0 : v / sum;
  return out;
}

//===- EvalStatistics.h - how well distributions predict a text --------------===//
//
// For a row of logits z and the token t that follows: the negative log-likelihood
// -log softmax(z)[t], whose mean is the log of the perplexity; and against a reference's row r
// the Kullback-Leibler divergence sum_i p_i (log p_i - log q_i), p = softmax(r), q = softmax(z),
// in nats. Everything is summed in double, row after row, so equal logits give equal numbers.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TOOLS_COMMON_EVALSTATISTICS_H
#define LLMC_TOOLS_COMMON_EVALSTATISTICS_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <span>
#include <vector>

namespace llmc::tools {

/// A mean and its standard error; the error is 0 for fewer than 2 values.
struct Estimate {
  double mean = 0, error = 0;
};
Estimate estimate(std::span<const double> values);
/// The \p share quantile, linear between the two nearest values (NumPy's default); sorts
/// \p values. 0 for none.
double quantile(std::vector<double> &values, double share);

class EvalStatistics {
public:
  /// A row of logits and the token after it. An error if a logit is not a number or infinite
  /// upwards, or all are infinite downwards.
  llmrt::Status add(std::span<const float> logits, int32_t next);
  /// The same, and compares with the reference's row for the same position.
  llmrt::Status add(std::span<const float> logits, std::span<const float> reference, int32_t next);

  int64_t tokens() const { return static_cast<int64_t>(losses_.size()); }
  /// Mean of -log p, in nats.
  Estimate loss() const { return estimate(losses_); }
  /// exp(loss); its error to first order.
  Estimate perplexity() const { return exponential(loss()); }

  bool compared() const { return !divergences_.empty(); }
  Estimate referencePerplexity() const { return exponential(estimate(referenceLosses_)); }
  Estimate divergence() const { return estimate(divergences_); }
  /// One value a token, in the text's order.
  const std::vector<double> &divergences() const { return divergences_; }
  /// Share of positions where both find the same token likeliest.
  double sameTop() const;

private:
  static Estimate exponential(Estimate e);
  std::vector<double> losses_, referenceLosses_, divergences_;
  int64_t sameTop_ = 0;
};

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_EVALSTATISTICS_H

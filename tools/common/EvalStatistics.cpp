#include "tools/common/EvalStatistics.h"

#include <algorithm>
#include <cmath>

namespace llmc::tools {

using namespace llmrt;

namespace {

struct Normalizer {
  double logSum = 0; ///< log sum exp of the row
  size_t top = 0;    ///< the likeliest; the first of equals
};

Result<Normalizer> normalizerOf(std::span<const float> row) {
  Normalizer n;
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i]) || row[i] == HUGE_VALF)
      return internalError("logit " + std::to_string(i) + " is " + std::to_string(row[i]));
    if (row[i] > row[n.top])
      n.top = i;
  }
  double largest = row[n.top], sum = 0;
  if (largest == -HUGE_VAL)
    return internalError("every logit is -inf");
  for (float z : row)
    sum += std::exp(double(z) - largest);
  n.logSum = largest + std::log(sum);
  return n;
}

} // namespace

Estimate estimate(std::span<const double> values) {
  Estimate e;
  auto n = static_cast<double>(values.size());
  if (values.empty())
    return e;
  for (double v : values)
    e.mean += v;
  e.mean /= n;
  if (values.size() < 2)
    return e;
  double squares = 0;
  for (double v : values)
    squares += (v - e.mean) * (v - e.mean);
  e.error = std::sqrt(squares / (n - 1) / n);
  return e;
}

double quantile(std::vector<double> &values, double share) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  double place = share * static_cast<double>(values.size() - 1);
  auto below = static_cast<size_t>(place);
  if (below + 1 >= values.size())
    return values.back();
  double part = place - static_cast<double>(below);
  return values[below] + part * (values[below + 1] - values[below]);
}

Status EvalStatistics::add(std::span<const float> logits, int32_t next) {
  LLMRT_ASSIGN_OR_RETURN(Normalizer q, normalizerOf(logits));
  losses_.push_back(q.logSum - double(logits[static_cast<size_t>(next)]));
  return Status::ok();
}

Status EvalStatistics::add(std::span<const float> logits, std::span<const float> reference,
                           int32_t next) {
  LLMRT_ASSIGN_OR_RETURN(Normalizer q, normalizerOf(logits));
  Result<Normalizer> normalizer = normalizerOf(reference);
  if (!normalizer)
    return normalizer.status().withContext("the reference");
  const Normalizer &p = *normalizer;
  double divergence = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    double logP = double(reference[i]) - p.logSum, likely = std::exp(logP);
    if (likely > 0) // what the reference rules out adds nothing, whatever q is
      divergence += likely * (logP - (double(logits[i]) - q.logSum));
  }
  losses_.push_back(q.logSum - double(logits[static_cast<size_t>(next)]));
  referenceLosses_.push_back(p.logSum - double(reference[static_cast<size_t>(next)]));
  divergences_.push_back(std::max(0.0, divergence)); // equal rows may round below 0
  sameTop_ += p.top == q.top;
  return Status::ok();
}

double EvalStatistics::sameTop() const {
  return divergences_.empty()
             ? 0
             : static_cast<double>(sameTop_) / static_cast<double>(divergences_.size());
}

Estimate EvalStatistics::exponential(Estimate e) {
  double value = std::exp(e.mean);
  return {value, value * e.error};
}

} // namespace llmc::tools

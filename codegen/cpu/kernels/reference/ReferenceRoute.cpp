#include "codegen/cpu/kernels/reference/Reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace llmc;

static void softmax(std::vector<double> &x) {
  const double largest = *std::ranges::max_element(x);
  double sum = 0;
  for (double &v : x)
    sum += v = std::exp(v - largest);
  for (double &v : x)
    v /= sum;
}

/// Indices of the \p count largest values, largest first, the lower one of equals first.
static std::vector<int32_t> largestOf(const std::vector<double> &x, int64_t count) {
  std::vector<int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order,
                    [&](int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
  order.resize(count);
  return order;
}

reference::Routing reference::route(std::span<const float> logits,
                                    std::span<const float> correction, const RouteRule &rule) {
  std::vector<double> scores(logits.begin(), logits.end());
  if (rule.scoring == 0)
    softmax(scores);
  else if (rule.scoring == 1)
    for (double &s : scores)
      s = 1 / (1 + std::exp(-s));
  std::vector<double> choices = scores;
  for (size_t i = 0; i < correction.size(); ++i)
    choices[i] += correction[i];
  if (rule.groups) {
    const int64_t size = std::ssize(choices) / rule.groups;
    std::vector<double> best(rule.groups);
    for (int64_t g = 0; g < rule.groups; ++g) {
      std::vector<double> members(choices.begin() + g * size, choices.begin() + (g + 1) * size);
      std::ranges::sort(members, std::greater());
      best[g] = members[0] + (rule.groupBestTwo && size > 1 ? members[1] : 0);
    }
    const std::vector<int32_t> taken = largestOf(best, rule.topGroups);
    for (int64_t g = 0; g < rule.groups; ++g)
      if (std::ranges::find(taken, g) == taken.end())
        std::fill_n(choices.begin() + g * size, size, -INFINITY);
  }
  Routing result{largestOf(choices, rule.chosen), {}};
  for (int32_t e : result.experts)
    result.weights.push_back(scores[e]);
  if (rule.scoring == 2)
    softmax(result.weights);
  const double sum = std::accumulate(result.weights.begin(), result.weights.end(), 0.0);
  for (double &w : result.weights)
    w *= rule.scale / (rule.normalize ? sum : 1.0);
  return result;
}

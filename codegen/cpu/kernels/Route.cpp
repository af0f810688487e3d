//===- Route.cpp - the router of a mixture, and the sum of its experts ----------===//
#include "codegen/cpu/kernels/Kernel.h"
#include "codegen/cpu/kernels/Scratch.h"

using namespace llmc::kernel;

namespace {

enum Scoring : int64_t { kSoftmax = 0, kSigmoid = 1, kSoftmaxChosen = 2 };

/// Softmax of \p count values, in place.
KERNEL_INLINE void softmax(float *x, int64_t count) {
  const float infinity = __builtin_inff();
  F32x16 largest = splat(-infinity);
  for (int64_t i = 0; i < count; i += kLanes) {
    F32x16 v = loadPart(x + i, count - i);
    v = laneIndex() < splatInt(static_cast<int32_t>(smaller(count - i, kLanes))) ? v
                                                                                 : splat(-infinity);
    largest = larger(largest, v);
  }
  const float most = largestLane(largest);
  F32x16 sum = splat(0.0f);
  for (int64_t i = 0; i < count; i += kLanes) {
    F32x16 e = exp<true>(loadPart(x + i, count - i) - most);
    e = laneIndex() < splatInt(static_cast<int32_t>(smaller(count - i, kLanes))) ? e : splat(0.0f);
    storePart(x + i, e, count - i);
    sum = sum + e;
  }
  const float total = sumLanes(sum);
  for (int64_t i = 0; i < count; i += kLanes)
    storePart(x + i, loadPart(x + i, count - i) / total, count - i);
}

/// The index of the largest of \p count values that is not excluded (-infinity, or a NaN), the
/// lowest of equals; -1 where all are.
KERNEL_INLINE int64_t largestIndex(const float *x, int64_t count) {
  int64_t best = -1;
  float most = -__builtin_inff();
  for (int64_t i = 0; i < count; ++i)
    if (x[i] > most)
      most = x[i], best = i;
  return best;
}

} // namespace

LLMC_KERNEL(route, int64_t experts, int64_t chosen, int64_t scoring, int64_t normalize,
            int64_t correction, int64_t groups, int64_t topGroups, int64_t groupBestTwo,
            float scale, int64_t rows) {
  const float infinity = __builtin_inff();
  const float *x = binding<float>(bindings, 0);
  const float *shift = correction ? binding<float>(bindings, 1) : nullptr;
  int32_t *ids = binding<int32_t>(bindings, 1 + (correction != 0));
  float *weights = binding<float>(bindings, 2 + (correction != 0));
  float *scores = static_cast<float *>(scratch), *choices = scores + roundUp(experts, kLanes);
  float *groupScores = choices + roundUp(experts, kLanes);
  for (int64_t m = taskBegin; m < taskEnd; ++m) {
    for (int64_t i = 0; i < experts; i += kLanes) {
      F32x16 v = loadPart(x + m * experts + i, experts - i);
      if (scoring == kSigmoid)
        v = 1.0f / (1.0f + exp(-v));
      storePart(scores + i, v, experts - i);
    }
    if (scoring == kSoftmax)
      softmax(scores, experts);
    for (int64_t i = 0; i < experts; i += kLanes) {
      F32x16 v = loadPart(scores + i, experts - i);
      if (shift)
        v = v + loadPart(shift + i, experts - i);
      storePart(choices + i, v, experts - i);
    }
    if (groups) {
      const int64_t size = experts / groups;
      for (int64_t g = 0; g < groups; ++g) {
        float most = -infinity, second = -infinity;
        for (int64_t i = g * size; i < (g + 1) * size; ++i) {
          const float v = choices[i];
          if (v > most)
            second = most, most = v;
          else if (v > second)
            second = v;
        }
        groupScores[g] = groupBestTwo && size > 1 ? most + second : most;
      }
      for (int64_t taken = 0; taken < topGroups; ++taken)
        if (const int64_t g = largestIndex(groupScores, groups); g >= 0)
          groupScores[g] = -infinity; // taken
      // Where groupScores is still above -infinity the group was not taken. One that has nothing
      // but NaNs counts as taken, and so is nothing to choose from.
      for (int64_t g = 0; g < groups; ++g)
        if (groupScores[g] > -infinity)
          for (int64_t i = g * size; i < (g + 1) * size; ++i)
            choices[i] = -infinity;
    }
    int32_t *id = ids + m * chosen;
    float *weight = weights + m * chosen;
    for (int64_t j = 0; j < chosen; ++j) {
      int64_t best = largestIndex(choices, experts);
      // Without numbers to choose by, any expert will do: the scores make the result NaN.
      best = best < 0 ? j : best;
      id[j] = static_cast<int32_t>(best);
      weight[j] = scores[best];
      choices[best] = -infinity;
    }
    if (scoring == kSoftmaxChosen)
      softmax(weight, chosen);
    if (normalize) {
      float sum = 0.0f;
      for (int64_t j = 0; j < chosen; ++j)
        sum = sum + weight[j];
      sum = sum + 1e-20f; // zeros stay zeros
      for (int64_t j = 0; j < chosen; ++j)
        weight[j] = weight[j] / sum;
    }
    for (int64_t j = 0; j < chosen; ++j)
      weight[j] = weight[j] * scale;
  }
}

/// y = sum over slots ascending of weight * value, + residual.
LLMC_KERNEL(combine, int64_t d, int64_t slots, int64_t residual, int64_t rows) {
  const float *x = binding<float>(bindings, 0), *w = binding<float>(bindings, 1);
  const float *more = residual ? binding<float>(bindings, 2) : nullptr;
  float *y = binding<float>(bindings, 2 + (residual != 0));
  for (int64_t m = taskBegin; m < taskEnd; ++m)
    for (int64_t i = 0; i < d; i += kLanes) {
      F32x16 sum = loadPart(x + m * slots * d + i, d - i) * w[m * slots];
      for (int64_t j = 1; j < slots; ++j)
        sum = fma(splat(w[m * slots + j]), loadPart(x + (m * slots + j) * d + i, d - i), sum);
      if (more)
        sum = sum + loadPart(more + m * d + i, d - i);
      storePart(y + m * d + i, sum, d - i);
    }
}

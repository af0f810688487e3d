//===- CalibrateMixture.cpp - mixtures of experts and latent attention -----------===//

#include "compiler/calibrate/CalibrationRun.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace llmc;
using namespace llmc::calibrate;
using llmrt::Result;
using llmrt::Status;

static void softmax(float *x, uint64_t count) {
  const float largest = *std::max_element(x, x + count);
  float sum = 0;
  for (uint64_t i = 0; i != count; ++i)
    sum += x[i] = exponential(x[i] - largest);
  for (uint64_t i = 0; i != count; ++i)
    x[i] /= sum;
}

/// Indices of the \p count largest values, largest first, the lower one of equals first.
static std::vector<int32_t> largestOf(const std::vector<float> &x, uint64_t count) {
  std::vector<int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
  order.resize(count);
  return order;
}

Status Run::route(llm::RouteOp op) {
  const uint64_t experts = llm::dim(op.getLogits(), 1), chosen = op.getChosen();
  Rows correction;
  if (op.getCorrection()) {
    LLMRT_ASSIGN_OR_RETURN(correction, small(op.getCorrection()));
  }
  Rows &weights = make(op.getWeights());
  std::vector<int32_t> &ids = choices[op.getExperts()];
  const Rows &logits = of(op.getLogits());
  for (uint64_t t = 0; t != tokens; ++t) {
    Rows scores(logits.begin() + t * experts, logits.begin() + (t + 1) * experts);
    if (op.getScoring() == llm::Scoring::Softmax)
      softmax(scores.data(), experts);
    else if (op.getScoring() == llm::Scoring::Sigmoid)
      for (float &score : scores)
        score = activate(Activation::Sigmoid, score);
    Rows ranks = scores;
    for (size_t i = 0; i != correction.size(); ++i)
      ranks[i] += correction[i];
    if (op.getGroups()) {
      const uint64_t groups = *op.getGroups(), size = experts / groups;
      Rows best(groups);
      for (uint64_t g = 0; g != groups; ++g) {
        Rows members(ranks.begin() + g * size, ranks.begin() + (g + 1) * size);
        std::sort(members.begin(), members.end(), std::greater<float>());
        best[g] = members[0] + (op.getGroupBestTwo() && size > 1 ? members[1] : 0.0f);
      }
      const std::vector<int32_t> taken = largestOf(best, *op.getTopGroups());
      for (uint64_t g = 0; g != groups; ++g)
        if (!llvm::is_contained(taken, static_cast<int32_t>(g)))
          std::fill_n(ranks.begin() + g * size, size, -INFINITY);
    }
    const std::vector<int32_t> best = largestOf(ranks, chosen);
    float *weight = weights.data() + t * chosen;
    for (uint64_t j = 0; j != chosen; ++j)
      weight[j] = scores[best[j]];
    if (op.getScoring() == llm::Scoring::SoftmaxChosen)
      softmax(weight, chosen);
    const float sum = std::accumulate(weight, weight + chosen, 1e-20f);
    const float scale = static_cast<float>(op.getScale().convertToDouble());
    for (uint64_t j = 0; j != chosen; ++j)
      weight[j] = (op.getNormalize() ? weight[j] / sum : weight[j]) * scale;
    ids.insert(ids.end(), best.begin(), best.end());
  }
  return Status::ok();
}

/// Each expert once, for the tokens that chose it.
Status Run::experts(llm::ExpertLinearOp op) {
  LLMRT_ASSIGN_OR_RETURN(WeightView weight, options.readable(op.getWeight()));
  Rows bias;
  if (op.getBias()) {
    LLMRT_ASSIGN_OR_RETURN(bias, small(op.getBias()));
  }
  Rows &y = make(op.getResult());
  const Rows &x = of(op.getInput());
  const std::vector<int32_t> &ids = choices[op.getExperts()];
  const uint64_t size = weight.columnCount(), count = op.getCount(), chosen = op.getChosen();
  const uint64_t stored = weight.rowCount() / count, outputs = op.getOutputs();
  std::vector<double> sums(size);
  for (uint64_t e = 0; e != count; ++e) {
    Rows inputs;
    std::vector<uint64_t> entries;
    for (uint64_t i = 0; i != ids.size(); ++i)
      if (ids[i] == static_cast<int32_t>(e)) {
        const float *from = x.data() + (op.hasOwnInputs() ? i : i / chosen) * size;
        inputs.insert(inputs.end(), from, from + size);
        entries.push_back(i);
      }
    if (entries.empty())
      continue;
    for (size_t i = 0; i != inputs.size(); ++i)
      sums[i % size] += double(inputs[i]) * inputs[i];
    Rows part(kRowsATurn * size), z(entries.size() * stored);
    for (uint64_t begin = 0; begin != stored; begin += kRowsATurn) {
      LLMRT_RETURN_IF_ERROR(
          weight.readRows(e * stored + begin, e * stored + begin + kRowsATurn, part.data()));
      multiply(inputs.data(), entries.size(), size, part.data(), kRowsATurn, z.data(), stored,
               begin);
    }
    for (size_t i = 0; i != entries.size(); ++i) {
      float *row = z.data() + i * stored, *out = y.data() + entries[i] * outputs;
      for (uint64_t r = 0; !bias.empty() && r != stored; ++r)
        row[r] += bias[e * stored + r];
      for (uint64_t c = 0; c != outputs; ++c) {
        if (!op.getGlu()) {
          out[c] = activate(kindOf(op.getActivation()), row[c]);
          continue;
        }
        float gate = row[c / 16 * 32 + c % 16], up = row[c / 16 * 32 + 16 + c % 16];
        if (!op.getAlpha()) {
          out[c] = activate(kindOf(op.getActivation()), gate) * up;
          continue;
        }
        if (op.getLimit()) {
          const float limit = static_cast<float>(op.getLimit()->convertToDouble());
          gate = std::min(gate, limit);
          up = std::clamp(up, -limit, limit);
        }
        const float alpha = static_cast<float>(op.getAlpha()->convertToDouble());
        out[c] = gate * activate(Activation::Sigmoid, alpha * gate) * (up + 1);
      }
    }
  }
  // One measure for all experts of the layer: a few tokens say little of an expert by itself.
  std::vector<float> squares(size);
  for (uint64_t i = 0; i != size; ++i)
    squares[i] = static_cast<float>(sums[i] / double(ids.size()));
  note(op.getWeight(), squares);
  return Status::ok();
}

Status Run::combine(llm::CombineOp op) {
  Rows &y = make(op.getResult());
  const Rows &values = of(op.getValues()), &weights = of(op.getWeights());
  const Rows residual = op.getResidual() ? of(op.getResidual()) : Rows();
  const uint64_t size = llm::dim(op.getResult(), 1), slots = llm::dim(op.getWeights(), 1);
  for (uint64_t t = 0; t != tokens; ++t)
    for (uint64_t i = 0; i != size; ++i) {
      float sum = 0;
      for (uint64_t j = 0; j != slots; ++j)
        sum += weights[t * slots + j] * values[(t * slots + j) * size + i];
      y[t * size + i] = sum + (residual.empty() ? 0.0f : residual[t * size + i]);
    }
  return Status::ok();
}

Status Run::heads(llm::HeadLinearOp op) {
  LLMRT_ASSIGN_OR_RETURN(WeightView weight, options.readable(op.getWeight()));
  Rows &y = make(op.getResult());
  const Rows &x = of(op.getInput());
  const uint64_t heads = op.getHeads(), size = weight.columnCount();
  const uint64_t stored = weight.rowCount() / heads, width = llm::dim(op.getInput(), 1) / heads;
  const uint64_t outputs = llm::dim(op.getResult(), 1) / heads;
  std::vector<double> sums(size);
  Rows matrix(stored * size), inputs(tokens * size);
  for (uint64_t h = 0; h != heads; ++h) {
    LLMRT_RETURN_IF_ERROR(weight.readRows(h * stored, (h + 1) * stored, matrix.data()));
    for (uint64_t t = 0; t != tokens; ++t)
      std::copy_n(x.data() + (t * heads + h) * width, size, inputs.data() + t * size);
    for (size_t i = 0; i != inputs.size(); ++i)
      sums[i % size] += double(inputs[i]) * inputs[i];
    multiply(inputs.data(), tokens, size, matrix.data(), outputs, y.data() + h * outputs,
             heads * outputs, 0);
  }
  std::vector<float> squares(size);
  for (uint64_t i = 0; i != size; ++i)
    squares[i] = static_cast<float>(sums[i] / double(tokens * heads));
  // The up projections are read turned around: their columns are not these inputs.
  if (llvm::none_of(op.getWeight().getDefiningOp()->getOperands(), [](Value part) {
        return isa_and_present<llm::WeightTransposeOp>(part.getDefiningOp());
      }))
    note(op.getWeight(), squares);
  return Status::ok();
}

Status Run::appendLatent(llm::LatentAppendOp op) {
  auto kv = op.getCache().getType();
  const uint64_t heads = op.getHeads(), latent = kv.getValueSize();
  const uint64_t size = kv.getKeySize(), rotary = size - latent;
  const uint64_t width = llm::dim(op.getQuery(), 1) / heads;
  const Rows &absorbed = of(op.getAbsorbed()), &query = of(op.getQuery());
  const Rows &latents = of(op.getLatent()), &angle = of(op.getAngles());
  Rows part(tokens * heads * rotary), turned(part.size()), key(tokens * rotary);
  for (uint64_t i = 0; i != tokens * heads; ++i)
    std::copy_n(query.data() + (i + 1) * width - rotary, rotary, part.data() + i * rotary);
  rotate(part.data(), tokens, heads, rotary, angle.data(), rotary / 2, op.getInterleaved(),
         turned.data());
  rotate(of(op.getKey()).data(), tokens, 1, rotary, angle.data(), rotary / 2, op.getInterleaved(),
         key.data());
  Cache cache;
  for (uint64_t t = 0; t != tokens; ++t) {
    const float *row = latents.data() + t * latent;
    cache.keys.insert(cache.keys.end(), row, row + latent);
    cache.keys.insert(cache.keys.end(), key.begin() + t * rotary, key.begin() + (t + 1) * rotary);
    cache.values.insert(cache.values.end(), row, row + latent);
  }
  caches[op.getResult()] = std::make_shared<const Cache>(std::move(cache));
  Rows queries;
  for (uint64_t i = 0; i != tokens * heads; ++i) {
    queries.insert(queries.end(), absorbed.begin() + i * latent,
                   absorbed.begin() + (i + 1) * latent);
    queries.insert(queries.end(), turned.begin() + i * rotary, turned.begin() + (i + 1) * rotary);
  }
  rows[op.getQueries()] = std::move(queries);
  return Status::ok();
}

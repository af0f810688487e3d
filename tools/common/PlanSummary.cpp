#include "tools/common/PlanSummary.h"

#include "runtime/device/cpu/AttentionItems.h"
#include "runtime/device/cpu/CpuExecutor.h"
#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/WeightFormat.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace llmc::tools {

using namespace llmrt;

static void addWeights(const fbs::Plan &plan, PlanSummary &s) {
  std::map<std::string, WeightType> types;
  for (const fbs::Weight *w : *plan.weights()) {
    WeightType &t = types[WeightFormat(*w->format()).name()];
    for (WeightType *sum : {&t, &s.allWeights}) {
      ++sum->count;
      sum->values += w->rows() * w->columns();
      sum->bytes += w->size();
    }
  }
  for (auto &[name, type] : types) {
    type.name = name;
    s.weights.push_back(type);
  }
  std::sort(s.weights.begin(), s.weights.end(), [](const WeightType &a, const WeightType &b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.name < b.name;
  });
  s.allWeights.name = "all";
}

static void addKernels(const fbs::Plan &plan, PlanSummary &s) {
  std::vector<uint64_t> uses(plan.kernels()->size(), 0);
  for (const fbs::Command *c : *plan.commands())
    ++uses[c->kernel()];
  for (uint32_t i = 0; i < plan.kernels()->size(); ++i) {
    const fbs::Kernel *k = plan.kernels()->Get(i);
    if (k->target() == fbs::Target::Cpu)
      s.kernels.push_back({k->symbol()->str(), k->kind()->str(), "cpu", k, uses[i]});
  }
  if (!plan.cuda_kernels())
    return;
  // Nobody knows the registers of PTX before a driver compiles it.
  for (const fbs::CudaKernel *c : *plan.cuda_kernels())
    if (c->registers() != 0) {
      const fbs::Kernel *k = plan.kernels()->Get(c->kernel());
      s.kernels.push_back(
          {c->entry()->str(), k->kind()->str(), c->sm()->str(), k, uses[c->kernel()], c});
    }
  if (plan.cuda_sampling())
    for (const fbs::CudaKernel *c : *plan.cuda_sampling())
      if (c->registers() != 0)
        s.kernels.push_back({c->entry()->str(), "sampling", c->sm()->str(), nullptr, 1, c});
}

PlanSummary summarize(const fbs::Plan &plan, unsigned threads) {
  PlanSummary s;
  addWeights(plan, s);
  addKernels(plan, s);
  int64_t sum[5] = {};
  for (const fbs::ArenaSlot *slot : *plan.arena_slots()) {
    const fbs::Affine &a = *slot->size();
    const int64_t terms[5] = {a.constant(), a.per_token(), a.per_sequence(), a.per_row(),
                              a.per_tile()};
    for (int i = 0; i < 5; ++i)
      sum[i] += terms[i];
  }
  s.arena = fbs::Affine(sum[0], sum[1], sum[2], sum[3], sum[4]);
  StepDims limits = stepLimits(*plan.limits());
  s.scratchAThread = scratchBytesAThread(plan);
  s.partialsAtLimits = AttentionItems(plan, limits.Q, threads).bytes();
  s.arenaAtLimits = ArenaLayout::compute(plan, limits).total();
  s.logitsAtLimits = static_cast<uint64_t>(evaluate(*plan.outputs()->Get(0)->size(), limits));
  const int64_t context = plan.model()->max_context();
  s.kvGroups = KvGroups(*plan.kv(), context).groups();
  for (const KvGroup &group : s.kvGroups)
    s.kvAtMaxContext += static_cast<double>(group.bytesPerToken) *
                        static_cast<double>(group.window ? group.window : context);
  std::vector<std::string> seen;
  for (const fbs::KvLayer *l : *plan.kv()->layers())
    if (std::string name = elementName(l->element());
        std::find(seen.begin(), seen.end(), name) == seen.end()) {
      seen.push_back(name);
      s.kvTypes += (s.kvTypes.empty() ? "" : ", ") + name;
    }
  return s;
}

std::string formatAffine(const fbs::Affine &a) {
  std::string text;
  auto term = [&](int64_t value, const char *name) {
    if (value != 0)
      text += (text.empty() ? "" : " + ") + std::to_string(value) + name;
  };
  term(a.constant(), "");
  term(a.per_token(), " T");
  term(a.per_sequence(), " S");
  term(a.per_row(), " R");
  term(a.per_tile(), " Q");
  return text.empty() ? "0" : text;
}

std::string formatConstants(const fbs::Kernel &kernel) {
  std::string text;
  for (const fbs::Constant *c : *kernel.constants()) {
    char number[32];
    std::snprintf(number, sizeof number, "%.9g", c->real());
    text += (text.empty() ? "" : " ") + c->name()->str() + "=";
    text += c->text()->size() ? c->text()->str()
            : c->is_real()    ? std::string(number)
                              : std::to_string(c->value());
  }
  return text;
}

} // namespace llmc::tools

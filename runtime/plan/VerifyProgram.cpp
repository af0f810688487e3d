// The part of the verifier that looks at what is run: kernels, commands, code modules.
#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/device/cuda/KernelAbi.h"
#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/KvGroups.h"
#include "runtime/plan/KvLayout.h"
#include "runtime/plan/VerifyParts.h"
#include "runtime/plan/WeightFormat.h"

#include <cmath>
#include <unordered_map>

namespace llmrt::verify {

using fbs::BindingKind;
using fbs::Target;

static Status kernels(const fbs::Plan &plan) {
  UniqueNames symbols;
  for (uint32_t i = 0; i < plan.kernels()->size(); ++i) {
    const fbs::Kernel &k = *plan.kernels()->Get(i);
    auto fail = [&](const std::string &what) {
      return invalidFile(at("kernels", i, k.symbol()) + what);
    };
    if (!isIdentifier(k.symbol()))
      return fail("the symbol isn't an identifier");
    if (!symbols.add(k.symbol()))
      return fail("the symbol is used twice");
    if (!isIdentifier(k.kind()))
      return fail("the kind isn't an identifier");
    if (k.target() > Target::Cuda)
      return fail("unknown target " + num(static_cast<uint64_t>(k.target())));
    if (!k.signature() || !k.constants())
      return fail("has no signature or constants");
    for (const flatbuffers::String *word : *k.signature())
      if (!isName(word))
        return fail("a word of the signature isn't printable");
    UniqueNames names;
    for (const fbs::Constant *c : *k.constants()) {
      if (!isName(c->name()) || !names.add(c->name()))
        return fail("a constant has no name, or another one's");
      if (c->is_real() && !std::isfinite(c->real()))
        return fail("constant '" + c->name()->str() + "' isn't finite");
      if (!isText(c->text(), kMaxNameBytes))
        return fail("constant '" + c->name()->str() + "' holds what isn't text");
    }
    if (k.scratch_bytes() > kMaxScratchBytes)
      return fail("wants " + num(k.scratch_bytes()) + " bytes of scratch, the limit is " +
                  num(kMaxScratchBytes));
    // How CUDA launches a kernel is a matter of cuda_kernels.
    if (k.block() != 0 || k.registers() != 0 || k.shared_bytes() != 0)
      return fail("has a block, registers or shared memory, which cuda_kernels have");
  }
  return Status::ok();
}

/// Bytes a token of the layers before each layer: where a layer's KV starts in a block is one of
/// these times the block's tokens.
static std::unordered_map<uint64_t, const fbs::KvLayer *> kvPrefixes(const fbs::Kv &kv) {
  std::unordered_map<uint64_t, const fbs::KvLayer *> prefixes;
  uint64_t prefix = 0;
  for (const fbs::KvLayer *l : *kv.layers()) {
    prefixes.emplace(prefix, l);
    prefix += kvBytesPerToken(*l);
  }
  return prefixes;
}

/// An integer constant of the kernel; 0 where it isn't given.
static int64_t constant(const fbs::Kernel &k, std::string_view name) {
  for (const fbs::Constant *c : *k.constants())
    if (c->name()->string_view() == name)
      return c->value();
  return 0;
}

/// What writes a latent layer (without values of its own), one head whose keys are `latent` and
/// `rotary` values.
static Status latentAccess(const fbs::Kernel &k, const fbs::KvLayer &l) {
  const int64_t latent = constant(k, "latent"), rotary = constant(k, "rotary");
  if (l.value_size() != 0 || l.kv_heads() != 1 || latent <= 0 || rotary < 0 ||
      latent > int64_t(l.key_size()) || rotary != int64_t(l.key_size()) - latent ||
      constant(k, "kv_element") != static_cast<int64_t>(l.element()))
    return invalidFile("kernel '" + k.symbol()->str() + "' writes a latent cache of " +
                       std::to_string(latent) + " + " + std::to_string(rotary) +
                       " values, which its KV layer is not");
  return Status::ok();
}

/// A kernel that writes or reads the KV cache must do so inside the layer that its scalar names.
static Status kvAccess(const fbs::Plan &plan, const fbs::Kernel &k, const fbs::Command &c,
                       const std::unordered_map<uint64_t, const fbs::KvLayer *> &prefixes) {
  if (c.scalars()->size() != 1)
    return invalidFile("a '" + k.kind()->str() + "' takes one scalar, its layer's KV prefix");
  int64_t prefix = c.scalars()->Get(0);
  auto layer = prefix < 0 ? prefixes.end() : prefixes.find(static_cast<uint64_t>(prefix));
  if (layer == prefixes.end())
    return invalidFile("scalar " + std::to_string(prefix) + " is no layer's KV prefix");
  const fbs::KvLayer &l = *layer->second;
  bool attention = k.kind()->string_view() == "attention";
  if (k.kind()->string_view() == "latent_append")
    return latentAccess(k, l);
  const std::pair<const char *, int64_t> sizes[] = {
      {"kv_heads", l.kv_heads()},
      {attention ? "key_size" : "head_size", l.key_size()},
      {"value_size", l.value_size()},
      {"kv_element", static_cast<int64_t>(l.element())},
      {"latent", l.value_size() == 0}};
  for (auto [name, wanted] : sizes)
    if (int64_t have = constant(k, name);
        have != wanted && !(wanted == 0 && std::string_view(name) == "value_size" && have > 0 &&
                            have <= int64_t(l.key_size())))
      return invalidFile("kernel '" + k.symbol()->str() + "' has " + name + " " +
                         std::to_string(have) + ", its KV layer " + std::to_string(wanted));
  if (!attention)
    return Status::ok();
  // Blocks beyond the layer's window may be gone, and a tile of more queries than the kernel's
  // scratch is made for must not come.
  int64_t window = constant(k, "window");
  if (l.window() != 0 && (window <= 0 || window > l.window()))
    return invalidFile("kernel '" + k.symbol()->str() + "' sees a window of " +
                       std::to_string(window) + " tokens, its KV layer keeps " + num(l.window()));
  int64_t tile = constant(k, "query_tile");
  if (tile < plan.limits()->query_tile())
    return invalidFile("kernel '" + k.symbol()->str() + "' takes " + std::to_string(tile) +
                       " queries a tile, the plan's limit is " + num(plan.limits()->query_tile()));
  // Steps are cut once for all attention kernels, where every one of them cuts.
  const int64_t split = constant(k, "key_split");
  for (const fbs::Kernel *other : *plan.kernels())
    if (other->kind()->string_view() == "attention" && constant(*other, "key_split") != split)
      return invalidFile("kernel '" + k.symbol()->str() + "' cuts the context every " +
                         std::to_string(split) + " keys, kernel '" + other->symbol()->str() +
                         "' every " + std::to_string(constant(*other, "key_split")));
  if (split < 0 || split % 64)
    return invalidFile("kernel '" + k.symbol()->str() + "' has a key_split of " +
                       std::to_string(split) + ", which is no multiple of 64");
  return Status::ok();
}

static Status binding(const fbs::Plan &plan, const fbs::Binding &b) {
  const std::pair<const char *, uint64_t> lists[] = {{"weight", plan.weights()->size()},
                                                     {"buffer", plan.buffers()->size()},
                                                     {"output", plan.outputs()->size()}};
  auto kind = static_cast<size_t>(b.kind());
  if (kind > static_cast<size_t>(BindingKind::Output))
    return invalidFile("unknown kind " + num(kind));
  if (b.index() >= lists[kind].second)
    return invalidFile(std::string(lists[kind].first) + " " + num(b.index()) + " of " +
                       num(lists[kind].second));
  return Status::ok();
}

static Status commands(const fbs::Plan &plan) {
  auto prefixes = kvPrefixes(*plan.kv());
  StepDims limits = stepLimits(*plan.limits());
  for (uint32_t i = 0; i < plan.commands()->size(); ++i) {
    const fbs::Command &c = *plan.commands()->Get(i);
    auto fail = [&](const std::string &what) {
      return invalidFile(at("commands", i, c.name()) + what);
    };
    if (!isName(c.name()))
      return fail("has no printable name");
    if (c.kernel() >= plan.kernels()->size())
      return fail("kernel " + num(c.kernel()) + " of " + num(plan.kernels()->size()));
    const fbs::Kernel &k = *plan.kernels()->Get(c.kernel());
    if (!c.bindings() || !c.scalars())
      return fail("has no bindings or scalars");
    if (c.bindings()->size() != k.signature()->size())
      return fail(num(c.bindings()->size()) + " bindings, kernel '" + k.symbol()->str() +
                  "' takes " + num(k.signature()->size()));
    for (uint32_t b = 0; b < c.bindings()->size(); ++b)
      if (Status s = binding(plan, *c.bindings()->Get(b)); !s.isOk())
        return fail("binding '" + k.signature()->Get(b)->str() + "': " + s.message());
    auto tasks = c.tasks() ? evaluateChecked(*c.tasks(), limits) : std::nullopt;
    if (!tasks || *tasks > kMaxTasks)
      return fail("the number of tasks is missing, negative or beyond " + num(kMaxTasks));
    std::string_view kind = k.kind()->string_view();
    if (KvGroups::hasPrefix(kind))
      if (Status s = kvAccess(plan, k, c, prefixes); !s.isOk())
        return fail(s.message());
    if (Status s = kernelNeeds(plan, c); !s.isOk())
      return fail(s.message());
    // Predictions multiply these with rows and context; the sum of all must stay a number.
    if (const fbs::Cost *cost = c.cost()) {
      Checked rows(plan.limits()->max_tokens());
      Checked sum =
          Checked(cost->weight_bytes()) + Checked(cost->operations_per_row()) * rows +
          Checked(cost->bytes_per_row()) * rows +
          Checked(cost->kv_bytes_per_context()) * rows * Checked(plan.model()->max_context());
      if (!sum.get())
        return fail("the cost overflows");
    }
  }
  return Status::ok();
}

static Status modules(const fbs::Plan &plan) {
  UniqueNames levels[2];
  for (uint32_t i = 0; i < plan.modules()->size(); ++i) {
    const fbs::CodeModule &m = *plan.modules()->Get(i);
    auto fail = [&](const std::string &what) {
      return invalidFile(at("modules", i, m.level()) + what);
    };
    if (!isName(m.level()))
      return fail("has no printable level");
    if (m.target() > Target::Cuda)
      return fail("unknown target " + num(static_cast<uint64_t>(m.target())));
    if (!levels[static_cast<size_t>(m.target())].add(m.level()))
      return fail("the level is there twice");
    if (m.segment() >= plan.segments()->size() ||
        plan.segments()->Get(m.segment())->kind() != fbs::SegmentKind::Code)
      return fail("segment " + num(m.segment()) + " is no code segment");
    const uint32_t newest = m.target() == Target::Cpu ? LLMRT_KERNEL_ABI : LLMRT_CUDA_ABI;
    if (m.kernel_abi() > newest)
      return unsupported(at("modules", i, m.level()) + "kernel ABI " + num(m.kernel_abi()) +
                         " is newer than the " + num(newest) +
                         " of this build; update llmrt or compile the model again");
    if (m.kernel_abi() == 0)
      return fail("kernel ABI 0, expected 1 to " + num(newest));
  }
  return Status::ok();
}

Status program(const fbs::Plan &plan) {
  LLMRT_RETURN_IF_ERROR(kernels(plan));
  if (plan.main()) // it has no commands, and no limits for a step
    return modules(plan);
  LLMRT_RETURN_IF_ERROR(commands(plan));
  LLMRT_RETURN_IF_ERROR(modules(plan));
  return cudaKernels(plan);
}

} // namespace llmrt::verify

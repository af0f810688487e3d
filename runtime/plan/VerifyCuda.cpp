// The part of the verifier that looks at CUDA launches: sizes that the hardware can launch, and a
// launch for every kernel on every architecture that the plan names.
#include "runtime/device/cuda/KernelAbi.h"
#include "runtime/plan/ArenaLayout.h"
#include "runtime/plan/CheckedMath.h"
#include "runtime/plan/VerifyParts.h"

#include <map>
#include <set>

namespace llmrt::verify {

/// Of compute capability 8.0 to 12.x.
static constexpr uint32_t kMaxThreads = 1024, kMaxRegisters = 255, kMaxShared = 256 * 1024;
static constexpr uint64_t kMaxGridX = (uint64_t(1) << 31) - 1, kMaxGridYZ = 65535;
static constexpr uint64_t kMaxWorkspace = uint64_t(1) << 40;

static Status dimension(const char *name, const fbs::Affine *size, uint32_t divide, uint64_t times,
                        const StepDims &limits, uint64_t most) {
  auto value = size ? evaluateChecked(*size, limits) : std::nullopt;
  auto blocks =
      value ? (Checked(*value).divideUp(divide ? divide : 1) * Checked(times)).get() : std::nullopt;
  if (!blocks || *blocks > most)
    return invalidFile(std::string("grid ") + name + " is missing, negative or beyond " +
                       num(most) + " blocks");
  return Status::ok();
}

static Status launch(const fbs::Plan &plan, const fbs::CudaKernel &k, const StepDims &limits) {
  if (k.kernel() >= plan.kernels()->size())
    return invalidFile("kernel " + num(k.kernel()) + " of " + num(plan.kernels()->size()));
  if (k.module_() >= plan.modules()->size() ||
      plan.modules()->Get(k.module_())->target() != fbs::Target::Cuda)
    return invalidFile("module " + num(k.module_()) + " is no CUDA module");
  if (!isIdentifier(k.sm()))
    return invalidFile("the architecture isn't an identifier");
  if (!plan.modules()->Get(k.module_())->level()->string_view().starts_with(k.sm()->str() + "."))
    return invalidFile("its module is not for " + k.sm()->str());
  if (!isIdentifier(k.entry()))
    return invalidFile("the entry isn't an identifier");
  if (k.block() == 0 || k.block() > kMaxThreads || k.registers() > kMaxRegisters ||
      k.shared_bytes() > kMaxShared)
    return invalidFile("block, registers or shared memory are beyond what a GPU can launch");
  if (k.when() > fbs::CudaWhen::SingleTiles)
    return invalidFile("unknown 'when' " + num(static_cast<uint64_t>(k.when())));
  uint64_t splits = 1;
  if (k.context_split())
    splits = (uint64_t(plan.model()->max_context()) + k.context_split() - 1) / k.context_split();
  LLMRT_RETURN_IF_ERROR(dimension("x", k.grid_x(), k.divide_x(), 1, limits, kMaxGridX));
  LLMRT_RETURN_IF_ERROR(dimension("y", k.grid_y(), k.divide_y(), 1, limits, kMaxGridYZ));
  LLMRT_RETURN_IF_ERROR(dimension("z", k.grid_z(), k.divide_z(), splits, limits, kMaxGridYZ));
  auto scratch = k.scratch() ? evaluateChecked(*k.scratch(), limits) : std::nullopt;
  if (!scratch || *scratch > kMaxWorkspace)
    return invalidFile("the workspace is missing, negative or beyond " + num(kMaxWorkspace) +
                       " bytes");
  return Status::ok();
}

Status cudaKernels(const fbs::Plan &plan) {
  StepDims limits = stepLimits(*plan.limits());
  std::map<std::string_view, std::set<uint32_t>> whole; // kernels that run with any number of rows
  if (plan.cuda_kernels())
    for (uint32_t i = 0; i < plan.cuda_kernels()->size(); ++i) {
      const fbs::CudaKernel &k = *plan.cuda_kernels()->Get(i);
      if (Status s = launch(plan, k, limits); !s.isOk())
        return invalidFile(at("cuda_kernels", i, k.entry()) + s.message());
      auto &known = whole[k.sm()->string_view()];
      if (k.max_rows() == 0)
        known.insert(k.kernel());
    }
  if (plan.cuda_sampling())
    for (uint32_t i = 0; i < plan.cuda_sampling()->size(); ++i) {
      const fbs::CudaKernel &k = *plan.cuda_sampling()->Get(i);
      Status s = launch(plan, k, limits);
      if (s && (k.kernel() != 0 || k.max_rows() != 0 || k.context_split() != 0 ||
                k.when() != fbs::CudaWhen::Always))
        s = invalidFile("has a kernel, rows, a split or a 'when', which draws don't");
      if (!s)
        return invalidFile(at("cuda_sampling", i, k.entry()) + s.message());
    }
  for (uint32_t i = 0; i < plan.kernels()->size(); ++i) {
    const fbs::Kernel &k = *plan.kernels()->Get(i);
    if (whole.empty() && k.target() == fbs::Target::Cuda)
      return invalidFile(at("kernels", i, k.symbol()) +
                         "is for CUDA, and no cuda_kernels are there");
    for (const auto &[sm, known] : whole)
      if (!known.count(i))
        return invalidFile(at("kernels", i, k.symbol()) + "has no launch on " + std::string(sm));
    if (!whole.empty() && k.signature()->size() > LLMRT_CUDA_MAX_BINDINGS)
      return invalidFile(at("kernels", i, k.symbol()) + num(k.signature()->size()) +
                         " bindings, CUDA kernels take " + num(LLMRT_CUDA_MAX_BINDINGS));
  }
  if (!whole.empty())
    for (uint32_t i = 0; i < plan.commands()->size(); ++i)
      if (plan.commands()->Get(i)->scalars()->size() > LLMRT_CUDA_MAX_SCALARS)
        return invalidFile(at("commands", i, plan.commands()->Get(i)->name()) +
                           "has more scalars than CUDA kernels take, " +
                           num(LLMRT_CUDA_MAX_SCALARS));
  return Status::ok();
}

} // namespace llmrt::verify

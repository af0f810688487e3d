#include "codegen/cuda/CudaCodegen.h"

#include "codegen/cuda/EmitFamilies.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/MapVector.h"

using namespace llmc;
using namespace llmc::cuda;

namespace {

struct Kind {
  llvm::StringLiteral name, family, header, what;
  llvm::LogicalResult (*emit)(KernelWriter &);
  /// The constants that its text honours; another one that isn't 0 is refused.
  llvm::StringLiteral constants;
};

#define LLMC_FORMAT " w_element w_packing w_group w_scale w_has_min w_min"
/// Which family, and so which file, a kind is part of.
constexpr Kind kKinds[] = {
    {"embed", "embed", "embed.cuh", "rows of tables", emitEmbed, "d scale positions" LLMC_FORMAT},
    {"gather_rows", "embed", "embed.cuh", "rows of tables", emitGatherRows, "d"},
    {"norm", "norm", "norm.cuh", "normalisations", emitNorm,
     "d rows norm eps plus_one bias out group"},
    {"quantize", "norm", "norm.cuh", "normalisations", emitQuantize, "k group rows"},
    {"gemm", "gemm", "gemm_tiled.cuh", "matrix products", emitGemm,
     "k n x_int8 group rows bias residual activation glu task_tiles" LLMC_FORMAT},
    {"rope_angles", "rope", "rope.cuh", "positions, keys and values", emitRopeAngles, "half scale"},
    {"rope_gather", "rope", "rope.cuh", "positions, keys and values", emitRopeGather,
     "half positions"},
    {"rope_select", "rope", "rope.cuh", "positions, keys and values", emitRopeSelect, "half"},
    {"rope_append", "rope", "rope.cuh", "positions, keys and values", emitRopeAppend,
     "heads kv_heads head_size value_size rotary interleaved kv_element split q_norm eps plus_one"},
    {"latent_append", "rope", "rope.cuh", "positions, keys and values", emitLatentAppend,
     "heads latent rotary stride interleaved kv_element"},
    {"attention", "attention", "attention.cuh", "attention", emitAttention,
     "heads kv_heads key_size value_size scale softcap window kv_element query_tile alibi sinks "
     "latent head_tasks key_split"},
    {"route", "moe", "moe.cuh", "mixtures of experts", emitRoute,
     "experts chosen scoring normalize correction groups top_groups group_best_two scale rows"},
    {"grouped_gemm", "moe", "moe.cuh", "mixtures of experts", emitGroupedGemm,
     "k n x_int8 group rows bias activation glu alpha limit groups slots chosen x_stride "
     "task_tiles" LLMC_FORMAT},
    {"combine", "moe", "moe.cuh", "mixtures of experts", emitCombine, "d slots residual rows"},
    {"elementwise", "elementwise", "elementwise.cuh", "element-wise operations", emitElementwise,
     "op d rows scale"},
};
#undef LLMC_FORMAT

constexpr llvm::StringLiteral kHopper = "sm_90a";

void begin(CudaUnit &unit, llvm::StringRef family, llvm::StringRef header, llvm::StringRef what,
           const CudaModel &model) {
  unit.family = family.str();
  unit.text = "//===- " + unit.family + ".cu - " + what.str() + " of " + model.name +
              " -===//\n// Written by " + model.compiler +
              ". M: T tokens, or R rows that need logits.\n#include \"" + header.str() + "\"\n";
}

/// Nothing is ignored: a constant that changes what a kernel does must be known here. Attention's
/// key_split and head_tasks are how CPU threads share it; here splits follow the context alone.
llvm::LogicalResult checkConstants(const KernelWriter &writer, const KernelSpec &spec,
                                   const Kind &kind) {
  llvm::SmallVector<llvm::StringRef> known;
  llvm::StringRef(kind.constants).split(known, ' ');
  for (const KernelConstant &constant : spec.constants) {
    const auto *integer = std::get_if<int64_t>(&constant.value);
    if (!llvm::is_contained(known, constant.name) && !(integer && *integer == 0))
      return writer.unsupported("no text for the constant '" + constant.name + "'");
  }
  return llvm::success();
}

} // namespace

llvm::FailureOr<std::vector<CudaUnit>>
llmc::emitCudaUnits(mlir::Location loc, llvm::ArrayRef<KernelSpec> specs, const CudaModel &model) {
  llvm::MapVector<llvm::StringRef, CudaUnit> units;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Kind *kind = llvm::find_if(
        kKinds, [&](const Kind &k) { return llvm::StringRef(k.name) == specs[i].kind; });
    if (kind == std::end(kKinds))
      return mlir::emitError(loc) << "kernel '" << specs[i].symbol << "': the kind '"
                                  << specs[i].kind << "' does not exist for CUDA";
    CudaUnit &unit = units[kind->family];
    if (unit.family.empty())
      begin(unit, kind->family, kind->header, kind->what, model);
    KernelWriter writer(loc, specs[i], i, model, unit);
    if (failed(checkConstants(writer, specs[i], *kind)) || failed(kind->emit(writer)))
      return mlir::failure();
    if (kind->emit != emitAttention || !servesHopperAttention(writer))
      continue;
    for (CudaEntry &entry : unit.entries)
      if (entry.kernel == i)
        entry.replacedOn = kHopper.str();
    CudaUnit &hopper = units["attention_sm90"];
    if (hopper.family.empty()) {
      begin(hopper, "attention_sm90", "attention_sm90.cuh", "attention on Hopper", model);
      hopper.architecture = kHopper.str();
    }
    KernelWriter hopperWriter(loc, specs[i], i, model, hopper);
    if (failed(emitHopperAttention(hopperWriter)))
      return mlir::failure();
  }
  std::vector<CudaUnit> result;
  for (auto &[family, unit] : units)
    result.push_back(std::move(unit));
  return result;
}

// The draw of a token from a row of logits: no kernel of the program, as CPUs draw by themselves.
#include "codegen/cuda/EmitFamilies.h"

using namespace llmc;
using llvm::Twine;

CudaUnit llmc::emitCudaSampling(const CudaModel &model, int64_t vocabulary) {
  // A slice is 16 tokens a thread; a row's scratch is a top, a draw (24 bytes) a slice, a
  // threshold.
  constexpr int64_t slice = 4096;
  constexpr uint32_t threads = 256, selectThreads = 512, bins = 2048;
  const int64_t slices = (vocabulary + slice - 1) / slice;
  CudaUnit unit;
  unit.family = "sampling";
  unit.isSampling = true;
  unit.text = "//===- sampling.cu - draws of tokens of " + model.name + " -===//\n// Written by " +
              model.compiler + ".\n#include \"sampling.cuh\"\n";
  auto line = [&](const Twine &text) { unit.text += text.str() + "\n"; };
  line("\n/// tokens i32[R] of logits f32[R, " + Twine(vocabulary) +
       "], a block a slice of a row.");
  line("struct Draws {");
  line("  static constexpr int kVocabulary = " + Twine(vocabulary) + ", kSlice = " + Twine(slice) +
       ";");
  line("  static constexpr int kThreads = " + Twine(threads) +
       ", kSelectThreads = " + Twine(selectThreads) + ";");
  line("};");
  const int64_t rowBytes = 24 * slices + 8;
  line("\nstatic_assert(sizeof(Sampling<Draws>::Row) == " + Twine(rowBytes) +
       ", \"the scratch of a row\");");
  auto entry = [&](const char *name, uint32_t block, int64_t blocksARow, const char *shared,
                   uint32_t sharedBytes) {
    CudaEntry e;
    e.name = std::string("sample_") + name;
    e.block = block;
    e.sharedBytes = sharedBytes;
    e.x.size = {0, 0, 0, blocksARow, 0};
    e.scratch = {0, 0, 0, rowBytes, 0};
    if (sharedBytes)
      line("\nstatic_assert(sizeof(Sampling<Draws>::" + Twine(shared) +
           ") == " + Twine(sharedBytes) + ", \"the launch gives this much\");");
    else
      line("");
    line("extern \"C\" __global__ void __launch_bounds__(" + Twine(block) + ", 1)");
    line("    " + e.name + "(const LlmrtCudaStep *step, LlmrtCudaBindings b) {");
    line("  Sampling<Draws>::" + Twine(name) + "(step, b);");
    line("}");
    unit.entries.push_back(std::move(e));
  };
  entry("top", threads, slices, "TopShared", threads / 32 * 8);
  entry("select", selectThreads, 1, "SelectShared", bins * 8 + selectThreads / 32 * 8 + 24);
  entry("draw", threads, slices, "DrawShared", threads / 32 * 16);
  entry("pick", 32, 1, "", 0);
  return unit;
}

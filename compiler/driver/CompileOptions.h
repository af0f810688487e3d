//===- CompileOptions.h - what a compilation is asked for ------------------------------===//
#ifndef LLMC_COMPILER_DRIVER_COMPILEOPTIONS_H
#define LLMC_COMPILER_DRIVER_COMPILEOPTIONS_H

#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace llmc {

/// Runs a finished plan: fills \p tokens with what follows \p prompt and \p fingerprint with the
/// hash of the prompt's logits (runtime/engine/SelfTest.h). The compiler holds no engine; whoever
/// calls it lends one.
using SelfTestRunner =
    std::function<llmrt::Status(const std::string &plan, std::span<const int32_t> prompt,
                                std::span<int32_t> tokens, uint64_t &fingerprint)>;

struct CompileOptions {
  std::string model;                 ///< an .onnx file, a .gguf file or a Hugging Face folder
  std::string output;                ///< the plan; empty: beside nothing, the caller must set it
  int optLevel = 3;                  ///< 0..3, see Pipeline.h
  std::string quantization = "none"; ///< none, int8, int4
  std::string head = "auto";         ///< under int4: int4 (auto), int8
  std::string kvCacheDtype = "auto"; ///< auto (f16), f32, f16, bf16, int8
  std::string activations = "auto";  ///< auto (int8 where weights are integers), f32, int8
  int64_t maxModelLen = 0;           ///< 0: what the model says
  int64_t maxBatchedTokens = 512;    ///< tokens of the largest step
  int64_t maxSequences = 256;        ///< sequences of the largest step
  std::string tokenizer;             ///< a folder or tokenizer.json; empty: beside the model
  std::string dumpDir;               ///< writes the IR after each phase there; empty: no
  std::string emitPhase;             ///< stop after this phase and write its IR; empty: a plan
  std::string emitPath;              ///< where --emit writes; empty: standard output
  std::vector<std::string> disabledPasses;
  std::vector<std::string> targets; ///< values of --target (compiler/target/Target.h); none: cpu
  /// Names of levels, or of architectures for all of theirs; empty: all of this machine's
  /// architecture.
  std::vector<std::string> cpuLevels;
  unsigned jobs = 0; ///< 0: as many threads as the process may use
  bool quiet = false;
  SelfTestRunner selfTest; ///< none: a plan without a self-test
};

/// The options that decide the plan's bytes, normalised ("-O3", "--int4", ...): provenance, and the
/// cache's key.
std::vector<std::string> optionsKey(const CompileOptions &options);

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_COMPILEOPTIONS_H

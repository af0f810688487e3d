//===- OptionsKey.cpp - the options that decide a plan's bytes ------------------------------===//

#include "compiler/driver/CompileOptions.h"
#include "compiler/target/Target.h"

using namespace llmc;

std::vector<std::string> llmc::optionsKey(const CompileOptions &options) {
  std::vector<std::string> key = {"-O" + std::to_string(options.optLevel)};
  if (options.quantization != "none")
    key.push_back("--" + options.quantization);
  if (options.head == "int8")
    key.push_back("--head=int8");
  key.push_back("--kv-cache-dtype=" +
                (options.kvCacheDtype == "auto" ? std::string("f16") : options.kvCacheDtype));
  if (options.activations == "f32")
    key.push_back("--activations=f32");
  if (options.maxModelLen)
    key.push_back("--max-model-len=" + std::to_string(options.maxModelLen));
  if (options.maxBatchedTokens != CompileOptions().maxBatchedTokens)
    key.push_back("--max-num-batched-tokens=" + std::to_string(options.maxBatchedTokens));
  if (options.maxSequences != CompileOptions().maxSequences)
    key.push_back("--max-num-seqs=" + std::to_string(options.maxSequences));
  if (llmrt::Result<TargetSet> targets = parseTargets(options.targets);
      targets && !targets->cuda.empty())
    key.push_back("--target=" + formatTargets(*targets));
  for (const std::string &pass : options.disabledPasses)
    key.push_back("--disable-pass=" + pass);
  for (const std::string &level : options.cpuLevels)
    key.push_back("--cpu-level=" + level);
  return key;
}

//===- TinyPlan.h - a plan with real machine code, for the runtime's tests --===//
#ifndef LLMRT_TEST_UNIT_ENGINE_TINYPLAN_H
#define LLMRT_TEST_UNIT_ENGINE_TINYPLAN_H

#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llmrt::test {

inline constexpr int32_t tinyVocabulary = 97;

/// The least level of the architecture that the tests are built for, which their code is for.
#if defined(__aarch64__)
inline constexpr const char *leastLevel = "aarch64-dotprod", *betterLevel = "aarch64-i8mm";
#else
inline constexpr const char *leastLevel = "x86-64-v3", *betterLevel = "x86-64-v4";
#endif

struct TinyPlanOptions {
  int salt = 0;                    ///< 0 or 5: which code module
  std::map<int32_t, int32_t> next; ///< token -> the token that follows it, where not the hash
  std::string level = leastLevel;
  uint32_t kernelAbi = LLMRT_KERNEL_ABI;
  bool tokenizer = false; ///< ids 0-25: a-z; the rest as tinyToken() spells them
  /// Of a plan with a tokenizer.
  std::string chatTemplate = "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}"
                             "{% if add_generation_prompt %}<end>{% endif %}";
  std::vector<int32_t> stopIds;
  uint32_t maxContext = 512;
  /// The self-test's record, none without a prompt.
  std::vector<int32_t> testPrompt, testTokens;
  uint64_t testFingerprint = 0;
};

/// The bytes of a plan file: greedy tokens are those of hashScript (ScriptedExecutor.h), plus salt.
std::vector<uint8_t> tinyPlanImage(const TinyPlanOptions &options = {});
std::shared_ptr<const Plan> tinyPlan(const TinyPlanOptions &options = {});
/// The same as a file of mode 0644, removed with the object.
class TinyPlanFile {
public:
  explicit TinyPlanFile(const TinyPlanOptions &options = {});
  ~TinyPlanFile();
  const std::string &path() const { return path_; }

private:
  std::string path_;
};

} // namespace llmrt::test

#endif // LLMRT_TEST_UNIT_ENGINE_TINYPLAN_H

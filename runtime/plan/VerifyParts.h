//===- VerifyParts.h - the parts of the plan verifier ------------------------===//
//
// Private to runtime/plan. The parts run in the order in which they are declared here, and each
// may rely on those before it.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_VERIFYPARTS_H
#define LLMRT_PLAN_VERIFYPARTS_H

#include "runtime/plan/plan_generated.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

namespace llmrt::verify {

/// What the runtime is built for; beyond is a damaged file, not a large model.
inline constexpr uint64_t kMaxStepTokens = uint64_t(1) << 24; ///< T, S, R
inline constexpr uint64_t kMaxQueryTile = 4096;
inline constexpr uint64_t kMaxDimension = uint64_t(1) << 28; ///< vocabulary, context, widths
inline constexpr uint64_t kMaxHeads = 1 << 16;
inline constexpr uint64_t kMaxArenaBytes = uint64_t(1) << 46; ///< all slots together, at the limits
inline constexpr uint64_t kMaxTasks = uint64_t(1) << 40;      ///< of one command, at the limits
inline constexpr uint64_t kMaxScratchBytes = uint64_t(1) << 30; ///< a thread
inline constexpr uint64_t kMaxBlockTokens = 1 << 16;
inline constexpr size_t kMaxNameBytes = 1024;
inline constexpr size_t kMaxTextBytes = size_t(4) << 20; ///< a chat template

/// Format, and that no table, vector or string that the runtime reads is missing at the top level.
Status top(const fbs::Plan &plan);
/// Provenance, model, limits, KV cache.
Status model(const fbs::Plan &plan);
/// Segments (against \p fileSize and \p headSize), weights, arena slots, buffers, outputs.
Status storage(const fbs::Plan &plan, uint64_t headSize, uint64_t fileSize);
/// Kernels, commands, modules.
Status program(const fbs::Plan &plan);
/// How CUDA launches the kernels.
Status cudaKernels(const fbs::Plan &plan);
/// The entry `main`, where a plan has it instead of commands.
Status graph(const fbs::Plan &plan);
/// Text defaults and the self-test.
Status text(const fbs::Plan &plan);

/// Does \p command give its kernel the memory that a kernel of that family touches, and all of its
/// tasks? Families that aren't known pass. Indices must have been checked.
Status kernelNeeds(const fbs::Plan &plan, const fbs::Command &command);
/// Is \p have at least \p need for every step of up to \p maxTokens tokens?
bool fits(const fbs::Affine &need, const fbs::Affine &have, int64_t maxTokens);

/// A name for people: 1 to kMaxNameBytes bytes of UTF-8 without control characters.
bool isName(const flatbuffers::String *s);
/// Free text, which may be empty and may hold tabs and line breaks.
bool isText(const flatbuffers::String *s, size_t maxBytes = kMaxTextBytes);
/// A C identifier, as a symbol is.
bool isIdentifier(const flatbuffers::String *s);
/// "weights[3] 'embed': "; a name that isn't one is left out.
std::string at(const char *list, uint32_t index, const flatbuffers::String *name = nullptr);

inline std::string num(uint64_t v) { return std::to_string(v); }

/// The names seen so far in one list.
class UniqueNames {
public:
  bool add(const flatbuffers::String *s) { return seen_.insert(s->string_view()).second; }

private:
  std::unordered_set<std::string_view> seen_;
};

} // namespace llmrt::verify

#endif // LLMRT_PLAN_VERIFYPARTS_H

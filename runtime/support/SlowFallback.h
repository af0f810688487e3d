//===- SlowFallback.h - work that goes on, but not the fast way ------------===//
#ifndef LLMRT_SUPPORT_SLOWFALLBACK_H
#define LLMRT_SUPPORT_SLOWFALLBACK_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace llmrt {

/// A row of SlowFallbacks.inc.
enum class SlowFallback {
#define LLMRT_SLOW_FALLBACK(Id, Name, What) Id,
#include "runtime/support/SlowFallbacks.inc"
};

inline constexpr std::string_view slowFallbackNames[] = {
#define LLMRT_SLOW_FALLBACK(Id, Name, What) Name,
#include "runtime/support/SlowFallbacks.inc"
};
inline constexpr size_t slowFallbackKinds = std::size(slowFallbackNames);

/// How often each kind came to pass.
struct SlowFallbackCounts : std::array<int64_t, slowFallbackKinds> {
  int64_t &of(SlowFallback kind) { return (*this)[static_cast<size_t>(kind)]; }
};

} // namespace llmrt

#endif // LLMRT_SUPPORT_SLOWFALLBACK_H

#include "runtime/plan/KvGroups.h"

#include "runtime/plan/KvLayout.h"

#include <algorithm>

namespace llmrt {

KvGroups::KvGroups(const fbs::Kv &kv, int64_t maxContext) {
  auto windowOf = [&](const fbs::KvLayer *layer) -> int64_t {
    return layer->window() >= maxContext ? 0 : layer->window();
  };
  auto reach = [](int64_t window) { return window == 0 ? INT64_MAX : window; };
  std::vector<int64_t> windows;
  for (const fbs::KvLayer *layer : *kv.layers())
    windows.push_back(windowOf(layer));
  std::sort(windows.begin(), windows.end(),
            [&](int64_t a, int64_t b) { return reach(a) > reach(b); });
  windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
  windows.resize(std::clamp<size_t>(windows.size(), 1, maxKvGroups));
  for (int64_t window : windows)
    groups_.push_back({window, 0});
  int64_t prefix = 0;
  for (const fbs::KvLayer *layer : *kv.layers()) {
    uint32_t group = 0;
    while (group + 1 < groups_.size() && reach(windowOf(layer)) < reach(groups_[group].window))
      ++group;
    uint64_t bytes = kvBytesPerToken(*layer);
    places_.emplace(prefix, Place{group, static_cast<int64_t>(groups_[group].bytesPerToken)});
    groups_[group].bytesPerToken += bytes;
    prefix += static_cast<int64_t>(bytes);
  }
}

} // namespace llmrt

//===- KvGroups.h - layers that look equally far back ------------------------===//
//
// A sequence needs the keys and values of a layer as far back as the layer's window reaches. Layers
// of one window are a group, whose blocks come and go together; each group has a block table and a
// pool of its own, and blocks of as many tokens as every other's.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_KVGROUPS_H
#define LLMRT_PLAN_KVGROUPS_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llmrt {

struct KvGroup {
  int64_t window = 0;         ///< tokens, the current one counted; 0: all
  uint64_t bytesPerToken = 0; ///< of all its layers
  bool operator==(const KvGroup &) const = default;
};

/// Groups of a model at most. Of more windows the narrowest ones share a group, with the widest of
/// theirs.
inline constexpr size_t maxKvGroups = 4;

class KvGroups {
public:
  /// A window that spans \p maxContext is none.
  KvGroups(const fbs::Kv &kv, int64_t maxContext);

  /// The widest first; one at least.
  const std::vector<KvGroup> &groups() const { return groups_; }

  struct Place {
    uint32_t group;
    int64_t prefix; ///< bytes a token of the layers of its group before it
  };
  /// Where the layer is whose bytes begin at \p prefix in a block of all layers (the scalar of a
  /// command that reads or writes it).
  Place place(int64_t prefix) const { return places_.at(prefix); }
  /// Whether commands of a kernel of this kind have that scalar.
  static bool hasPrefix(std::string_view kernelKind) {
    return kernelKind == "attention" || kernelKind == "rope_append" ||
           kernelKind == "latent_append";
  }

private:
  std::vector<KvGroup> groups_;
  std::unordered_map<int64_t, Place> places_;
};

} // namespace llmrt

#endif // LLMRT_PLAN_KVGROUPS_H

//===- KvRows.h - a token's keys and values in a block ------------------------===//
#ifndef LLMRT_DEVICE_CPU_KVROWS_H
#define LLMRT_DEVICE_CPU_KVROWS_H

#include "runtime/plan/KvGroups.h"

namespace llmrt {

/// Moves what one token has in the blocks of a group of layers (KernelAbi.h says where it lies).
class KvRows {
public:
  /// \p groups null: one group of all layers.
  KvRows(const fbs::Kv &kv, const KvGroups *groups);

  /// From token \p fromPlace of block \p from to token \p toPlace of block \p to.
  void move(uint32_t group, int64_t blockTokens, const uint8_t *from, int64_t fromPlace,
            uint8_t *to, int64_t toPlace) const;

private:
  struct Layer {
    uint32_t group;
    int64_t prefix; ///< bytes a token of the layers before it
    int64_t kvHeads, keySize, valueSize, elementBytes;
    bool hasScales;
  };
  std::vector<Layer> layers_;
};

} // namespace llmrt

#endif // LLMRT_DEVICE_CPU_KVROWS_H

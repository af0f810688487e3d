//===- KvLayout.h - what a token takes in the KV cache -----------------------===//
#ifndef LLMRT_PLAN_KVLAYOUT_H
#define LLMRT_PLAN_KVLAYOUT_H

#include "runtime/plan/WeightFormat.h"
#include "runtime/plan/plan_generated.h"

namespace llmrt {

/// Elements of one token's keys and values in \p layer.
inline uint64_t kvElementsPerToken(const fbs::KvLayer &layer) {
  return uint64_t(layer.kv_heads()) * (uint64_t(layer.key_size()) + layer.value_size());
}

/// Bytes of one token in \p layer: the elements, and for int8 an f32 scale for each head's key and
/// each head's value (KernelAbi.h). Sizes are within the verifier's limits, so nothing overflows.
inline uint64_t kvBytesPerToken(const fbs::KvLayer &layer) {
  const uint64_t scales = layer.element() == fbs::ElementType::I8 ? 8 * layer.kv_heads() : 0;
  return kvElementsPerToken(layer) * (elementBits(layer.element()) / 8) + scales;
}

} // namespace llmrt

#endif // LLMRT_PLAN_KVLAYOUT_H

#include "runtime/device/cpu/KvRows.h"

#include "runtime/device/cpu/KernelAbi.h"
#include "runtime/plan/KvLayout.h"

#include <cstring>

namespace llmrt {

KvRows::KvRows(const fbs::Kv &kv, const KvGroups *groups) {
  int64_t prefix = 0;
  for (const fbs::KvLayer *layer : *kv.layers()) {
    const KvGroups::Place place = groups ? groups->place(prefix) : KvGroups::Place{0, prefix};
    layers_.push_back({place.group, place.prefix, layer->kv_heads(), layer->key_size(),
                       layer->value_size(), elementBits(layer->element()) / 8,
                       layer->element() == fbs::ElementType::I8});
    prefix += static_cast<int64_t>(kvBytesPerToken(*layer));
  }
}

namespace {

constexpr int64_t run = LLMRT_KV_RUN;

/// Where one head of a token lies in runs of 16 tokens.
struct Place {
  int64_t size, elementBytes;
  bool hasScale;

  int64_t runBytes() const { return run * (size * elementBytes + (hasScale ? 4 : 0)); }
  void moveScale(const uint8_t *from, int64_t fromPlace, uint8_t *to, int64_t toPlace) const {
    if (hasScale)
      std::memcpy(to + run * size + 4 * toPlace, from + run * size + 4 * fromPlace, 4);
  }
  /// Keys: [size][16].
  void moveKey(const uint8_t *from, int64_t fromPlace, uint8_t *to, int64_t toPlace) const {
    for (int64_t i = 0; i < size; ++i)
      std::memcpy(to + (i * run + toPlace) * elementBytes,
                  from + (i * run + fromPlace) * elementBytes, size_t(elementBytes));
    moveScale(from, fromPlace, to, toPlace);
  }
  /// Values: [16][size].
  void moveValue(const uint8_t *from, int64_t fromPlace, uint8_t *to, int64_t toPlace) const {
    const int64_t bytes = size * elementBytes;
    std::memmove(to + toPlace * bytes, from + fromPlace * bytes, size_t(bytes));
    moveScale(from, fromPlace, to, toPlace);
  }
};

} // namespace

void KvRows::move(uint32_t group, int64_t blockTokens, const uint8_t *from, int64_t fromPlace,
                  uint8_t *to, int64_t toPlace) const {
  const int64_t runs = blockTokens / run;
  for (const Layer &layer : layers_) {
    if (layer.group != group)
      continue;
    const Place key{layer.keySize, layer.elementBytes, layer.hasScales};
    const Place value{layer.valueSize, layer.elementBytes, layer.hasScales};
    const int64_t headBytes = runs * (key.runBytes() + value.runBytes());
    for (int64_t head = 0; head < layer.kvHeads; ++head) {
      const int64_t keys = blockTokens * layer.prefix + head * headBytes;
      const int64_t values = keys + runs * key.runBytes();
      key.moveKey(from + keys + fromPlace / run * key.runBytes(), fromPlace % run,
                  to + keys + toPlace / run * key.runBytes(), toPlace % run);
      value.moveValue(from + values + fromPlace / run * value.runBytes(), fromPlace % run,
                      to + values + toPlace / run * value.runBytes(), toPlace % run);
    }
  }
}

} // namespace llmrt

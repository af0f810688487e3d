//===- Latent.cpp - the cache of multi-head latent attention --------------------===//
#include "codegen/cpu/kernels/Kernel.h"
#include "codegen/cpu/kernels/Rotate.h"

using namespace llmc::kernel;

/// Keys [latent, rotated key] into the cache's one head, and queries [absorbed, rotated query] for
/// all heads. `query` rows have `stride` values a head, the last `rotary` of which are rotated.
LLMC_KERNEL(latent_append, int64_t heads, int64_t latent, int64_t rotary, int64_t stride,
            int64_t interleaved, int64_t kvElement) {
  const float *absorbed = binding<float>(bindings, 0), *query = binding<float>(bindings, 1);
  const float *rows = binding<float>(bindings, 2), *keys = binding<float>(bindings, 3);
  const float *angles = binding<float>(bindings, 4);
  float *out = binding<float>(bindings, 5);
  float *rotated = static_cast<float *>(scratch);
  const int64_t size = latent + rotary, bytes = elementBytes(kvElement);
  for (int64_t t = taskBegin; t < taskEnd; ++t) {
    const float *angle = angles + t * rotary;
    for (int64_t h = 0; h < heads; ++h) {
      float *to = out + (t * heads + h) * size;
      const float *from = absorbed + (t * heads + h) * latent;
      for (int64_t i = 0; i < latent; i += kLanes)
        storePart(to + i, loadPart(from + i, latent - i), latent - i);
      rotate(query + (t * heads + h) * stride + stride - rotary, to + latent, angle, rotary,
             rotary / 2, interleaved);
    }
    const int64_t slot = step->slots[t];
    const int64_t block = slot / step->blockTokens, offset = slot % step->blockTokens;
    // Values are read out of the keys: none are stored.
    const KvBlock kv = kvBlock(step, block, scalars[0], 0, size, 0, kvElement);
    uint8_t *run = kv.keys + (offset / 16 * size * 16 + offset % 16) * bytes;
    for (int64_t i = 0; i < latent; ++i)
      storeElement(run + i * 16 * bytes, kvElement, rows[t * latent + i]);
    rotate(keys + t * rotary, rotated, angle, rotary, rotary / 2, interleaved);
    for (int64_t i = 0; i < rotary; ++i)
      storeElement(run + (latent + i) * 16 * bytes, kvElement, rotated[i]);
  }
}

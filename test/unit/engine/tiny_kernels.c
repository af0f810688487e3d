/* A model of four kernels whose logits follow from every token of the context: the KV cache keeps
   token ids, read back through the block table. SALT makes modules that differ. */
#include "runtime/device/cpu/KernelAbi.h"

#ifndef SALT
#define SALT 0
#endif
#define VISIBLE __attribute__((visibility("default")))
enum { vocabulary = 97 };

static int32_t *cell(const LlmrtStep *step, int64_t slot) {
  /* the first of four elements of a key, in runs of 16 keys */
  int64_t place = slot % step->blockTokens;
  return (int32_t *)(step->kv + slot / step->blockTokens * step->blockBytes + place / 16 * 256 +
                     place % 16 * 4);
}

/* [T]: a token's id + 1 goes where its key would. */
VISIBLE void remember(const LlmrtStep *step, void *const *b, const int64_t *scalars, int64_t begin,
                      int64_t end, void *scratch) {
  for (int64_t t = begin; t < end; ++t)
    *cell(step, step->slots[t] + scalars[0]) = step->tokens[t] + 1;
}

/* [T] -> h[T]: the hash of the context up to each token; -1 if something is not as promised. */
VISIBLE void reflect(const LlmrtStep *step, void *const *b, const int64_t *scalars, int64_t begin,
                     int64_t end, void *scratch) {
  int32_t *h = b[0];
  int32_t *context = scratch; /* as many as the scratch holds at a time */
  for (int64_t t = begin; t < end; ++t) {
    int64_t s = 0;
    while (step->queryStart[s + 1] <= t)
      ++s;
    int64_t length = step->positions[t] + 1;
    const int32_t *ancestors = step->ancestors ? step->ancestors + t * step->ancestorWidth : 0;
    int64_t count = 0;
    while (ancestors && count < step->ancestorWidth && ancestors[count] >= 0)
      ++count;
    uint32_t hash = 2166136261u;
    for (int64_t done = 0; done < length; done += 16) {
      int64_t n = length - done < 16 ? length - done : 16;
      for (int64_t i = 0; i < n; ++i) {
        int64_t p = done + i;
        int64_t block = step->blockTable[s * step->maxBlocks + p / step->blockTokens];
        int64_t slot = block * step->blockTokens + p % step->blockTokens;
        if (count && p >= length - 1 - count)
          slot = step->slots[p == length - 1 ? t : ancestors[p - (length - 1 - count)]];
        context[i] = *cell(step, slot);
      }
      for (int64_t i = 0; i < n; ++i)
        hash = (hash ^ (uint32_t)context[i]) * 16777619u;
    }
    h[t] = (int32_t)((hash >> 7) % vocabulary);
    if (((uintptr_t)scratch & 63) != 0 || ((uintptr_t)h & 63) != 0)
      h[t] = -1;
  }
}

/* h[T] -> rows[R]; the weight `next` [vocabulary] dictates what follows a token, where not -1. */
VISIBLE void select(const LlmrtStep *step, void *const *b, const int64_t *scalars, int64_t begin,
                    int64_t end, void *scratch) {
  const int32_t *h = b[0];
  const float *next = b[1];
  int32_t *rows = b[2];
  for (int64_t r = begin; r < end; ++r) {
    int32_t t = step->logitRows[r];
    float dictated = next[step->tokens[t]];
    rows[r] = dictated >= 0 ? (int32_t)dictated : (h[t] + SALT) % vocabulary;
  }
}

/* rows[R] -> logits[R, vocabulary]: 10 for the chosen token, small and all different elsewhere. */
VISIBLE void score(const LlmrtStep *step, void *const *b, const int64_t *scalars, int64_t begin,
                   int64_t end, void *scratch) {
  const int32_t *rows = b[0];
  float *logits = b[1];
  for (int64_t r = begin; r < end; ++r)
    for (int v = 0; v < vocabulary; ++v)
      logits[r * vocabulary + v] = v == rows[r] ? 10.0f : -(float)v / 128;
}

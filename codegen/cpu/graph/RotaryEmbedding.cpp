//===- RotaryEmbedding.cpp - pairs of a head turned by their position -------===//
#include "codegen/cpu/graph/Heads.h"

using namespace llmc::graphcode;

/// x, cos, sin, position ids or null; attrs: interleaved, heads, rotary size (0: all)
LLMC_GRAPH_KERNEL(rotary_embedding) {
  Value *x = in[0], *cosines = in[1], *sines = in[2], *places = in[3];
  Heads h;
  GRAPH_TRY(headsOf(g, x, attrs[1], h));
  int64_t rotated = attrs[2] > 0 ? attrs[2] : h.size, half = rotated / 2;
  int64_t tableRank = places ? 2 : 3;
  if (cosines->rank != tableRank || cosines->dims[tableRank - 1] != half || rotated > h.size ||
      sines->count != cosines->count)
    return fail(g, LLMRT_GRAPH_SHAPE, cosines->rank ? cosines->dims[cosines->rank - 1] : 0, half);
  int64_t rows = places ? cosines->dims[0] : cosines->dims[1];
  if (!places && (rows < h.length || (cosines->dims[0] != h.batch && cosines->dims[0] != 1)))
    return fail(g, LLMRT_GRAPH_SHAPE, rows, h.length);
  if (places && places->count != h.batch * h.length)
    return fail(g, LLMRT_GRAPH_SHAPE, places->count, h.batch * h.length);
  GRAPH_TRY(newTensor(g, type, x->rank, x->dims, out[0]));
  for (int64_t b = 0; b < h.batch; ++b)
    for (int64_t s = 0; s < h.length; ++s) {
      int64_t row = (cosines->dims[0] == 1 ? 0 : b) * rows + s;
      if (places)
        GRAPH_TRY(normalIndex(g, indexAt(places, b * h.length + s), rows, row));
      for (int64_t n = 0; n < h.heads; ++n) {
        int64_t base = b * h.strides[0] + n * h.strides[1] + s * h.strides[2];
        for (int64_t i = 0; i < half; ++i) {
          int64_t first = base + (attrs[0] ? 2 * i : i),
                  second = attrs[0] ? first + 1 : first + half;
          double c = realAt(cosines, row * half + i), d = realAt(sines, row * half + i);
          double p = realAt(x, first), q = realAt(x, second);
          storeReal(out[0], first, c * p - d * q);
          storeReal(out[0], second, d * p + c * q);
        }
        for (int64_t i = 2 * half; i < h.size; ++i)
          storeReal(out[0], base + i, realAt(x, base + i));
      }
    }
  return 0;
}

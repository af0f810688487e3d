#include "test/unit/codegen/RandomWeight.h"

using namespace llmc;
using namespace llmc::test;

Weight llmc::test::makeWeight(std::mt19937 &rng, WeightFormat f, int64_t n, int64_t k) {
  Weight w{f, n, k, Buffer(*packedBytes(f, n, k)), std::vector<float>(n * k), {}};
  const uint64_t tileBytes = *packedTileBytes(f, k);
  if (f.packing == Packing::N16) {
    std::vector<float> source = randomFloats(rng, n * k);
    for (uint64_t t = 0; t < tilesOf(n); ++t) {
      std::vector<const float *> rows;
      for (int64_t r = 16 * t; r < std::min<int64_t>(n, 16 * t + 16); ++r)
        rows.push_back(&source[r * k]);
      packTile(f, k, std::span<const float *const>(rows), w.packed.data() + t * tileBytes);
    }
  } else {
    const int64_t groups = (k + f.group - 1) / f.group;
    std::vector<uint8_t> q(n * k);
    std::vector<float> scales = randomFloats(rng, n * groups, -0.02f, 0.03f);
    std::vector<float> mins = randomFloats(rng, n * groups, -0.2f, 0.1f);
    for (std::vector<float> *v : {&scales, &mins})
      for (float &s : *v)
        s = static_cast<float>(static_cast<_Float16>(s));
    if (f.element == Element::E2M1)
      for (float &s :
           scales) // none that kernels take for a zero: the reference's sums would differ
        s = halfPowerOfTwo(100 + rng() % 40);
    for (uint8_t &v : q)
      v = f.element == Element::E2M1 ? static_cast<uint8_t>(doubledE2m1(rng() & 15))
          : f.element == Element::I4 ? rng() & 15
          : rng() % 5 == 0           ? 0x80
                                     : rng() & 255;
    for (uint64_t t = 0; t < tilesOf(n); ++t) {
      std::vector<QuantizedRow> rows;
      for (int64_t r = 16 * t; r < std::min<int64_t>(n, 16 * t + 16); ++r)
        rows.push_back({&q[r * k], &scales[r * groups], f.hasMin ? &mins[r * groups] : nullptr});
      packTile(f, k, std::span<const QuantizedRow>(rows), w.packed.data() + t * tileBytes);
    }
    w.quantized = {n, k, f.group, {}, scales, f.hasMin ? mins : std::vector<float>()};
    for (uint8_t v : q)
      w.quantized.q.push_back(f.element != Element::I4 ? int8_t(v) : f.hasMin ? v : v - 8);
  }
  for (int64_t r = 0; r < n; ++r)
    unpackRow(f, k, w.packed.data() + r / 16 * tileBytes, r % 16, &w.values[r * k]);
  return w;
}

Buffer llmc::test::quantizedBuffer(const reference::QuantizedRows &x) {
  const int64_t padded = x.groups() * x.group, bytes = LLMRT_Q8_ROW_BYTES(padded, x.group);
  Buffer b(x.rows * bytes);
  for (int64_t r = 0; r < x.rows; ++r) {
    uint8_t *row = b.data() + r * bytes;
    std::memset(row, 0, padded);
    std::memcpy(row, &x.q[r * x.columns], x.columns);
    std::memcpy(row + padded, &x.scales[r * x.groups()], 4 * x.groups());
    std::memcpy(row + padded + 4 * x.groups(), &x.sums[r * x.groups()], 4 * x.groups());
  }
  return b;
}

#include "test/emulator/kernels/AttentionSteps.h"

#include "test/emulator/TensorCopies.h"

#include <numeric>

using namespace llmc;
using namespace llmc::test;

namespace {

int64_t bytesOf(int64_t element) { return element == 0 ? 4 : element == 3 ? 1 : 2; }

const CudaModel model = {"test", "test", 512, attentionQueryTile, attentionContext, {}};

void putHead(std::vector<uint8_t> &pool, size_t at, size_t scaleAt, int64_t element,
             std::span<const float> x) {
  const float scale = Sequences::scaleOf(x);
  for (size_t d = 0; d < x.size(); ++d) {
    uint8_t *p = &pool[at + d * size_t(bytesOf(element))];
    if (element == 0) {
      std::memcpy(p, &x[d], 4);
    } else if (element == 3) {
      *p = uint8_t(int8_t(std::nearbyint(x[d] / scale)));
    } else {
      const uint16_t bits = element == 1 ? std::bit_cast<uint16_t>(static_cast<_Float16>(x[d]))
                                         : uint16_t(std::bit_cast<uint32_t>(x[d]) >> 16);
      std::memcpy(p, &bits, 2);
    }
  }
  if (element == 3)
    std::memcpy(&pool[scaleAt], &scale, 4);
}

/// As the runtime encodes them: runtime/device/cuda/KvMaps.cpp.
LlmrtKvMaps mapsOf(const AttentionCase &c, const LlmrtCudaStep &step, int64_t prefix,
                   int64_t blocks) {
  LlmrtKvMaps maps{};
  const uint64_t tokens = uint64_t(step.blockTokens), row = uint64_t(c.keySize) * 2;
  auto encode = [&](LlmrtTensorMap &map, const uint8_t *base, uint32_t boxTokens) {
    const uint64_t sizes[] = {uint64_t(c.keySize), tokens, uint64_t(c.kvHeads), uint64_t(blocks)};
    const uint64_t strides[] = {row, 2 * row * tokens, uint64_t(step.blockBytes)};
    const uint32_t box[] = {64, boxTokens, 1, 1};
    ASSERT_EQ(simt::encodeTensorMap(&map, {base, 4, sizes, strides, box}), "");
  };
  const uint8_t *keys = step.kv + prefix * step.blockTokens, *values = keys + row * tokens;
  encode(maps.keyPage, keys, 16), encode(maps.keyToken, keys, 1);
  encode(maps.valuePage, values, 16), encode(maps.valueToken, values, 1);
  return maps;
}

} // namespace

KernelSpec test::attentionSpec(const AttentionCase &c) {
  return {c.name,
          "attention",
          {{"heads", c.heads},
           {"kv_heads", c.kvHeads},
           {"key_size", c.keySize},
           {"value_size", c.valueSize},
           {"scale", 1 / std::sqrt(double(c.keySize))},
           {"softcap", c.softcap},
           {"window", c.window},
           {"kv_element", c.element},
           {"query_tile", attentionQueryTile},
           {"alibi", int64_t(c.alibi)},
           {"sinks", int64_t(c.sinks)},
           {"latent", int64_t(c.latent)}}};
}

Outputs test::attend(const Sequences &s, const std::vector<Span> &spans, int64_t blockTokens,
                     bool isTree) {
  const AttentionCase &c = s.c;
  const int64_t e = bytesOf(c.element), prefix = 32;
  const int64_t keyBytes = c.keySize * e, valueBytes = c.latent ? 0 : c.valueSize * e;
  const int64_t tokenBytes = keyBytes + valueBytes + (c.element == 3 ? 8 : 0);
  const int64_t blockBytes = (prefix + c.kvHeads * tokenBytes) * blockTokens;
  int64_t maxBlocks = 1, blocks = 1;
  for (int64_t length : s.lengths)
    maxBlocks = std::max(maxBlocks, (length + blockTokens - 1) / blockTokens);
  for (const Span &span : spans)
    blocks += (span.end + blockTokens - 1) / blockTokens;
  std::vector<int32_t> free(static_cast<size_t>(blocks)); // a scattered order
  std::iota(free.begin(), free.end(), 0);
  std::shuffle(free.begin(), free.end(), std::mt19937(4));
  DeviceArray kv(size_t(blocks * blockBytes));
  std::vector<uint8_t> pool(size_t(blocks * blockBytes));
  std::vector<int64_t> slots; // of the first token of each span
  std::vector<int32_t> table, positions, starts = {0}, context, tileSeq, tileStart, tileCount;
  std::vector<float> q;
  StepSizes sizes;
  sizes.longTiles = sizes.singleTiles = false;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span &span = spans[i];
    for (int64_t b = 0; b < maxBlocks; ++b) {
      // Tokens of a tree lie where the first one's sequence goes on.
      const int64_t behind = isTree && i == 0 ? int64_t(spans.size()) : 0;
      const bool isUsed = b * blockTokens < span.end + behind;
      table.push_back(isUsed ? free.back() : -1000000); // reading one that isn't there faults
      if (isUsed)
        free.pop_back();
    }
    for (int64_t p = 0; p < span.end; ++p) {
      if (isTree && i > 0 && p < span.begin)
        continue;
      // In a tree, token i of the window lies i slots after the first.
      const int64_t place = isTree ? p + (i > 0 ? int64_t(i) - 1 : 0) : p;
      const int64_t block = table[isTree ? size_t(place / blockTokens)
                                         : i * size_t(maxBlocks) + size_t(p / blockTokens)],
                    at = place % blockTokens;
      if (p == span.begin)
        slots.push_back(block * blockTokens + at);
      for (int64_t g = 0; g < c.kvHeads; ++g) {
        const int64_t head =
            block * blockBytes + prefix * blockTokens + g * tokenBytes * blockTokens;
        const int64_t values = head + keyBytes * blockTokens,
                      scales = values + valueBytes * blockTokens;
        auto put = [&](int64_t to, int64_t scale, const std::vector<float> &x, int64_t size) {
          putHead(pool, size_t(to), size_t(scale), c.element,
                  {&x[size_t((p * c.kvHeads + g) * size)], size_t(size)});
          kv.write(&pool[size_t(to)], size_t(size * e), size_t(to));
          if (c.element == 3)
            kv.write(&pool[size_t(scale)], 4, size_t(scale));
        };
        put(head + at * keyBytes, scales + 4 * at, s.k[span.sequence], c.keySize);
        if (!c.latent)
          put(values + at * valueBytes, scales + 4 * (blockTokens + at), s.v[span.sequence],
              c.valueSize);
      }
    }
    for (int64_t p = span.begin; p < span.end; ++p) {
      if ((p - span.begin) % attentionQueryTile == 0) {
        tileSeq.push_back(isTree ? 0 : int32_t(i));
        tileStart.push_back(int32_t(positions.size()));
        tileCount.push_back(int32_t(std::min(attentionQueryTile, span.end - p)));
        (tileCount.back() > 1 ? sizes.longTiles : sizes.singleTiles) = true;
      }
      positions.push_back(span.isMasked ? -1 : int32_t(p));
    }
    auto from = s.q[span.sequence].begin();
    q.insert(q.end(), from + span.begin * c.heads * c.keySize,
             from + span.end * c.heads * c.keySize);
    starts.push_back(int32_t(positions.size()));
    context.push_back(int32_t(span.end));
    sizes.longestContext = std::max(sizes.longestContext, span.end);
  }
  const DeviceArray tableMemory(table), positionMemory(positions), startMemory(starts),
      contextMemory(context), tileSeqMemory(tileSeq), tileStartMemory(tileStart),
      tileCountMemory(tileCount), qMemory(q);
  LlmrtCudaStep step{};
  step.T = int64_t(positions.size()), step.S = int64_t(spans.size()),
  step.Q = int64_t(tileSeq.size());
  auto ints = [](const DeviceArray &a) { return reinterpret_cast<const int *>(a.data()); };
  step.positions = ints(positionMemory), step.queryStart = ints(startMemory);
  step.contextLen = ints(contextMemory), step.blockTable = ints(tableMemory);
  step.maxBlocks = maxBlocks;
  step.tileSeq = ints(tileSeqMemory), step.tileStart = ints(tileStartMemory);
  step.tileCount = ints(tileCountMemory);
  const DeviceArray slotMemory(slots), ancestorMemory(std::vector<int32_t>{-1, 0, 0});
  if (isTree) {
    step.slots = reinterpret_cast<const long long *>(slotMemory.data());
    step.ancestors = ints(ancestorMemory);
    step.ancestorWidth = 1;
  }
  step.kv = kv.data(), step.blockTokens = blockTokens, step.blockBytes = blockBytes;
  std::vector<float> slopes, sinks;
  for (int64_t head = 0; head < c.heads; ++head)
    slopes.push_back(s.slope(head)), sinks.push_back(s.sink(head));
  const DeviceArray slopeMemory(slopes), sinkMemory(sinks),
      y(size_t(step.T * c.heads * c.valueSize) * 4);
  std::vector<void *> bindings = {qMemory.data()};
  if (c.alibi)
    bindings.push_back(slopeMemory.data());
  if (c.sinks)
    bindings.push_back(sinkMemory.data());
  bindings.push_back(y.data());
  // The bucket is larger: tiles and splits that this step does not have.
  sizes.T = step.T + 3, sizes.S = step.S + 3, sizes.Q = step.Q + 3;
  sizes.longestContext += 300;
  const LlmrtKvMaps maps = c.hopper ? mapsOf(c, step, prefix, blocks) : LlmrtKvMaps{};
  kernelsOf(attentionSpec(c), model, c.hopper ? "sm_90a" : "sm_80")
      .run(c.name, step, sizes, bindings, prefix, "", &maps);
  Outputs out;
  if (testing::Test::HasFatalFailure())
    return out;
  const std::vector<float> all = y.read<float>();
  auto row = all.begin();
  for (const Span &span : spans)
    for (int64_t p = span.begin; p < span.end; ++p, row += c.heads * c.valueSize)
      out[{span.sequence, p}] = {row, row + c.heads * c.valueSize};
  return out;
}

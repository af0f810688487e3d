// A token's keys and values move from one place to another, and nothing else does.
#include "runtime/device/cpu/KvRows.h"

#include <gtest/gtest.h>
#include <map>

using namespace llmrt;

namespace {

struct Layer {
  uint32_t heads, keySize, valueSize;
  fbs::ElementType element;
  uint32_t window;
};

/// Where KernelAbi.h says that element \p i of a token lies, as an offset into a block; every byte.
std::vector<int64_t> bytesOf(const Layer &l, int64_t layerAt, int64_t blockTokens, int64_t token) {
  const bool isInt8 = l.element == fbs::ElementType::I8;
  const int64_t bytes = l.element == fbs::ElementType::F32 ? 4 : isInt8 ? 1 : 2;
  std::vector<int64_t> at;
  auto add = [&](int64_t from, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      at.push_back(from + i);
  };
  int64_t place = layerAt;
  for (uint32_t head = 0; head < l.heads; ++head)
    for (bool isKey : {true, false}) {
      const int64_t size = isKey ? l.keySize : l.valueSize;
      const int64_t run = 16 * (size * bytes + (isInt8 ? 4 : 0));
      const int64_t own = place + token / 16 * run;
      if (isKey)
        for (int64_t i = 0; i < size; ++i)
          add(own + (16 * i + token % 16) * bytes, bytes);
      else
        add(own + token % 16 * size * bytes, size * bytes);
      if (isInt8)
        add(own + 16 * size + 4 * (token % 16), 4);
      place += blockTokens / 16 * run;
    }
  return at;
}

TEST(KvRows, MoveATokenAndNothingElse) {
  const std::vector<Layer> layers = {{2, 3, 5, fbs::ElementType::F16, 0},
                                     {1, 6, 4, fbs::ElementType::I8, 40},
                                     {3, 2, 2, fbs::ElementType::F32, 0},
                                     {1, 9, 0, fbs::ElementType::BF16, 40}};
  fbs::KvT kv;
  std::vector<int64_t> perToken;
  for (const Layer &l : layers) {
    auto layer = std::make_unique<fbs::KvLayerT>();
    layer->kv_heads = l.heads, layer->key_size = l.keySize, layer->value_size = l.valueSize;
    layer->element = l.element, layer->window = l.window;
    kv.layers.push_back(std::move(layer));
    const int64_t bytes = l.element == fbs::ElementType::F32  ? 4
                          : l.element == fbs::ElementType::I8 ? 1
                                                              : 2;
    perToken.push_back(l.heads * (l.keySize + l.valueSize) * bytes +
                       (l.element == fbs::ElementType::I8 ? 8 * l.heads : 0));
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fbs::Kv::Pack(builder, &kv));
  const fbs::Kv &packed = *flatbuffers::GetRoot<fbs::Kv>(builder.GetBufferPointer());
  const KvGroups groups(packed, 4096);
  ASSERT_EQ(groups.groups().size(), 2u);

  for (bool grouped : {false, true})
    for (uint32_t group = 0; group < (grouped ? 2 : 1); ++group)
      for (int64_t blockTokens : {16, 48}) {
        int64_t inBlock = 0;
        std::map<int64_t, int64_t> moves; // byte of one block -> byte of the other
        const int64_t from = blockTokens - 3, to = 2;
        for (size_t i = 0; i < layers.size(); ++i) {
          if (grouped && (layers[i].window != 0) != (group == 1))
            continue;
          std::vector<int64_t> source = bytesOf(layers[i], inBlock, blockTokens, from);
          std::vector<int64_t> target = bytesOf(layers[i], inBlock, blockTokens, to);
          EXPECT_EQ(int64_t(source.size()), perToken[i]);
          for (size_t b = 0; b < source.size(); ++b)
            moves[target[b]] = source[b];
          inBlock += perToken[i] * blockTokens;
        }
        std::vector<uint8_t> a(static_cast<size_t>(inBlock)), b(a.size());
        for (size_t i = 0; i < a.size(); ++i)
          a[i] = uint8_t(i * 7 + i / 256), b[i] = uint8_t(i * 5 + i / 128 + 1);
        std::vector<uint8_t> want = b, before = a;
        for (auto [target, source] : moves)
          want[size_t(target)] = a[size_t(source)];
        const KvRows rows(packed, grouped ? &groups : nullptr);
        rows.move(group, blockTokens, a.data(), from, b.data(), to);
        EXPECT_EQ(b, want) << grouped << group << " " << blockTokens;
        EXPECT_EQ(a, before);
        // In one block.
        want = a;
        for (auto [target, source] : moves)
          want[size_t(target)] = a[size_t(source)];
        rows.move(group, blockTokens, a.data(), from, a.data(), to);
        EXPECT_EQ(a, want);
      }
}

} // namespace

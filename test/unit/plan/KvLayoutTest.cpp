// What a token takes in the KV cache: the numbers of models that other programs got wrong.
#include "runtime/plan/KvLayout.h"

#include <gtest/gtest.h>

using namespace llmrt;

namespace {

/// GiB of \p tokens tokens in \p layers layers.
double gibibytes(uint32_t heads, uint32_t keySize, uint32_t valueSize, fbs::ElementType element,
                 uint64_t layers, uint64_t tokens) {
  fbs::KvLayerT layer;
  layer.kv_heads = heads;
  layer.key_size = keySize;
  layer.value_size = valueSize;
  layer.element = element;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fbs::CreateKvLayer(builder, &layer));
  const auto *stored = flatbuffers::GetRoot<fbs::KvLayer>(builder.GetBufferPointer());
  return static_cast<double>(kvBytesPerToken(*stored) * layers * tokens) / (1 << 30);
}

TEST(KvLayout, R05_HeadsOfKeysAndElementTypeCount) {
  EXPECT_DOUBLE_EQ(gibibytes(8, 128, 128, fbs::ElementType::F16, 36, 32768), 4.5);
  EXPECT_DOUBLE_EQ(gibibytes(8, 128, 128, fbs::ElementType::F16, 36, 131072), 18);
  EXPECT_DOUBLE_EQ(gibibytes(8, 128, 128, fbs::ElementType::F16, 36, 262144), 36);
  EXPECT_DOUBLE_EQ(gibibytes(8, 128, 128, fbs::ElementType::I8, 36, 32768), 4.5 * 0.515625);
}

TEST(KvLayout, A10_LatentAttentionKeepsOneRowForAllHeads) {
  EXPECT_NEAR(gibibytes(1, 512 + 64, 0, fbs::ElementType::F16, 61, 32768), 2.1445, 1e-4);
  EXPECT_DOUBLE_EQ(gibibytes(128, 192, 128, fbs::ElementType::F16, 61, 32768), 152.5);
}

} // namespace

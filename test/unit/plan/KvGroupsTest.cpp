// Which layers share blocks, and where a layer lies in those of its group.
#include "runtime/plan/KvGroups.h"

#include <gtest/gtest.h>

using namespace llmrt;

namespace {

/// Layers of one head with keys and values of \p sizes[i] f32 each: 8 sizes[i] bytes a token.
KvGroups groupsOf(const std::vector<uint32_t> &windows, int64_t maxContext,
                  std::vector<uint32_t> sizes = {}) {
  sizes.resize(windows.size(), 1);
  fbs::KvT kv;
  for (size_t i = 0; i < windows.size(); ++i) {
    auto layer = std::make_unique<fbs::KvLayerT>();
    layer->kv_heads = 1;
    layer->key_size = layer->value_size = sizes[i];
    layer->window = windows[i];
    kv.layers.push_back(std::move(layer));
  }
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(fbs::CreateKv(builder, &kv));
  return KvGroups(*flatbuffers::GetRoot<fbs::Kv>(builder.GetBufferPointer()), maxContext);
}

TEST(KvGroups, LayersOfOneWindowShareBlocks) {
  KvGroups groups = groupsOf({64, 64, 0, 64, 32}, 1024, {1, 2, 3, 4, 5});
  EXPECT_EQ(groups.groups(), (std::vector<KvGroup>{{0, 24}, {64, 56}, {32, 40}}));
  struct {
    int64_t prefix;
    uint32_t group;
    int64_t inGroup;
  } places[] = {{0, 1, 0}, {8, 1, 8}, {24, 0, 0}, {48, 1, 24}, {80, 2, 0}};
  for (auto [prefix, group, inGroup] : places) {
    EXPECT_EQ(groups.place(prefix).group, group) << prefix;
    EXPECT_EQ(groups.place(prefix).prefix, inGroup) << prefix;
  }
}

TEST(KvGroups, OneWindowForAllIsOneGroup) {
  EXPECT_EQ(groupsOf({0, 0}, 64).groups(), (std::vector<KvGroup>{{0, 16}}));
  EXPECT_EQ(groupsOf({32, 32}, 64).groups(), (std::vector<KvGroup>{{32, 16}}));
  EXPECT_EQ(groupsOf({}, 64).groups(), (std::vector<KvGroup>{{0, 0}}));
}

TEST(KvGroups, AWindowThatSpansTheContextIsNone) {
  EXPECT_EQ(groupsOf({64, 0}, 64).groups(), (std::vector<KvGroup>{{0, 16}}));
  EXPECT_EQ(groupsOf({63, 0}, 64).groups(), (std::vector<KvGroup>{{0, 8}, {63, 8}}));
}

TEST(KvGroups, TheNarrowestOfManyShareAGroup) {
  // None keeps less than its window: the last group keeps the widest of its layers'.
  KvGroups groups = groupsOf({5, 50, 500, 0, 25, 10}, 1024);
  EXPECT_EQ(groups.groups(), (std::vector<KvGroup>{{0, 8}, {500, 8}, {50, 8}, {25, 24}}));
  EXPECT_EQ(groups.place(0).group, 3u);
}

} // namespace

#include "compiler/import/huggingface/Checkpoint.h"

#include "test/unit/compiler/common/TempFolder.h"
#include "test/unit/compiler/huggingface/SafetensorsBuilder.h"

#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

namespace {

constexpr const char *indexName = "model.safetensors.index.json";

std::string oneTensor(const std::string &name, float value) {
  return SafetensorsBuilder().f32(name, "1", {value}).build();
}

std::string index(const std::string &map) {
  return R"({"metadata":{},"weight_map":{)" + map + "}}";
}

std::string error(const TempFolder &folder) {
  auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_FALSE(checkpoint.isOk());
  return checkpoint.isOk() ? "" : checkpoint.status().message();
}

void expectHas(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

float valueOf(const Checkpoint &checkpoint, const char *name) {
  const Checkpoint::Tensor *tensor = checkpoint.find(name);
  EXPECT_NE(tensor, nullptr);
  float value = -1;
  EXPECT_TRUE(checkpoint.source(*tensor)->readRows(0, 1, &value).isOk());
  return value;
}

TEST(Checkpoint, readsOneFile) {
  TempFolder folder;
  folder.write("model.safetensors", oneTensor("a", 3));
  auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().message();
  EXPECT_EQ(valueOf(*checkpoint, "a"), 3);
  EXPECT_EQ(checkpoint->find("b"), nullptr);
  EXPECT_TRUE(checkpoint->notes().empty());
}

TEST(Checkpoint, readsShardsAndIgnoresStrayFiles) { // case M14
  TempFolder folder;
  folder.write("m-1.safetensors", oneTensor("a", 1));
  folder.write("m-2.safetensors",
               SafetensorsBuilder().f32("b", "1", {2}).f32("extra", "1", {9}).build());
  folder.write("consolidated.safetensors", oneTensor("a", 77));
  folder.write(indexName, index(R"("a":"m-1.safetensors","b":"m-2.safetensors")"));
  auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.isOk()) << checkpoint.status().message();
  EXPECT_EQ(valueOf(*checkpoint, "a"), 1);
  EXPECT_EQ(valueOf(*checkpoint, "b"), 2);
  EXPECT_EQ(checkpoint->find("extra"), nullptr);
  ASSERT_EQ(checkpoint->notes().size(), 2u);
  expectHas(checkpoint->notes()[0], "1 tensors that the index doesn't name");
  expectHas(checkpoint->notes()[1], "consolidated.safetensors");
}

TEST(Checkpoint, namesMissingShards) { // case M14
  TempFolder folder;
  folder.write("m-1.safetensors", oneTensor("a", 1));
  folder.write(indexName,
               index(R"("a":"m-1.safetensors","b":"m-2.safetensors","c":"m-3.safetensors")"));
  expectHas(error(folder), "m-2.safetensors, m-3.safetensors");
}

TEST(Checkpoint, refusesTensorsOutOfTheirShard) { // case M14
  TempFolder folder;
  folder.write("m-1.safetensors", oneTensor("a", 1));
  folder.write("m-2.safetensors", oneTensor("c", 2));
  folder.write(indexName, index(R"("a":"m-1.safetensors","b":"m-2.safetensors")"));
  expectHas(error(folder), "'b' is mapped to m-2.safetensors, which doesn't have it");
  folder.write("m-2.safetensors",
               SafetensorsBuilder().f32("a", "1", {5}).f32("b", "1", {6}).build());
  expectHas(error(folder), "'a' is mapped to m-1.safetensors, but is in m-2.safetensors too");
}

TEST(Checkpoint, refusesShardsThatAreNoData) { // case M14
  TempFolder folder;
  folder.write(indexName, index(R"("a":"m-1.safetensors")"));
  folder.write("m-1.safetensors", "");
  expectHas(error(folder), "empty");
  folder.write("m-1.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  expectHas(error(folder), "Git LFS");
}

TEST(Checkpoint, keepsShardsInsideTheFolder) { // case M13
  TempFolder outer;
  outer.write("secret.safetensors", oneTensor("a", 1));
  const std::string folder = outer.file("model");
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink("../secret.safetensors", folder + "/link.safetensors");
  for (const std::string &name : std::vector<std::string>{
           "../secret.safetensors", "/etc/passwd", "a/../../secret.safetensors", "link.safetensors",
           "C:\\\\x", "http://host/x", "x\\u0000y", ""}) {
    outer.write("model/" + std::string(indexName), index("\"a\":\"" + name + "\""));
    EXPECT_FALSE(Checkpoint::open(folder).isOk()) << name;
  }
}

TEST(Checkpoint, refusesMalformedIndexes) {
  TempFolder folder;
  for (const std::string &text :
       {std::string("{"), std::string("[]"), std::string("{}"), index(""), index("\"a\":5"),
        std::string(R"({"weight_map":[]})"), index(R"("a":"x.safetensors","a":"y.safetensors")")}) {
    folder.write(indexName, text);
    expectHas(error(folder), indexName);
  }
}

TEST(Checkpoint, namesWhatWouldBeNeeded) {
  TempFolder folder;
  expectHas(error(folder), "model.safetensors");
  folder.write("pytorch_model.bin", "x");
  expectHas(error(folder), "convert it to safetensors");
}

} // namespace

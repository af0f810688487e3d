#include "compiler/import/huggingface/SafetensorsFile.h"

#include "test/unit/compiler/common/TempFolder.h"
#include "test/unit/compiler/huggingface/SafetensorsBuilder.h"

#include <gtest/gtest.h>

using namespace llmc;
using namespace llmc::test;

namespace {

class Safetensors : public ::testing::Test {
protected:
  llmrt::Result<std::vector<SafetensorsTensor>> read(const std::string &bytes) {
    auto file = MappedFile::open(folder.write("m.safetensors", bytes));
    EXPECT_TRUE(file.isOk());
    mapped.emplace(std::move(*file));
    return readSafetensors(*mapped);
  }
  std::string error(const std::string &bytes) {
    auto tensors = read(bytes);
    EXPECT_FALSE(tensors.isOk()) << bytes.substr(0, 100);
    return tensors.isOk() ? "" : tensors.status().message();
  }
  std::vector<float> values(const SafetensorsTensor &tensor) {
    auto source = safetensorsSource(*mapped, tensor);
    EXPECT_TRUE(source.isOk()) << source.status().message();
    std::vector<float> result(source->rows * source->columns);
    EXPECT_TRUE(source->readRows(0, source->rows, result.data()).isOk());
    return result;
  }
  TempFolder folder;
  std::optional<MappedFile> mapped;
};

void expectHas(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Safetensors, readsTensorsAtOddAddresses) { // case R09
  SafetensorsBuilder b;
  b.add<uint8_t>("a", "U8", "3", {1, 2, 3})
      .f32("b", "2,2", {1, 2, 3, 4})
      .add<uint16_t>("c", "BF16", "5", {0x3f80, 0x4000, 0xbf80, 0, 0x7f7f})
      .add<uint16_t>("d", "F16", "7", {0x3c00, 0, 1, 2, 3, 4, 0xbc00})
      .add<int64_t>("e", "I64", "2", {5, -6})
      .add<uint8_t>("empty", "U8", "0,4", {});
  auto tensors = read(b.build());
  ASSERT_TRUE(tensors.isOk()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 6u);
  EXPECT_EQ(values((*tensors)[1]), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(values((*tensors)[2])[2], -1.0f);
  EXPECT_EQ(values((*tensors)[3])[6], -1.0f);
  auto integers = safetensorsSource(*mapped, (*tensors)[4]);
  ASSERT_FALSE(integers.isOk());
  expectHas(integers.status().message(), "'e' is of dtype I64");
}

TEST_F(Safetensors, readsShapes) {
  SafetensorsBuilder b;
  b.f32("scalar", "", {5}).f32("vector", "3", {1, 2, 3}).f32("cube", "2,1,2", {1, 2, 3, 4});
  auto tensors = read(b.build());
  ASSERT_TRUE(tensors.isOk()) << tensors.status().message();
  auto cube = safetensorsSource(*mapped, (*tensors)[2]);
  EXPECT_EQ(cube->rows, 2u);
  EXPECT_EQ(cube->columns, 2u);
  EXPECT_EQ(values((*tensors)[0]), std::vector<float>{5});
  EXPECT_EQ(safetensorsSource(*mapped, (*tensors)[1])->rows, 3u);
}

TEST_F(Safetensors, checksTheLength) { // case M11
  const std::string json = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_TRUE(read(safetensors(json + "   ", "x")).isOk()); // trailing spaces are legal
  for (uint64_t length :
       {UINT64_MAX - 0, UINT64_MAX - 7, uint64_t(1) << 63, uint64_t(100000001),
        uint64_t(json.size() + 9), uint64_t(json.size() + 2), uint64_t(0), uint64_t(1)}) {
    if (length == UINT64_MAX) { // the builder's word for "the right one"
      std::string file = safetensors(json, "x");
      std::fill_n(file.begin(), 8, '\xff');
      EXPECT_FALSE(read(file).isOk());
      continue;
    }
    EXPECT_FALSE(read(safetensors(json, "x", length)).isOk()) << length;
  }
}

TEST_F(Safetensors, refusesMalformedHeads) { // case M11
  const std::string entry = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expectHas(error(safetensors(" {\"a\":" + entry + "}", "x")), "start with '{'");
  expectHas(error(safetensors("{\"a\":" + entry + ",\"a\":" + entry + "}", "x")),
            "'a' appears twice");
  expectHas(error(safetensors(
                R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "x")),
            "twice");
  expectHas(error(safetensors("{\"a\":" + std::string(5000000, '['), "")), "malformed");
  expectHas(error(safetensors("[]", "")), "start with '{'");
  for (const char *bad :
       {R"({"a":5})", R"({"a":{}})", R"({"a":{"dtype":"U8","shape":[1]}})",
        R"({"a":{"dtype":"U9","shape":[1],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,2],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[-1,0]}})"})
    expectHas(error(safetensors(bad, "x")), "'a'");
}

TEST_F(Safetensors, refusesCutAndPaddedFiles) { // case M21
  SafetensorsBuilder b;
  b.f32("a", "1000", std::vector<float>(1000, 1)).f32("b", "100", std::vector<float>(100, 2));
  const std::string good = b.build();
  ASSERT_TRUE(read(good).isOk());
  expectHas(error(good.substr(0, good.size() - 1)), "cut short");
  expectHas(error(good.substr(0, good.size() - 4096)), "cut short");
  EXPECT_FALSE(read(good.substr(0, good.size() / 2)).isOk());
  expectHas(error(good + "x"), "1 bytes behind");
  expectHas(error(""), "empty");
  expectHas(error("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
            "Git LFS");
}

TEST_F(Safetensors, refusesOverlapsAndHoles) {
  const auto two = [](const char *first, const char *second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(first) +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  EXPECT_TRUE(read(safetensors(two("[4,8]", "[0,4]"), "12345678")).isOk());
  expectHas(error(safetensors(two("[0,4]", "[3,7]"), "1234567")), "overlaps");
  expectHas(error(safetensors(two("[0,4]", "[0,4]"), "1234")), "overlaps");
  expectHas(error(safetensors(two("[0,4]", "[5,9]"), "123456789")), "hole");
}

TEST_F(Safetensors, survivesEveryFlip) {
  SafetensorsBuilder b;
  b.f32("a", "2,2", {1, 2, 3, 4}).f32("b", "1", {5});
  const std::string good = b.build();
  for (size_t at = 0; at != good.size(); ++at)
    for (int bit = 0; bit != 8; ++bit) {
      std::string bad = good;
      bad[at] = char(bad[at] ^ 1 << bit);
      auto tensors = read(bad);
      if (!tensors.isOk())
        continue;
      for (const SafetensorsTensor &tensor : *tensors)
        if (auto source = safetensorsSource(*mapped, tensor); source.isOk()) {
          std::vector<float> values(source->rows * source->columns);
          (void)source->readRows(0, source->rows, values.data()).isOk();
        }
    }
}

} // namespace

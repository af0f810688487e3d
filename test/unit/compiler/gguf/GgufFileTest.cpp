#include "compiler/import/gguf/GgufFile.h"

#include "test/unit/compiler/common/TempFolder.h"
#include "test/unit/compiler/gguf/GgufBuilder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace llmc;
using llmc::test::GgufBuilder;
using llmc::test::TempFolder;

namespace {

class Gguf : public ::testing::Test {
protected:
  llmrt::Result<GgufFile> open(const std::string &bytes) {
    return GgufFile::open(folder.write("m.gguf", bytes));
  }
  llmrt::Result<GgufFile> open(const GgufBuilder &builder) { return open(builder.build()); }
  /// The message of the failure, which must come.
  std::string error(const std::string &bytes) {
    auto file = open(bytes);
    EXPECT_FALSE(file.isOk());
    return file.isOk() ? "" : file.status().message();
  }
  std::string error(const GgufBuilder &builder) { return error(builder.build()); }
  TempFolder folder;
};

void expectHas(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Gguf, readsMetadataOfEveryType) {
  GgufBuilder b;
  b.entry("u8", GgufType::Uint8, GgufBuilder::raw(uint8_t(200)))
      .entry("i8", GgufType::Int8, GgufBuilder::raw(int8_t(-3)))
      .entry("u16", GgufType::Uint16, GgufBuilder::raw(uint16_t(65000)))
      .entry("i16", GgufType::Int16, GgufBuilder::raw(int16_t(7)))
      .u32("u32", 4000000000u)
      .entry("i32", GgufType::Int32, GgufBuilder::raw(int32_t(9)))
      .f32("f32", 1.5f)
      .entry("flag", GgufType::Bool, GgufBuilder::raw(uint8_t(1)))
      .string("name", "SmolLM2")
      .entry("u64", GgufType::Uint64, GgufBuilder::raw(uint64_t(1) << 40))
      .entry("i64", GgufType::Int64, GgufBuilder::raw(int64_t(11)))
      .entry("f64", GgufType::Float64, GgufBuilder::raw(0.1))
      .entry("words", GgufType::Array, GgufBuilder::strings({"a", "", "ccc"}))
      .entry("scores", GgufType::Array, GgufBuilder::list<float>(GgufType::Float32, {1, -2}))
      .entry("types", GgufType::Array, GgufBuilder::list<int32_t>(GgufType::Int32, {1, -1}))
      .entry("heads", GgufType::Array, GgufBuilder::list<uint16_t>(GgufType::Uint16, {4, 2}));
  auto file = open(b);
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ(**file->unsignedInteger("u8"), 200u);
  EXPECT_EQ(**file->unsignedInteger("u16"), 65000u);
  EXPECT_EQ(**file->unsignedInteger("i16"), 7u);
  EXPECT_EQ(**file->unsignedInteger("u32"), 4000000000u);
  EXPECT_EQ(**file->unsignedInteger("i32"), 9u);
  EXPECT_EQ(**file->unsignedInteger("u64"), uint64_t(1) << 40);
  EXPECT_EQ(**file->unsignedInteger("i64"), 11u);
  EXPECT_FALSE(file->unsignedInteger("i8").isOk());
  EXPECT_FALSE(file->unsignedInteger("f32").isOk());
  EXPECT_FALSE((*file->unsignedInteger("none")).has_value());
  EXPECT_EQ(**file->number("f32"), 1.5);
  EXPECT_EQ(**file->number("f64"), 0.1);
  EXPECT_EQ(**file->boolean("flag"), true);
  EXPECT_EQ(**file->string("name"), "SmolLM2");
  EXPECT_EQ(**file->strings("words"), (std::vector<std::string>{"a", "", "ccc"}));
  EXPECT_EQ(**file->floats("scores"), (std::vector<float>{1, -2}));
  EXPECT_EQ(**file->integers("types"), (std::vector<int32_t>{1, -1}));
  EXPECT_EQ(**file->perLayer("heads", 2), (std::vector<uint64_t>{4, 2}));
  EXPECT_EQ(**file->perLayer("u8", 3), (std::vector<uint64_t>{200, 200, 200}));
  EXPECT_FALSE(file->perLayer("heads", 3).isOk());
}

TEST_F(Gguf, namesWantedAndFoundTypes) { // case M07
  GgufBuilder b;
  b.entry("tokenizer.ggml.scores", GgufType::Array,
          GgufBuilder::list<uint8_t>(GgufType::Uint8, {1, 2}))
      .entry("tokenizer.ggml.tokens", GgufType::Array,
             GgufBuilder::list<int32_t>(GgufType::Int32, {1}));
  auto file = open(b);
  ASSERT_TRUE(file.isOk());
  auto scores = file->floats("tokenizer.ggml.scores");
  ASSERT_FALSE(scores.isOk());
  expectHas(scores.status().message(),
            "'tokenizer.ggml.scores' is array of 2 uint8; an array of float32 is needed");
  EXPECT_FALSE(file->strings("tokenizer.ggml.tokens").isOk());
}

TEST_F(Gguf, readsTensors) {
  for (uint32_t version : {2, 3}) {
    GgufBuilder b;
    b.version = version;
    b.floats("m", {3, 2}, {1, 2, 3, 4, 5, 6}).floats("v", {2}, {7, 8});
    auto file = open(b);
    ASSERT_TRUE(file.isOk()) << file.status().message();
    ASSERT_EQ(file->tensors().size(), 2u);
    EXPECT_EQ(file->findTensor("m")->shape, (std::vector<uint64_t>{2, 3}));
    EXPECT_EQ(file->findTensor("x"), nullptr);
    auto m = file->source(*file->findTensor("m"));
    ASSERT_TRUE(m.isOk());
    float row[3];
    ASSERT_TRUE(m->readRows(1, 2, row).isOk());
    EXPECT_EQ(row[2], 6);
    auto v = file->source(*file->findTensor("v")); // ends exactly at the end of the file
    ASSERT_TRUE(v.isOk());
    EXPECT_EQ(v->rows, 2u);
    EXPECT_EQ(v->columns, 1u);
  }
}

TEST_F(Gguf, refusesOtherMagicAndVersions) {
  expectHas(error(std::string("GGML....")), "GGUF");
  expectHas(error(std::string()), "GGUF");
  GgufBuilder b;
  b.version = 1;
  expectHas(error(b), "version 1");
  b.version = 4;
  expectHas(error(b), "version 4");
  b.version = 0x03000000;
  expectHas(error(b), "big-endian");
}

TEST_F(Gguf, refusesDimensions) { // case M02
  for (size_t dimensions : {0, 5}) {
    GgufBuilder b;
    b.tensor("t", std::vector<uint64_t>(dimensions, 1), 0, 0).data = std::string(64, '\0');
    expectHas(error(b), std::to_string(dimensions) + " dimensions");
  }
  GgufBuilder huge;
  huge.tensors = GgufBuilder::text("t") + GgufBuilder::raw(uint32_t(4294967295u));
  huge.tensors.resize(huge.tensors.size() + 64);
  huge.tensorCount = 1;
  expectHas(error(huge), "4294967295 dimensions");
  GgufBuilder four;
  four.floats("t", {1, 2, 1, 2}, {1, 2, 3, 4});
  EXPECT_TRUE(open(four).isOk());
  for (const std::vector<uint64_t> &shape : std::vector<std::vector<uint64_t>>{
           {0}, {uint64_t(1) << 40, uint64_t(1) << 40}, {UINT64_MAX}}) {
    GgufBuilder b;
    b.tensor("t", shape, 0, 0).data = std::string(64, '\0');
    expectHas(error(b), "'t'");
  }
}

TEST_F(Gguf, checksTheAlignment) { // case M04
  for (uint32_t good : {8u, 24u, 32u, 64u}) {
    GgufBuilder b;
    b.alignment = good;
    b.u32("general.alignment", good).floats("t", {2}, {1, 2}).floats("u", {2}, {3, 4});
    auto file = open(b);
    ASSERT_TRUE(file.isOk()) << file.status().message();
    float value;
    ASSERT_TRUE(file->source(*file->findTensor("u"))->readRows(1, 2, &value).isOk());
    EXPECT_EQ(value, 4);
  }
  for (uint32_t bad : {0u, 1u, 3u, 31u, 1u << 31, 4294967295u}) {
    GgufBuilder b;
    b.u32("general.alignment", bad).floats("t", {2}, {1, 2});
    expectHas(error(b), "general.alignment is " + std::to_string(bad));
  }
  GgufBuilder wide, word, twice;
  wide.entry("general.alignment", GgufType::Uint64, GgufBuilder::raw(uint64_t(32)));
  expectHas(error(wide), "uint64");
  word.string("general.alignment", "32");
  expectHas(error(word), "string");
  twice.u32("general.alignment", 32).u32("general.alignment", 64);
  expectHas(error(twice), "twice");
}

TEST_F(Gguf, allocatesNothingFromCounts) { // case M05
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  std::vector<std::string> files;
  GgufBuilder counts;
  counts.entryCount = 500000000;
  files.push_back(counts.build());
  GgufBuilder tensors;
  tensors.tensorCount = uint64_t(1) << 60;
  files.push_back(tensors.build());
  GgufBuilder key;
  key.entryCount = 1;
  key.entries = GgufBuilder::raw(uint64_t(0xFFFFFFFFFFFF)) + std::string(30, 'k');
  files.push_back(key.build());
  for (GgufType type : {GgufType::Uint8, GgufType::String, GgufType::Float64}) {
    GgufBuilder b;
    b.entry("a", GgufType::Array, GgufBuilder::array(type, uint64_t(1) << 61, "12345678"));
    files.push_back(b.build());
  }
  GgufBuilder nested;
  std::string deep;
  for (int i = 0; i != 10000; ++i)
    deep += GgufBuilder::raw(uint32_t(GgufType::Array)) + GgufBuilder::raw(uint64_t(1));
  nested.entry("a", GgufType::Array, deep);
  files.push_back(nested.build());
  GgufBuilder lie;
  lie.entry("a", GgufType::Array, GgufBuilder::array(GgufType::String, 3, GgufBuilder::text("x")));
  lie.entries += std::string(100, '\xff');
  files.push_back(lie.build());
  for (const std::string &file : files)
    EXPECT_FALSE(error(file).empty());
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 20 * 1024); // KiB
}

TEST_F(Gguf, checksTheTensorTable) { // case M22
  const std::string data(128, '\0');
  GgufBuilder same, overlap, far, odd, shortened;
  same.floats("a", {2}, {1, 2}).floats("a", {2}, {1, 2});
  expectHas(error(same), "twice");
  overlap.tensor("a", {16}, 0, 0).tensor("b", {8}, 0, 32).data = data;
  expectHas(error(overlap), "overlap");
  far.tensor("a", {8}, 0, UINT64_MAX - 31).data = data;
  expectHas(error(far), "needs 32 bytes");
  odd.tensor("a", {8}, 0, 8).data = data;
  expectHas(error(odd), "no multiple of the alignment");
  shortened.floats("a", {4}, {1, 2, 3, 4});
  std::string cut = shortened.build();
  cut.pop_back();
  expectHas(error(cut), "cut short");
  for (size_t length : {63, 64, 1000}) {
    GgufBuilder b;
    b.floats(std::string(length, 'n'), {1}, {1});
    EXPECT_TRUE(open(b).isOk()) << length;
  }
  GgufBuilder lengthy;
  lengthy.floats(std::string(5000, 'n'), {1}, {1});
  expectHas(error(lengthy), "5000 bytes");
}

TEST_F(Gguf, checksTensorTypes) {
  GgufBuilder unknown, partial, unread;
  unknown.tensor("a", {32}, 77, 0).data = std::string(128, '\0');
  expectHas(error(unknown), "unknown type 77");
  partial.tensor("a", {31}, 2, 0).data = std::string(128, '\0');
  expectHas(error(partial), "multiple of 32");
  unread.tensor("a", {256}, 25, 0).data = std::string(512, '\0'); // I16: known, not read
  auto file = open(unread);
  ASSERT_TRUE(file.isOk()) << file.status().message();
  auto source = file->source(file->tensors()[0]);
  ASSERT_FALSE(source.isOk());
  expectHas(source.status().message(), "'a' is of type I16");
}

TEST_F(Gguf, survivesEveryTruncationAndFlip) {
  GgufBuilder b;
  b.string("general.architecture", "llama")
      .entry("tokenizer.ggml.tokens", GgufType::Array, GgufBuilder::strings({"a", "bc"}))
      .u32("general.alignment", 32)
      .floats("m", {3, 2}, {1, 2, 3, 4, 5, 6})
      .floats("v", {2}, {7, 8});
  const std::string good = b.build();
  for (size_t length = 0; length != good.size(); ++length)
    EXPECT_FALSE(open(good.substr(0, length)).isOk()) << length;
  for (size_t at = 0; at != good.size(); ++at)
    for (int mask : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = char(bad[at] ^ mask);
      auto file = open(bad);
      if (!file.isOk())
        continue;
      for (const GgufTensor &tensor : file->tensors())
        if (auto source = file->source(tensor); source.isOk()) {
          std::vector<float> values(source->rows * source->columns);
          (void)source->readRows(0, source->rows, values.data()).isOk();
        }
      (void)file->strings("tokenizer.ggml.tokens").isOk();
    }
}

TEST_F(Gguf, joinsTheFilesOfASplitModel) {
  const auto part = [](uint16_t number, const std::string &name, float value) {
    GgufBuilder b;
    b.entry("split.no", GgufType::Uint16, GgufBuilder::raw(number))
        .entry("split.count", GgufType::Uint16, GgufBuilder::raw(uint16_t(2)))
        .entry("split.tensors.count", GgufType::Int32, GgufBuilder::raw(int32_t(2)));
    if (number == 0)
      b.string("general.architecture", "llama");
    return b.floats(name, {1}, {value}).build();
  };
  const std::string first = folder.write("m-00001-of-00002.gguf", part(0, "a", 1));
  EXPECT_FALSE(GgufFile::open(first).isOk()); // the second is missing
  const std::string second = folder.write("m-00002-of-00002.gguf", part(1, "b", 2));
  auto file = GgufFile::open(first);
  ASSERT_TRUE(file.isOk()) << file.status().message();
  EXPECT_EQ(file->files().size(), 2u);
  float value;
  ASSERT_TRUE(file->source(*file->findTensor("b"))->readRows(0, 1, &value).isOk());
  EXPECT_EQ(value, 2);
  EXPECT_EQ(**file->string("general.architecture"), "llama");

  auto notFirst = GgufFile::open(second);
  ASSERT_FALSE(notFirst.isOk());
  expectHas(notFirst.status().message(), "part 2 of 2");
  folder.write("m-00002-of-00002.gguf", part(1, "a", 2));
  EXPECT_FALSE(GgufFile::open(first).isOk()); // the same name in both
  auto renamed = GgufFile::open(folder.write("x.gguf", part(0, "a", 1)));
  ASSERT_FALSE(renamed.isOk());
  expectHas(renamed.status().message(), "-00001-of-00002.gguf");
}

} // namespace

// Every layout of pre-quantized checkpoints, bit for bit (see test/data/encodings).
#include "compiler/import/common/CheckpointForm.h"
#include "compiler/import/huggingface/SafetensorsFile.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>

using namespace llmc;

namespace {

class Data {
public:
  Data() {
    auto opened =
        MappedFile::open(std::string(LLMC_TEST_DATA) + "/encodings/checkpoints.safetensors");
    EXPECT_TRUE(opened.isOk()) << opened.status().message();
    file_ = std::make_unique<MappedFile>(std::move(*opened));
    auto tensors = readSafetensors(*file_);
    EXPECT_TRUE(tensors.isOk());
    for (const SafetensorsTensor &tensor : *tensors)
      bytes_[tensor.name] = file_->bytes().subspan(tensor.offset, tensor.size);
  }
  std::span<const uint8_t> operator()(const std::string &name) const {
    const auto found = bytes_.find(name);
    return found == bytes_.end() ? std::span<const uint8_t>() : found->second;
  }

private:
  std::unique_ptr<MappedFile> file_;
  std::map<std::string, std::span<const uint8_t>> bytes_;
};

struct Case {
  const char *name;
  WeightEncoding encoding;
  uint32_t bits;
  uint64_t block;
  WeightEncoding scales;
  bool exact; ///< as grouped integers
};

constexpr Case kCases[] = {
    {"gptq4", WeightEncoding::Gptq, 4, 32, WeightEncoding::F16, true},
    {"gptq8", WeightEncoding::Gptq, 8, 16, WeightEncoding::F16, true},
    {"gptq_v2", WeightEncoding::GptqV2, 4, 96, WeightEncoding::F32, true},
    {"gptq_order", WeightEncoding::Gptq, 4, 16, WeightEncoding::F16, false},
    {"awq", WeightEncoding::Awq, 4, 32, WeightEncoding::F16, true},
    {"packed4", WeightEncoding::PackedInt, 4, 32, WeightEncoding::BF16, true},
    {"packed4_zeros", WeightEncoding::PackedInt, 4, 96, WeightEncoding::F16, true},
    {"packed8", WeightEncoding::PackedInt, 8, 32, WeightEncoding::F32, true},
    {"nf4", WeightEncoding::NF4, 4, 64, WeightEncoding::F32, false},
    {"nf4_nested", WeightEncoding::NF4, 4, 64, WeightEncoding::F32, false},
    {"row_int8", WeightEncoding::RowInt8, 8, 96, WeightEncoding::F32, false},
    {"fp8_tensor", WeightEncoding::FP8, 8, 1, WeightEncoding::F32, false},
    {"fp8_row", WeightEncoding::FP8, 8, 1, WeightEncoding::BF16, false},
    {"fp8_block", WeightEncoding::FP8, 8, 32, WeightEncoding::F32, false},
    {"split_mxfp4", WeightEncoding::SplitMXFP4, 4, 32, WeightEncoding::F32, true},
};

WeightSource sourceOf(const Case &c, const Data &data) {
  const std::string name = c.name;
  WeightSource source;
  source.name = name;
  source.encoding = c.encoding;
  source.rows = 48;
  source.columns = 96;
  source.bits = c.bits;
  source.block = c.block;
  source.scaleEncoding = c.scales;
  source.data = data(name + ".data");
  source.scales = data(name + ".scales");
  source.zeroPoints = data(name + (c.encoding == WeightEncoding::NF4 ? ".levels" : ".zeros"));
  source.groupIndex = data(name + ".index");
  source.nestedScales = data(name + ".nested_scales");
  source.nestedLevels = data(name + ".nested_levels");
  source.scaleOffset = 0.0625f;
  return source;
}

class CheckpointForms : public testing::TestWithParam<Case> {};

TEST_P(CheckpointForms, givesTheValuesOfItsReadersBitForBit) {
  const Data data;
  const WeightSource source = sourceOf(GetParam(), data);
  ASSERT_TRUE(source.check().isOk()) << source.check().message();
  const auto want = data(std::string(GetParam().name) + ".want");
  ASSERT_EQ(want.size(), 48u * 96 * 4);
  std::vector<float> values(48 * 96);
  ASSERT_TRUE(source.readRows(0, 48, values.data()).isOk());
  EXPECT_EQ(std::memcmp(values.data(), want.data(), want.size()), 0);
  std::vector<float> some(3 * 96);
  ASSERT_TRUE(source.readRows(17, 20, some.data()).isOk());
  EXPECT_EQ(std::memcmp(some.data(), want.data() + 17 * 96 * 4, some.size() * 4), 0);
}

TEST_P(CheckpointForms, mapsOntoGroupedIntegersWithoutRounding) {
  const Data data;
  const WeightSource source = sourceOf(GetParam(), data);
  const std::optional<WeightFormat> format = source.quantizedFormat();
  ASSERT_EQ(format.has_value(), GetParam().exact);
  if (!format)
    return;
  QuantizedRows rows;
  ASSERT_TRUE(source.readQuantizedRows(0, 48, *format, rows).isOk());
  const auto want = data(std::string(GetParam().name) + ".want");
  for (uint64_t r = 0; r != 48; ++r)
    for (uint64_t c = 0; c != 96; ++c) {
      const QuantizedRow row = rows.row(r);
      const uint64_t g = c / format->group;
      float wanted;
      std::memcpy(&wanted, want.data() + 4 * (r * 96 + c), 4);
      const float value = decodeValue(*format, row.q[c], row.scales[g], row.mins ? row.mins[g] : 0);
      if (source.exactMinimums())
        ASSERT_EQ(value, wanted) << r << ", " << c;
      else
        ASSERT_NEAR(value, wanted, (15 * row.scales[g] + std::abs(row.mins[g])) * 1.2e-7f)
            << r << ", " << c;
    }
}

TEST_P(CheckpointForms, refusesWrongSizes) {
  const Data data;
  const WeightSource good = sourceOf(GetParam(), data);
  for (auto member :
       {&WeightSource::data, &WeightSource::scales, &WeightSource::zeroPoints,
        &WeightSource::groupIndex, &WeightSource::nestedScales, &WeightSource::nestedLevels}) {
    if ((good.*member).empty())
      continue;
    WeightSource bad = good;
    bad.*member = (bad.*member).first((bad.*member).size() - 1);
    EXPECT_FALSE(bad.check().isOk());
  }
  WeightSource huge = good;
  huge.rows = uint64_t(1) << 60;
  EXPECT_FALSE(huge.check().isOk());
  WeightSource noGroup = good;
  noGroup.block = 0;
  EXPECT_FALSE(noGroup.check().isOk());
}

TEST(CheckpointFormsInvalid, groupIndexOutOfRange) {
  const Data data;
  WeightSource source = sourceOf(kCases[3], data);
  std::vector<uint8_t> index(source.groupIndex.begin(), source.groupIndex.end());
  source.groupIndex = index;
  for (uint8_t bad : {6, 255}) {
    index[4 * 5] = bad;
    EXPECT_NE(source.check().message().find("the group of column 5 is " + std::to_string(bad)),
              std::string::npos)
        << source.check().message();
  }
}

/// A matrix of 4-bit words, read as f32.
std::vector<float> readWords(WeightEncoding encoding, uint64_t rows, uint64_t columns,
                             uint64_t block, const std::vector<uint32_t> &codes,
                             const std::vector<uint32_t> &zeros, const std::vector<float> &scales) {
  const auto bytes = [](const auto &v) {
    return std::span(reinterpret_cast<const uint8_t *>(v.data()), v.size() * 4);
  };
  WeightSource source;
  source.name = "w";
  source.encoding = encoding;
  source.rows = rows, source.columns = columns, source.block = block;
  source.data = bytes(codes), source.zeroPoints = bytes(zeros), source.scales = bytes(scales);
  EXPECT_TRUE(source.check().isOk()) << source.check().message();
  std::vector<float> values(rows * columns);
  EXPECT_TRUE(source.readRows(0, rows, values.data()).isOk());
  return values;
}
using Floats = std::vector<float>;

/// Case Q01: old files store a zero point one too small, new ones as it is; both are of 8 columns
/// of codes 9 and a word of zero points 7.
TEST(Gptq, zeroPointsOfBothVersions) {
  const auto read = [](WeightEncoding encoding) {
    return readWords(encoding, 8, 8, 8, std::vector<uint32_t>(8, 0x99999999), {0x77777777},
                     Floats(8, 0.5f));
  };
  EXPECT_EQ(read(WeightEncoding::Gptq), Floats(64, 0.5f));
  EXPECT_EQ(read(WeightEncoding::GptqV2), Floats(64, 1.0f));
}

/// Case Q10: one group over all of K.
TEST(Gptq, oneGroupForARow) {
  EXPECT_EQ(readWords(WeightEncoding::Gptq, 8, 64, 64, std::vector<uint32_t>(64, 0x99999999),
                      {0x77777777}, Floats(8, 0.5f)),
            Floats(8 * 64, 0.5f));
}

/// Case Q03: nibbles of codes and of zero points lie in one order.
TEST(Awq, nibblesInterleaveInCodesAndZeroPoints) {
  const auto firstColumn = [](uint32_t codes, uint32_t zeros) {
    std::vector<uint32_t> words(8, codes);
    Floats all = readWords(WeightEncoding::Awq, 8, 8, 8, words, {zeros}, Floats(8, 1.0f)), column;
    for (size_t row = 0; row != 8; ++row) {
      column.push_back(all[row * 8]);
      for (size_t k = 0; k != 8; ++k)
        EXPECT_EQ(all[row * 8 + k], column.back());
    }
    return column;
  };
  EXPECT_EQ(firstColumn(0x76543210, 0x88888888), Floats({-8, -4, -7, -3, -6, -2, -5, -1}));
  EXPECT_EQ(firstColumn(0x88888888, 0x76543210), Floats({8, 4, 7, 3, 6, 2, 5, 1}));
}

TEST(Fp8, valuesAtTheBorders) {
  EXPECT_EQ(fp8ToFloat(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(fp8ToFloat(0x7e), 448.0f);
  EXPECT_EQ(fp8ToFloat(0xfe), -448.0f);
  EXPECT_EQ(fp8ToFloat(0x38), 1.0f);
  EXPECT_TRUE(std::isnan(fp8ToFloat(0x7f)));
}

INSTANTIATE_TEST_SUITE_P(All, CheckpointForms, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace

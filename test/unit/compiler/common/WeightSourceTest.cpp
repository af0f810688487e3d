#include "compiler/import/common/WeightSource.h"

#include "compiler/quantize/HalfFloat.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

using namespace llmc;

namespace {

std::vector<uint8_t> readFile(const std::string &name) {
  std::ifstream in(std::string(LLMC_TEST_DATA) + "/encodings/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename T> std::vector<uint8_t> bytesOf(const std::vector<T> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> readAll(const WeightSource &source) {
  std::vector<float> values(source.logicalRows() * source.logicalColumns(), -99);
  const llmrt::Status status = source.readRows(0, source.logicalRows(), values.data());
  EXPECT_TRUE(status.isOk()) << status.message();
  return values;
}

/// What the integers of a source stand for.
std::vector<float> readIntegers(const WeightSource &source) {
  QuantizedRows rows;
  const auto format = source.quantizedFormat();
  EXPECT_TRUE(format.has_value());
  const llmrt::Status status = source.readQuantizedRows(0, source.logicalRows(), *format, rows);
  EXPECT_TRUE(status.isOk()) << status.message();
  std::vector<float> values;
  for (uint64_t r = 0; r != rows.rows; ++r)
    for (uint64_t c = 0; c != rows.columns; ++c) {
      const QuantizedRow row = rows.row(r);
      const uint64_t group = c / format->group;
      values.push_back(
          decodeValue(*format, row.q[c], row.scales[group], row.mins ? row.mins[group] : 0));
    }
  return values;
}

class GgufBlocks : public ::testing::TestWithParam<WeightEncoding> {};

TEST_P(GgufBlocks, givesTheValuesOfTheReferencePackageBitForBit) {
  const std::string name = encodingName(GetParam());
  const std::vector<uint8_t> data = readFile(name + ".bin"), wanted = readFile(name + ".f32");
  // At an odd address (case R09), with something behind it that must not be read.
  std::vector<uint8_t> moved(data.size() + 1);
  std::ranges::copy(data, moved.begin() + 1);
  WeightSource source{.name = name, .encoding = GetParam(), .rows = 2, .columns = 512};
  source.data = std::span(moved).subspan(1);
  ASSERT_TRUE(source.check().isOk()) << source.check().message();
  EXPECT_EQ(bytesOf(readAll(source)), wanted);
  EXPECT_EQ(bytesOf(readIntegers(source)), wanted);
  EXPECT_TRUE(source.exactMinimums());

  std::vector<float> second(512);
  ASSERT_TRUE(source.readRows(1, 2, second.data()).isOk());
  EXPECT_EQ(std::memcmp(second.data(), wanted.data() + 2048, 2048), 0);
}

TEST_P(GgufBlocks, keepsScalesThatTheFormatCanHold) {
  const std::string name = encodingName(GetParam());
  const std::vector<uint8_t> data = readFile(name + ".bin");
  WeightSource source{
      .name = name, .encoding = GetParam(), .rows = 2, .columns = 512, .data = data};
  QuantizedRows rows;
  const WeightFormat format = *source.quantizedFormat();
  ASSERT_TRUE(isValidFormat(format));
  ASSERT_TRUE(source.readQuantizedRows(0, 2, format, rows).isOk());
  EXPECT_EQ(rows.mins.size(), format.hasMin ? rows.scales.size() : 0);
  if (format.scale == Element::F16)
    for (const std::vector<float> &list : {rows.scales, rows.mins})
      for (float value : list)
        EXPECT_EQ(roundToHalf(value), value);
  if (format.element == Element::I4)
    for (uint8_t code : rows.codes)
      EXPECT_LT(code, 16);
}

INSTANTIATE_TEST_SUITE_P(
    All, GgufBlocks,
    ::testing::Values(WeightEncoding::Q4_0, WeightEncoding::Q4_1, WeightEncoding::Q5_0,
                      WeightEncoding::Q5_1, WeightEncoding::Q8_0, WeightEncoding::Q4_K,
                      WeightEncoding::Q5_K, WeightEncoding::Q6_K, WeightEncoding::Q2_K,
                      WeightEncoding::Q3_K, WeightEncoding::IQ4_NL, WeightEncoding::IQ4_XS,
                      WeightEncoding::TQ1_0, WeightEncoding::TQ2_0, WeightEncoding::MXFP4,
                      WeightEncoding::IQ1_S, WeightEncoding::IQ1_M, WeightEncoding::IQ2_XXS,
                      WeightEncoding::IQ2_XS, WeightEncoding::IQ2_S, WeightEncoding::IQ3_XXS,
                      WeightEncoding::IQ3_S),
    [](const auto &info) { return encodingName(info.param); });

TEST(HalfFloat, convertsEveryHalfExactly) {
  for (uint32_t bits = 0; bits != 65536; ++bits) {
    const float wanted = static_cast<float>(std::bit_cast<_Float16>(uint16_t(bits)));
    const float got = halfToFloat(uint16_t(bits));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got));
      continue;
    }
    EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(wanted)) << bits;
    EXPECT_EQ(floatToHalf(got), bits);
  }
}

TEST(HalfFloat, roundsToNearestEven) {
  for (uint64_t i = 0; i < (uint64_t(1) << 32); i += 4099) { // a prime step through all floats
    const float value = std::bit_cast<float>(uint32_t(i));
    if (std::isnan(value))
      continue;
    EXPECT_EQ(floatToHalf(value), std::bit_cast<uint16_t>(static_cast<_Float16>(value))) << value;
  }
  EXPECT_EQ(roundToHalf(1.0f + 1.0f / 2048), 1.0f);              // a tie, down to even
  EXPECT_EQ(roundToHalf(1.0f + 3.0f / 2048), 1.0f + 1.0f / 512); // a tie, up to even
  EXPECT_EQ(floatToHalf(65519.9f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
}

TEST(WeightSource, readsFloatsAtOddAddresses) { // case R09
  const std::vector<float> values = {1, -2.5f, 0, 3e-39f, 65504, 7};
  std::vector<uint8_t> f32(1), f16(1), bf16(1), f64(1);
  for (float v : values) {
    const auto add = [](std::vector<uint8_t> &to, auto bits) {
      const auto *p = reinterpret_cast<const uint8_t *>(&bits);
      to.insert(to.end(), p, p + sizeof(bits));
    };
    add(f32, v);
    add(f64, double(v));
    add(f16, floatToHalf(v));
    add(bf16, uint16_t(std::bit_cast<uint32_t>(v) >> 16));
  }
  const auto make = [](WeightEncoding e, const std::vector<uint8_t> &bytes) {
    return WeightSource{
        .name = "w", .encoding = e, .rows = 2, .columns = 3, .data = std::span(bytes).subspan(1)};
  };
  EXPECT_EQ(readAll(make(WeightEncoding::F32, f32)), values);
  EXPECT_EQ(readAll(make(WeightEncoding::F64, f64)), values);
  EXPECT_EQ(readAll(make(WeightEncoding::F16, f16)),
            (std::vector<float>{1, -2.5f, 0, 0, 65504, 7}));
  EXPECT_EQ(readAll(make(WeightEncoding::BF16, bf16))[1], -2.5f);

  WeightSource turned = make(WeightEncoding::F32, f32);
  turned.transposed = true;
  EXPECT_EQ(readAll(turned), (std::vector<float>{1, 3e-39f, -2.5f, 65504, 0, 7}));
}

TEST(WeightSource, transposesWideMatrices) { // more rows than one run of neighbours
  const uint64_t rows = 5, columns = 150;
  std::vector<float> stored(rows * columns);
  for (size_t i = 0; i != stored.size(); ++i)
    stored[i] = float(i);
  const std::vector<uint8_t> bytes = bytesOf(stored);
  WeightSource source{
      .name = "w", .rows = rows, .columns = columns, .transposed = true, .data = bytes};
  const std::vector<float> read = readAll(source);
  for (uint64_t r = 0; r != columns; ++r)
    for (uint64_t c = 0; c != rows; ++c)
      ASSERT_EQ(read[r * rows + c], stored[c * columns + r]);
}

TEST(WeightSource, refusesSizesThatDoNotFit) {
  const std::vector<uint8_t> bytes(36);
  const auto check = [&](WeightEncoding e, uint64_t rows, uint64_t columns) {
    WeightSource source{
        .name = "blk.0.w", .encoding = e, .rows = rows, .columns = columns, .data = bytes};
    return source.check();
  };
  EXPECT_TRUE(check(WeightEncoding::F32, 3, 3).isOk());
  EXPECT_TRUE(check(WeightEncoding::Q4_0, 2, 32).isOk());
  for (const llmrt::Status &status :
       {check(WeightEncoding::F32, 3, 4), check(WeightEncoding::F32, 1u << 31, uint64_t(1) << 40),
        check(WeightEncoding::F32, (uint64_t(1) << 62) + 9, 1), check(WeightEncoding::Q4_0, 2, 31),
        check(WeightEncoding::Q4_0, 1, 32), check(WeightEncoding::Q4_K, 1, 32)}) {
    EXPECT_FALSE(status.isOk());
    EXPECT_NE(status.message().find("blk.0.w"), std::string::npos) << status.message();
  }
}

TEST(WeightSource, namesThePlaceOfWhatIsNotFinite) {
  std::vector<float> values(12, 1.0f);
  values[7] = std::nanf("");
  const std::vector<uint8_t> bytes = bytesOf(values);
  WeightSource source{.name = "head", .rows = 3, .columns = 4, .data = bytes};
  std::vector<float> read(12);
  EXPECT_TRUE(source.readRows(0, 1, read.data()).isOk());
  const llmrt::Status status = source.readRows(1, 3, read.data());
  ASSERT_FALSE(status.isOk());
  EXPECT_NE(status.message().find("'head': the value at row 1, column 3 is NaN"), std::string::npos)
      << status.message();

  // An infinite scale in a q8_0 block.
  std::vector<uint8_t> block(34, 1);
  block[0] = 0, block[1] = 0x7c;
  WeightSource packed{
      .name = "p", .encoding = WeightEncoding::Q8_0, .rows = 1, .columns = 32, .data = block};
  QuantizedRows rows;
  read.resize(32);
  EXPECT_FALSE(packed.readRows(0, 1, read.data()).isOk());
  EXPECT_FALSE(packed.readQuantizedRows(0, 1, *packed.quantizedFormat(), rows).isOk());
}

//===- separate scales ------------------------------------------------------===//

struct NBits {
  std::vector<uint8_t> data, scales, zeros;
  WeightSource source(uint64_t rows, uint64_t columns, uint64_t block, uint32_t bits = 4) const {
    WeightSource s{
        .name = "q", .encoding = WeightEncoding::NBits, .rows = rows, .columns = columns};
    s.data = data;
    s.scales = scales;
    s.zeroPoints = zeros;
    s.block = block;
    s.bits = bits;
    EXPECT_TRUE(s.check().isOk()) << s.check().message();
    return s;
  }
};

TEST(NBits, ignoresThePaddingOfAShortLastBlock) { // case Q04
  for (uint8_t padding : {uint8_t(0x99), uint8_t(0xff), uint8_t(0)}) {
    NBits n{std::vector<uint8_t>(32, 0x99), bytesOf<float>({0.5f, 0.25f}), {}};
    std::fill(n.data.begin() + 20, n.data.end(), padding);
    const WeightSource source = n.source(1, 40, 32);
    for (const std::vector<float> &values : {readAll(source), readIntegers(source)}) {
      float sum = 0;
      for (float v : values)
        sum += v;
      EXPECT_EQ(sum, 18.0f);
    }
    EXPECT_FALSE(source.quantizedFormat()->hasMin);
  }
}

TEST(NBits, takesEveryBlockSize) { // case Q06
  for (uint64_t block : {16, 32, 64, 128, 256, 512, 1024}) {
    const uint64_t blocks = 2048 / block;
    NBits n;
    n.data.assign(4 * 1024, 0x22);
    n.scales = bytesOf(std::vector<float>(4 * blocks, 0.5f));
    n.zeros.assign(4 * ((blocks + 1) / 2), 0x33);
    const WeightSource source = n.source(4, 2048, block);
    for (float v : readAll(source))
      ASSERT_EQ(v, -0.5f);
    EXPECT_EQ(readIntegers(source), readAll(source));
  }
}

TEST(NBits, readsAllCodesAgainstAllZeroPoints) { // case Q02: (q - z) * s, nothing wraps
  for (int zero = 0; zero != 16; ++zero)
    for (bool floats : {false, true}) {
      NBits n;
      for (int i = 0; i != 16; ++i)
        n.data.push_back(uint8_t((2 * i) % 16 | (2 * i + 1) % 16 << 4));
      n.scales = bytesOf<uint16_t>({floatToHalf(0.25f)});
      n.zeros = {uint8_t(zero)};
      if (floats)
        n.zeros = bytesOf<uint16_t>({floatToHalf(float(zero))});
      WeightSource source{.name = "q",
                          .encoding = WeightEncoding::NBits,
                          .rows = 1,
                          .columns = 32,
                          .data = n.data,
                          .scales = n.scales,
                          .zeroPoints = n.zeros,
                          .scaleEncoding = WeightEncoding::F16,
                          .block = 32};
      ASSERT_TRUE(source.check().isOk()) << source.check().message();
      const std::vector<float> values = readAll(source);
      for (int i = 0; i != 32; ++i)
        ASSERT_EQ(values[i], float(i % 16 - zero) * 0.25f);
      EXPECT_EQ(readIntegers(source), values);
      EXPECT_EQ(source.quantizedFormat()->hasMin, zero != 8);
      EXPECT_EQ(source.exactMinimums(), zero == 8 || !floats);
    }
}

TEST(NBits, readsEightBits) {
  NBits n;
  for (int i = 0; i != 64; ++i)
    n.data.push_back(uint8_t(i * 4));
  n.scales = bytesOf<float>({0.5f, 2.0f});
  WeightSource source = n.source(2, 32, 32, 8);
  EXPECT_EQ(readAll(source)[1], -62.0f);
  EXPECT_EQ(readAll(source)[63], 248.0f);
  EXPECT_EQ(readIntegers(source), readAll(source));
  n.zeros = {3, 200};
  source = n.source(2, 32, 32, 8);
  EXPECT_EQ(readAll(source)[1], 0.5f);
  EXPECT_EQ(readIntegers(source), readAll(source));
}

TEST(BlockInt, readsBlocksDownTheColumnsOfATransposedMatrix) {
  // ONNX: int4 [K = 40, N = 3], scales [2, 3], axis 0, block 32; we read [3, 40].
  std::vector<uint8_t> data(60);
  std::vector<float> wanted(120);
  const std::vector<float> scales = {1, 2, 4, 0.5f, 0.25f, 0.125f};
  for (int k = 0; k != 40; ++k)
    for (int n = 0; n != 3; ++n) {
      const int code = (k * 5 + n * 3) % 16 - 8, index = k * 3 + n;
      data[index / 2] |= uint8_t((code & 15) << 4 * (index % 2));
      wanted[n * 40 + k] = float(code) * scales[k / 32 * 3 + n];
    }
  const std::vector<uint8_t> scaleBytes = bytesOf(scales);
  WeightSource source{.name = "dq",
                      .encoding = WeightEncoding::BlockInt4,
                      .rows = 40,
                      .columns = 3,
                      .transposed = true,
                      .data = data,
                      .scales = scaleBytes,
                      .block = 32,
                      .blocksDown = true,
                      .signedCodes = true};
  ASSERT_TRUE(source.check().isOk()) << source.check().message();
  EXPECT_EQ(readAll(source), wanted);
  EXPECT_EQ(readIntegers(source), wanted);
  EXPECT_FALSE(source.quantizedFormat()->hasMin);

  source.transposed = false; // now the blocks run across the rows: floats only
  EXPECT_FALSE(source.quantizedFormat().has_value());
  EXPECT_EQ(readAll(source)[3], wanted[1]);
}

TEST(BlockInt, readsUnsignedBytesWithZeroPoints) {
  std::vector<uint8_t> data(80), zeros = {0, 128, 255, 7};
  for (size_t i = 0; i != data.size(); ++i)
    data[i] = uint8_t(i * 37);
  const std::vector<uint8_t> scales = bytesOf<float>({1, 0.5f, 2, 0.25f});
  WeightSource source{.name = "dq",
                      .encoding = WeightEncoding::BlockInt8,
                      .rows = 2,
                      .columns = 40,
                      .data = data,
                      .scales = scales,
                      .zeroPoints = zeros,
                      .block = 32};
  ASSERT_TRUE(source.check().isOk()) << source.check().message();
  EXPECT_EQ(readAll(source)[33], (float(uint8_t(33 * 37)) - 128) * 0.5f);
  EXPECT_EQ(readIntegers(source), readAll(source));
}

TEST(BlockInt, refusesSizesThatDoNotFit) {
  NBits n{std::vector<uint8_t>(32), bytesOf<float>({1, 1}), {}};
  WeightSource good = n.source(1, 40, 32), bad = good;
  bad.block = 0;
  EXPECT_FALSE(bad.check().isOk());
  bad = good, bad.data = bad.data.first(31);
  EXPECT_FALSE(bad.check().isOk());
  bad = good, bad.scales = bad.scales.first(4);
  EXPECT_FALSE(bad.check().isOk());
  bad = good, bad.zeroPoints = bad.data.first(3);
  EXPECT_FALSE(bad.check().isOk());
  bad = good, bad.bits = 3;
  EXPECT_FALSE(bad.check().isOk());
  bad = good, bad.rows = uint64_t(1) << 60, bad.columns = uint64_t(1) << 60;
  EXPECT_FALSE(bad.check().isOk());
  bad = good, bad.scaleEncoding = WeightEncoding::Q8_0;
  EXPECT_FALSE(bad.check().isOk());
}

} // namespace

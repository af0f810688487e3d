#include "compiler/import/common/WeightView.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace llmc;

namespace {

/// A matrix whose value at (r, c) is 100 r + c + base.
WeightView numbered(uint64_t rows, uint64_t columns, float base = 0) {
  std::vector<float> values;
  for (uint64_t r = 0; r != rows; ++r)
    for (uint64_t c = 0; c != columns; ++c)
      values.push_back(float(100 * r + c) + base);
  return WeightView::values("m", std::move(values), rows, columns);
}

std::vector<float> read(const WeightView &view, uint64_t begin, uint64_t end) {
  std::vector<float> values((end - begin) * view.columnCount(), -99);
  const llmrt::Status status = view.readRows(begin, end, values.data());
  EXPECT_TRUE(status.isOk()) << status.message();
  return values;
}
std::vector<float> read(const WeightView &view) { return read(view, 0, view.rowCount()); }

std::vector<float> rowNumbers(const WeightView &view) { // of a view with one column
  std::vector<float> numbers = read(view);
  for (float &n : numbers)
    n /= 100;
  return numbers;
}

TEST(WeightView, undoesTheRotationOrderOfEachHead) { // case Q14
  // GGUF keeps rows [0, 2, 1, 3] (d = 4) and [0, 4, 1, 5, 2, 6, 3, 7] (d = 8) of each head.
  const std::vector<float> stored4 = {0, 2, 1, 3, 4, 6, 5, 7};
  WeightView four = WeightView::unpermute(WeightView::values("k", stored4, 8, 1), 2);
  EXPECT_EQ(read(four), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  const std::vector<float> stored8 = {0, 4, 1, 5, 2, 6, 3, 7};
  WeightView eight = WeightView::unpermute(WeightView::values("k", stored8, 8, 1), 1);
  EXPECT_EQ(read(eight), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  // With the query's count of heads for K the order would stay as it is: wrong.
  EXPECT_EQ(read(WeightView::unpermute(WeightView::values("k", stored4, 8, 1), 4)), stored4);
}

TEST(WeightView, joinsAndSlices) {
  const WeightView joined =
      WeightView::concat({numbered(2, 3), numbered(1, 3, 0.5f), numbered(3, 3, 0.25f)});
  EXPECT_EQ(joined.rowCount(), 6u);
  EXPECT_EQ(read(joined, 1, 4),
            (std::vector<float>{100, 101, 102, 0.5f, 1.5f, 2.5f, 0.25f, 1.25f, 2.25f}));
  EXPECT_EQ(read(WeightView::rows(joined, 2, 2)), read(joined, 2, 4));
  EXPECT_EQ(WeightView::rows(joined, 6, 0).rowCount(), 0u);
}

TEST(WeightView, stacksWithPadding) {
  const WeightView stack = WeightView::stack({numbered(18, 2), numbered(18, 2, 0.5f)});
  ASSERT_EQ(stack.rowCount(), 64u);
  EXPECT_EQ(read(stack, 17, 19), (std::vector<float>{1700, 1701, 0, 0}));
  EXPECT_EQ(read(stack, 31, 33), (std::vector<float>{0, 0, 0.5f, 1.5f}));
  EXPECT_EQ(read(stack, 49, 64).front(), 1700.5f);
  EXPECT_EQ(read(stack, 50, 64), std::vector<float>(28, 0.0f));
}

/// An expert of a tensor [experts, in, out], turned around.
TEST(WeightView, transposesRowsOfATensor) {
  std::vector<float> values(6 * 2);
  for (size_t i = 0; i != values.size(); ++i)
    values[i] = static_cast<float>(i);
  WeightSource source;
  source.name = "experts";
  source.rows = 6;
  source.columns = 2;
  source.data = {reinterpret_cast<const uint8_t *>(values.data()), values.size() * 4};
  const WeightView part = WeightView::rows(WeightView::source(source), 3, 3);
  EXPECT_EQ(read(part), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(read(WeightView::transpose(part)), (std::vector<float>{6, 8, 10, 7, 9, 11}));
}

TEST(WeightView, interleavesTilesAndPadsThem) {
  const WeightView both = WeightView::interleave(numbered(18, 1), numbered(18, 1, 0.5f));
  ASSERT_EQ(both.rowCount(), 64u);
  const std::vector<float> values = read(both);
  EXPECT_EQ(values[15], 1500.0f);
  EXPECT_EQ(values[16], 0.5f);
  EXPECT_EQ(values[31], 1500.5f);
  EXPECT_EQ(values[33], 1700.0f);
  EXPECT_EQ(values[34], 0.0f);
  EXPECT_EQ(values[49], 1700.5f);
  EXPECT_EQ(values[63], 0.0f);
  EXPECT_EQ(read(both, 30, 36), std::vector<float>(values.begin() + 30, values.begin() + 36));
}

TEST(WeightView, transposesAnything) {
  const WeightView m = numbered(3, 4);
  const WeightView t = WeightView::transpose(m);
  EXPECT_EQ(t.rowCount(), 4u);
  EXPECT_EQ(read(t, 1, 3), (std::vector<float>{1, 101, 201, 2, 102, 202}));
  EXPECT_EQ(read(WeightView::transpose(t)), read(m));
  const WeightView joined = WeightView::concat({m, numbered(2, 4, 0.5f)});
  EXPECT_EQ(read(WeightView::transpose(joined), 3, 4),
            (std::vector<float>{3, 103, 203, 3.5f, 103.5f}));
}

TEST(WeightView, reshapes) {
  const WeightView m = numbered(2, 6);
  EXPECT_EQ(read(WeightView::reshape(m, 3, 4), 1, 2), (std::vector<float>{4, 5, 100, 101}));
  EXPECT_EQ(read(WeightView::reshape(m, 1, 12)), read(m));
}

TEST(WeightView, composes) {
  const WeightView q = WeightView::unpermute(numbered(8, 1), 1);
  EXPECT_EQ(rowNumbers(WeightView::rows(WeightView::concat({q, q}), 6, 4)),
            (std::vector<float>{5, 7, 0, 2}));
}

//===- integers -------------------------------------------------------------===//

/// Rows of q8_0: scale 1, all codes of row r are r.
struct Q8Rows {
  explicit Q8Rows(uint8_t rows) {
    for (uint8_t r = 0; r != rows; ++r) {
      bytes.insert(bytes.end(), {0x00, 0x3c});
      bytes.insert(bytes.end(), 32, r);
    }
    source = {.name = "q8", .encoding = WeightEncoding::Q8_0, .rows = rows, .columns = 32};
    source.data = bytes;
  }
  std::vector<uint8_t> bytes;
  WeightSource source;
};

TEST(WeightView, keepsIntegersThroughRowOrders) {
  const Q8Rows q(18), k(4);
  const WeightView a = WeightView::source(q.source), b = WeightView::source(k.source);
  const WeightView view =
      WeightView::concat({WeightView::interleave(a, a), WeightView::unpermute(b, 1)});
  ASSERT_TRUE(view.quantizedFormat().has_value());
  QuantizedRows rows;
  for (uint64_t begin = 0; begin < view.rowCount(); begin += 5) {
    const uint64_t end = std::min(view.rowCount(), begin + 5);
    ASSERT_TRUE(view.readQuantizedRows(begin, end, rows).isOk());
    const std::vector<float> values = read(view, begin, end);
    for (uint64_t i = 0; i != values.size(); ++i)
      ASSERT_EQ(decodeValue(rows.format, rows.codes[i], rows.scales[i / 32], 0), values[i]);
  }
}

TEST(WeightView, hasNoIntegersWhenPartsDiffer) {
  const Q8Rows q(4);
  const WeightView a = WeightView::source(q.source), f = numbered(4, 32);
  EXPECT_FALSE(WeightView::concat({a, f}).quantizedFormat().has_value());
  EXPECT_FALSE(WeightView::transpose(a).quantizedFormat().has_value());
  EXPECT_FALSE(WeightView::reshape(a, 2, 64).quantizedFormat().has_value());
  EXPECT_EQ(read(WeightView::transpose(a), 0, 1), (std::vector<float>{0, 1, 2, 3}));
}

TEST(WeightView, tellsTheFloatTypeOfItsParts) {
  const std::vector<uint8_t> bytes(8);
  const WeightView half = WeightView::source(
      {.name = "h", .encoding = WeightEncoding::F16, .rows = 2, .columns = 2, .data = bytes});
  const WeightView brain = WeightView::source(
      {.name = "b", .encoding = WeightEncoding::BF16, .rows = 2, .columns = 2, .data = bytes});
  EXPECT_EQ(WeightView::transpose(half).floatElement(), Element::F16);
  EXPECT_EQ(WeightView::concat({half, half}).floatElement(), Element::F16);
  EXPECT_EQ(WeightView::concat({half, brain}).floatElement(), Element::F32);
}

} // namespace

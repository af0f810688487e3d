// Matrix products: each variant against f64 sums of the operands as the tensor cores get them, on
// odd shapes, in three orders of threads; the bits of a row are the same for every M.
#include "test/emulator/kernels/KernelCases.h"
#include "test/unit/codegen/RandomWeight.h"

#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

struct Case {
  const char *name;
  WeightFormat format;
  int64_t n, k, group = 0; ///< group 0: f32 activations
  bool glu = false, bias = false, residual = false;
  int64_t activation = 0;
  bool isLarge = false; ///< of the whole sweep only
};

const Case cases[] = {
    {"i4", n16k4(Element::I4, 32, Element::F16, false), 37, 76},
    {"i4_min_bias", n16k4(Element::I4, 32, Element::F16, true, Element::F16), 37, 75, 0, false,
     true, false, 1},
    {"i8_g16_int8_rows", n16k4(Element::I8, 16, Element::F16, false), 37, 40, 16},
    {"i8_one_group", n16k4(Element::I8, 16, Element::F16, false), 17, 12, 16},
    {"f16_glu", n16(Element::F16), 48, 83, 0, true, false, true, 1},
    {"bf16_slices", n16(Element::BF16), 19, 546, 0, false, true, true, 3},
    {"f32_residual", n16(Element::F32), 33, 51, 0, false, false, true},
    {"i8_int8_rows", n16k4(Element::I8, 32, Element::F16, false), 37, 75, 32, false, false, false,
     0, true},
    {"i4_g16", n16k4(Element::I4, 16, Element::F32, false), 33, 40, 0, false, false, false, 0,
     true},
    {"i4_g128_min", n16k4(Element::I4, 128, Element::F32, true, Element::F32), 33, 200, 0, false,
     false, false, 4, true},
    {"i4_slices_glu", n16k4(Element::I4, 32, Element::F16, false), 64, 2060, 0, true, false, false,
     1, true},
    {"i8_g16_min", n16k4(Element::I8, 16, Element::F32, true, Element::F16), 80, 75, 0, false,
     false, false, 2, true},
    {"i8_g256", n16k4(Element::I8, 256, Element::F32, false), 37, 300, 64, false, false, false, 0,
     true},
    {"i4_int8_rows", n16k4(Element::I4, 128, Element::F16, false), 34, 192, 128, true, false, false,
     1, true},
    {"f16_even", n16(Element::F16), 64, 256, 0, false, false, false, 0, true},
    {"f32_slices", n16(Element::F32), 37, 530, 0, false, true, false, 5, true},
    {"bf16_one", n16(Element::BF16), 1, 1, 0, false, false, false, 0, true},
};

KernelSpec spec(const Case &c) {
  return {c.name, "gemm",
          std::vector<KernelConstant>{{"k", c.k},
                                      {"n", c.n},
                                      {"x_int8", int64_t(c.group != 0)},
                                      {"group", c.group},
                                      {"task_tiles", int64_t(2)},
                                      {"glu", int64_t(c.glu)},
                                      {"bias", int64_t(c.bias)},
                                      {"residual", int64_t(c.residual)},
                                      {"activation", c.activation}} +
              formatConstants(c.format)};
}

const CudaModel model = {"test", "test", 256, 16, 1024, {}};

/// The rows of gate and up in alternating tiles of 16: the row of w that output \p column of half
/// \p up is.
int64_t gluRow(int64_t column, bool up) { return (column / 16 * 2 + up) * 16 + column % 16; }

class Gemm : public testing::TestWithParam<Case> {};

TEST_P(Gemm, MatchesTheReferenceForEveryM) {
  const Case &c = GetParam();
  std::mt19937 rng(7);
  const int64_t most = 129, outputs = c.glu ? c.n / 2 : c.n;
  // With glu all tiles are whole: as many rows as the tiles of both halves have.
  const int64_t rows = c.glu ? (outputs + 15) / 16 * 32 : c.n;
  const Weight w = makeWeight(rng, c.format, rows, c.k);
  std::vector<float> x = randomFloats(rng, size_t(most * c.k), -3, 3);
  const std::vector<float> bias = randomFloats(rng, size_t(outputs)),
                           residual = randomFloats(rng, size_t(most * outputs));
  const Element compute = c.format.packing == Packing::N16K4 ? Element::F16 : c.format.element;
  reference::QuantizedRows q;
  std::vector<float> operand = x;
  if (c.group) {
    q = reference::quantizeRows(most, c.k, c.group, x.data());
    for (int64_t i = 0; i < most; ++i)
      for (int64_t k = 0; k < c.k; ++k)
        operand[size_t(i * c.k + k)] = static_cast<float>(q.q[size_t(i * c.k + k)]) *
                                       q.scales[size_t(i * q.groups() + k / c.group)];
  }
  std::vector<double> want(size_t(most * outputs)), tolerance(want.size());
  for (int64_t i = 0; i < most; ++i)
    for (int64_t j = 0; j < outputs; ++j) {
      double sums[2] = {}, sizes[2] = {};
      for (int half = 0; half < (c.glu ? 2 : 1); ++half) {
        const float *row = &w.values[size_t((c.glu ? gluRow(j, half) : j) * c.k)];
        for (int64_t k = 0; k < c.k; ++k) {
          const double product =
              double(rounded(operand[size_t(i * c.k + k)], compute)) * rounded(row[k], compute);
          sums[half] += product, sizes[half] += std::fabs(product);
        }
      }
      // A weight with a minimum may round the other way.
      const double unit = c.format.hasMin ? 5e-5 : 2e-6;
      double v = sums[0] + (c.bias ? bias[size_t(j)] : 0), slack = unit * sizes[0];
      v = reference::activate(v, c.activation);
      if (c.glu) {
        slack = slack * std::fabs(sums[1]) + std::fabs(v) * unit * sizes[1] + 1e-6;
        v *= sums[1];
      }
      if (c.residual)
        v += residual[size_t(i * outputs + j)];
      want[size_t(i * outputs + j)] = v;
      tolerance[size_t(i * outputs + j)] = 1.2 * slack + 1e-6 * (1 + std::fabs(v));
    }

  const DeviceArray weights(
      std::vector<uint8_t>(w.packed.data(), w.packed.data() + w.packed.bytes()));
  const DeviceArray biasMemory(bias);
  std::vector<float> first;
  const std::vector<int64_t> sizes =
      wholeSweep()
          ? std::vector<int64_t>{129, 1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 100, 128}
          : std::vector<int64_t>{129, 1, 9, 17, 33};
  for (int64_t m : sizes)
    for (simt::Order order : allOrders) {
      if (!wholeSweep() && m != 33 && order != allOrders[m % 3])
        continue;
      simt::options().order = order;
      const std::vector<float> part(x.begin(), x.begin() + m * c.k);
      DeviceArray input(part);
      if (c.group) {
        const Buffer rowsOf =
            quantizedBuffer(reference::quantizeRows(m, c.k, c.group, part.data()));
        input = DeviceArray(std::vector<uint8_t>(rowsOf.data(), rowsOf.data() + rowsOf.bytes()));
      }
      DeviceArray y(size_t(m * outputs) * 4);
      std::vector<void *> bindings = {input.data(), weights.data()};
      if (c.bias)
        bindings.push_back(biasMemory.data());
      if (c.residual) { // in place
        y.write(residual.data(), y.bytes());
        bindings.push_back(y.data());
      }
      bindings.push_back(y.data());
      LlmrtCudaStep step{};
      step.T = m;
      // The bucket is larger than the step: blocks without rows return.
      StepSizes bucket;
      bucket.T = m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : m + 70;
      kernelsOf(spec(c), model).run(c.name, step, bucket, bindings);
      if (HasFatalFailure())
        return;
      const std::vector<float> got = y.read<float>();
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], want[i], tolerance[i])
            << "m " << m << " row " << i / size_t(outputs) << " column " << i % size_t(outputs);
      if (first.empty())
        first = got;
      ASSERT_EQ(std::memcmp(got.data(), first.data(), got.size() * 4), 0)
          << "other bits for m " << m;
    }
  simt::options().order = simt::Order::Forward;
}

INSTANTIATE_TEST_SUITE_P(Formats, Gemm, testing::ValuesIn(chosenCases(cases)), nameOfCase);

} // namespace

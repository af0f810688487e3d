// Draws on the device against decode/Sampler: the same tokens, whatever is asked for, in three
// orders of threads, for vocabularies that are no multiple of anything.
#include "runtime/decode/Noise.h"
#include "runtime/decode/Sampler.h"
#include "runtime/device/cuda/RowSampling.h"
#include "runtime/engine/DrawOnDevice.h"
#include "test/emulator/kernels/KernelCases.h"
#include "test/unit/codegen/RandomWeight.h"

#include <limits>

using namespace llmc;
using namespace llmc::test;
using llmrt::RowDraws;
using llmrt::SamplingParams;

namespace {

const CudaModel model = {"test", "test", 256, 16, 1024, {}};
constexpr float infinity = std::numeric_limits<float>::infinity();

/// The unit of a vocabulary, built when a test first asks.
EmulatedKernels &unitOf(int64_t vocabulary) {
  static std::map<int64_t, std::unique_ptr<EmulatedKernels>> all;
  std::unique_ptr<EmulatedKernels> &unit = all[vocabulary];
  if (!unit)
    unit = std::make_unique<EmulatedKernels>(emitCudaSampling(model, vocabulary));
  return *unit;
}

struct Row {
  std::vector<float> logits;
  SamplingParams params;
  uint64_t position = 0;
  std::vector<int32_t> bans = {};
  bool onDevice = true;
};

/// What the host draws: -1 for logits that are not finite, -2 where all is forbidden.
int32_t hostToken(const Row &row, int32_t vocabulary) {
  llmrt::Sampler sampler(vocabulary);
  llmrt::SamplingContext context;
  context.banned = row.bans;
  auto token = sampler.sample(std::span(row.logits).first(size_t(vocabulary)), row.params,
                              row.position, context);
  if (token)
    return token->id;
  return token.status().message() == llmrt::Sampler::notFinite(row.position).message() ? -1 : -2;
}

/// Draws all rows, with grids for more rows than there are, in three orders: each must equal the
/// host's token. \p vocabulary tokens of \p columns may be drawn.
void check(int64_t columns, int32_t vocabulary, const std::vector<Row> &rows) {
  EmulatedKernels &unit = unitOf(columns);
  const int64_t count = int64_t(rows.size());
  RowDraws draws(count);
  draws.begin(count, vocabulary, llmrt::ProbabilityMass::unit(size_t(vocabulary)));
  std::vector<float> logits;
  std::vector<LlmrtCudaRowSampling> sampling;
  std::vector<int32_t> want;
  for (int64_t i = 0; i < count; ++i) {
    const Row &row = rows[size_t(i)];
    ASSERT_EQ(int64_t(row.logits.size()), columns);
    logits.insert(logits.end(), row.logits.begin(), row.logits.end());
    if (row.onDevice)
      ASSERT_TRUE(llmrt::drawOnDevice(draws, i, row.params, row.position, row.bans, {}));
    want.push_back(row.onDevice ? hostToken(row, vocabulary) : -77);
    sampling.push_back(llmrt::cuda::cudaRowSampling(draws.row(i)));
  }
  std::vector<LlmrtCudaLogitChange> changes;
  for (const llmrt::LogitChange &c : draws.changes())
    changes.push_back({c.id, c.bias});
  DeviceArray samplings(sampling), changed(changes), xs(logits), tokens(size_t(count) * 4);
  LlmrtCudaStep step{};
  step.R = count;
  step.sampling = reinterpret_cast<const LlmrtCudaRowSampling *>(samplings.data());
  step.changes = reinterpret_cast<const LlmrtCudaLogitChange *>(changed.data());
  step.sampledVocabulary = draws.vocabulary();
  step.massUnit = draws.massUnit();
  StepSizes exact, bucket;
  exact.R = count, bucket.R = count + 2;
  DeviceArray scratch(size_t(evaluate(unit.entries().front().scratch, exact)));
  for (simt::Order order : allOrders) {
    simt::options().order = order;
    xs.write(logits.data(), logits.size() * 4); // rows with changes were overwritten
    const std::vector<int32_t> untouched(size_t(count), -77);
    tokens.write(untouched.data(), tokens.bytes());
    for (const CudaEntry &entry : unit.entries()) {
      unit.launchEntry(entry, step, bucket, pointers({&xs, &tokens}), scratch);
      if (testing::Test::HasFatalFailure())
        return;
    }
    ASSERT_EQ(tokens.read<int32_t>(), want);
  }
  simt::options().order = simt::Order::Forward;
  if (count == 0)
    return;
  // Without draws nothing is touched.
  step.sampling = nullptr;
  for (const CudaEntry &entry : unit.entries())
    unit.launchEntry(entry, step, bucket, pointers({&xs, &tokens}), scratch);
  EXPECT_EQ(tokens.read<int32_t>(), want);
}

std::vector<float> spread(std::mt19937 &rng, int64_t columns, float width, bool coarse = false) {
  std::vector<float> logits = randomFloats(rng, size_t(columns), -width, width);
  if (coarse) // many equal ones
    for (float &l : logits)
      l = float(int(l));
  return logits;
}

SamplingParams params(float temperature, int32_t topK = 0, float topP = 1, float minP = 0,
                      uint64_t seed = 7) {
  SamplingParams p;
  p.temperature = temperature;
  p.topK = topK;
  p.topP = topP;
  p.minP = minP;
  p.seed = seed;
  return p;
}

/// Rows that ask for everything in turn; from \p first on.
std::vector<Row> rowsOf(std::mt19937 &rng, int64_t columns, int count, int first = 0) {
  static const SamplingParams asked[] = {
      params(0),
      params(1),
      params(100, 0, 1, 0.5f), // most of what min-p drops would be drawn
      params(1.3f, 40),
      params(1, 0, 0.9f),
      params(0.8f, 20, 0.8f, 0.02f),
      params(100, 90),
      params(1, 0, 0.3f),
      params(1, 0, 0.9999f),
      params(0.01f),
      params(1, 1),
      params(1, 0, 0),
      params(5, 0, 0.999999f, 1e-6f),
      params(1, 7, 0.5f)};
  std::vector<Row> rows;
  for (int i = first; i < first + count; ++i) {
    Row row;
    row.params = asked[size_t(i) % std::size(asked)];
    row.params.seed = uint64_t(i) * 77;
    row.params.stream = uint32_t(i % 3);
    row.position = uint64_t(i * i);
    const float widths[] = {4, 0.01f, 12, 80, 3};
    row.logits = spread(rng, columns, widths[i % 5], i % 3 == 1);
    row.onDevice = i % 11 != 5;
    if (i % 2 == 1)
      for (int j = 0; j < 5; ++j)
        row.params.logitBias.push_back({int32_t(int64_t(i + j * 13) % columns), float(j * 2 - 3)});
    if (i % 4 >= 2) { // one of them biased, where there are biases
      const int32_t biased = int32_t((i + 39) % columns);
      row.bans = {biased, int32_t(columns - 1), biased};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

TEST(Sampling, ExpLogAndNoiseHaveTheHostsBits) {
  CudaUnit unit;
  unit.family = "bits";
  unit.text = R"(#include "sampling.cuh"
extern "C" __global__ void __launch_bounds__(32, 1)
    bits(const LlmrtCudaStep *step, LlmrtCudaBindings b) {
  for (int i = threadIdx.x; i < step->T; i += 32) {
    const float x = binding<const float>(b, 0)[i];
    binding<float>(b, 1)[i] = fixedExp(x);
    binding<double>(b, 2)[i] = fixedLog(1e-3 - static_cast<double>(x));
    binding<u64>(b, 3)[i] = noiseBits(binding<const u64>(b, 4)[0], i);
  }
}
)";
  unit.entries.emplace_back();
  unit.entries.back().name = "bits";
  unit.entries.back().block = 32;
  EmulatedKernels kernels(unit);
  std::vector<float> x;
  for (int i = 0; i < 4000; ++i)
    x.push_back(i < 2000 ? float(i) * -0.05f : float(i) * -1e-3f);
  const llmrt::PositionNoise noise(5, 1, 17);
  const DeviceArray xs(x), key(std::vector<uint64_t>{noise.key()}), none(0);
  DeviceArray exps(x.size() * 4), logs(x.size() * 8), bits(x.size() * 8);
  LlmrtCudaStep step{};
  step.T = int64_t(x.size());
  kernels.launchEntry(kernels.entries()[0], step, {}, pointers({&xs, &exps, &logs, &bits, &key}),
                      none);
  const std::vector<float> gotExps = exps.read<float>();
  const std::vector<double> gotLogs = logs.read<double>();
  const std::vector<uint64_t> gotBits = bits.read<uint64_t>();
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(gotExps[i], llmrt::fixedExpf(x[i])) << x[i];
    ASSERT_EQ(gotLogs[i], llmrt::fixedLog(1e-3 - double(x[i]))) << x[i];
    ASSERT_EQ(gotBits[i], noise.bits(uint32_t(i)));
  }
}

class SamplingVocabulary : public testing::TestWithParam<int64_t> {};

TEST_P(SamplingVocabulary, EqualsTheHost) {
  std::mt19937 rng(3);
  check(GetParam(), int32_t(GetParam()), rowsOf(rng, GetParam(), 14));
}
// A token; fewer than threads; one slice; a slice and a token; several.
INSTANTIATE_TEST_SUITE_P(Sampling, SamplingVocabulary, testing::Values(97, 4096, 4097, 9001));

TEST(Sampling, AnyNumberOfRows) {
  std::mt19937 rng(5);
  for (int count :
       wholeSweep() ? std::vector<int>{0, 1, 2, 31, 33, 64, 129} : std::vector{0, 1, 33})
    check(97, 97, rowsOf(rng, 97, count, count));
}

TEST(Sampling, OfTheTokenizersIdsOnly) {
  std::mt19937 rng(7);
  for (int32_t vocabulary : {1, 4000, 4097}) {
    std::vector<Row> rows = rowsOf(rng, 9001, 6);
    for (Row &row : rows) {
      row.bans.clear();
      row.params.logitBias.clear();
      std::fill(row.logits.begin() + vocabulary, row.logits.end(), 1e9f);
      row.logits.back() = std::nanf("");
    }
    check(9001, vocabulary, rows);
  }
}

TEST(Sampling, TiesGoToTheLowestIds) {
  std::vector<Row> rows;
  std::mt19937 rng(9);
  for (int32_t k : {0, 5, 300})
    for (float topP : {1.0f, 0.05f, 0.9f}) {
      Row row{std::vector<float>(4097, -3.0f), params(1, k, topP)};
      for (int i = 0; i < 300; ++i)
        row.logits[size_t(i * 13 + 5)] = 2; // 300 equal ones
      row.logits[40] = 2.5f;
      row.position = uint64_t(rows.size());
      rows.push_back(row);
      row.logits[41] = -0.0f, row.logits[39] = 0.0f; // which are equal
      for (float &l : row.logits)
        l = std::min(l, 0.0f);
      row.params.temperature = 0;
      rows.push_back(row);
      row.params.temperature = 1;
      row.bans = {5, 18, 4096};
      rows.push_back(row);
    }
  check(4097, 4097, rows);
}

TEST(Sampling, WhatCanNotBeDrawn) {
  std::mt19937 rng(11);
  std::vector<Row> rows;
  for (float bad : {std::nanf(""), infinity, -infinity})
    for (size_t at : {size_t(0), size_t(4000), size_t(4096)})
      for (bool changes : {false, true}) {
        Row row{spread(rng, 4097, 5), params(at == 0 ? 0 : 1, 0, at == 4000 ? 0.5f : 1)};
        row.logits[at] = bad;
        if (changes) // a ban of a bad logit does not make it good
          row.bans = {int32_t(at)};
        rows.push_back(row);
      }
  Row none{spread(rng, 4097, 5), params(1, 5, 0.5f)}, one = none;
  for (int32_t id = 0; id < 4097; ++id) {
    none.bans.push_back(id);
    if (id != 4090)
      one.bans.push_back(id);
  }
  rows.push_back(one);
  check(4097, 4097, rows);
  check(4097, 4097, {none, Row{spread(rng, 4097, 5), params(1)}});
}

TEST(Sampling, LargestAndSmallestLogits) {
  constexpr float most = std::numeric_limits<float>::max();
  std::vector<Row> rows;
  for (float topP : {1.0f, 0.4f})
    for (int32_t k : {0, 3}) {
      Row row{std::vector<float>(97, -most), params(0.5f, k, topP)};
      rows.push_back(row); // all equal
      row.logits[3] = most;
      rows.push_back(row);
      std::fill(row.logits.begin(), row.logits.end(), 1e-45f);
      row.logits[50] = -1e-45f;
      rows.push_back(row);
      row.params.temperature = 1e-45f;
      rows.push_back(row);
    }
  check(97, 97, rows);
}

} // namespace

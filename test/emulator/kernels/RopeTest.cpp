// Rotary positions and writing the cache, on head sizes of every kind.
#include "test/emulator/kernels/KernelCases.h"

#include <algorithm>
#include <cmath>

using namespace llmc;
using namespace llmc::test;

namespace {

const CudaModel model = {"test", "test", 256, 16, 1024, {}};

TEST(Rope, AnglesAndTables) {
  EmulatedKernels kernels(
      {{"angles", "rope_angles", {{"half", int64_t(20)}, {"scale", 1.5}}},
       {"tables", "rope_gather", {{"half", int64_t(20)}, {"positions", int64_t(9)}}},
       {"rope_select", "rope_select", {{"half", int64_t(20)}}}},
      model);
  std::mt19937 rng(8);
  const std::vector<float> frequencies = randomFloats(rng, 20, 0, 1),
                           cosines = randomFloats(rng, 180), sines = randomFloats(rng, 180);
  const std::vector<int32_t> positions = {0, 8, 3, 100000, 7};
  const DeviceArray f(frequencies), c(cosines), s(sines), p(positions);
  LlmrtCudaStep step{};
  step.T = 5;
  step.positions = reinterpret_cast<const int *>(p.data());
  DeviceArray y(5 * 40 * 4), z(5 * 40 * 4);
  const std::vector<float> angles = runAll<float>(kernels, "angles", step, pointers({&f, &y}), y);
  const std::vector<float> rows = runAll<float>(kernels, "tables", step, pointers({&c, &s, &z}), z);
  for (size_t t = 0; t < 5; ++t)
    for (size_t i = 0; i < 20; ++i) {
      const float angle = frequencies[i] * float(positions[t]);
      ASSERT_NEAR(angles[t * 40 + i], 1.5 * std::cos(double(angle)), 1e-6);
      ASSERT_NEAR(angles[t * 40 + 20 + i], 1.5 * std::sin(double(angle)), 1e-6);
      const size_t row = size_t(std::min(positions[t], 8));
      ASSERT_EQ(rows[t * 40 + i], cosines[row * 20 + i]);
      ASSERT_EQ(rows[t * 40 + 20 + i], sines[row * 20 + i]);
    }
  const std::vector<int32_t> isLong = {1, 0, 0, 1, 1};
  const DeviceArray contexts(isLong);
  step.longContext = reinterpret_cast<const int *>(contexts.data());
  DeviceArray chosen(5 * 40 * 4);
  const std::vector<float> got =
      runAll<float>(kernels, "rope_select", step, pointers({&y, &z, &chosen}), chosen);
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], (isLong[i / 40] ? rows : angles)[i]);
}

struct RopeCase {
  const char *name;
  int64_t heads, kvHeads, size, valueSize, rotary, interleaved, element, split, norm;
};
const RopeCase ropeCases[] = {
    {"neox_f16", 6, 2, 80, 80, 80, 0, 1, 0, 0},
    {"interleaved_f32_norm", 3, 1, 96, 40, 64, 1, 0, 1, 1},
    {"int8_norm", 4, 2, 64, 64, 64, 0, 3, 0, 1},
    {"unrotated_bf16", 3, 3, 36, 20, 0, 0, 2, 1, 0},
};

class RopeAppend : public testing::TestWithParam<RopeCase> {};

TEST_P(RopeAppend, QueriesAndCacheMatch) {
  const RopeCase &c = GetParam();
  EmulatedKernels kernels({{"rope",
                            "rope_append",
                            {{"heads", c.heads},
                             {"kv_heads", c.kvHeads},
                             {"head_size", c.size},
                             {"value_size", c.valueSize},
                             {"rotary", c.rotary},
                             {"interleaved", c.interleaved},
                             {"kv_element", c.element},
                             {"split", c.split},
                             {"q_norm", c.norm},
                             {"eps", 1e-6}}}},
                          model);
  std::mt19937 rng(9);
  const int64_t m = 5, blockTokens = 16, half = c.rotary / 2;
  const int64_t parts[] = {c.heads * c.size, c.kvHeads * c.size, c.kvHeads * c.valueSize};
  std::vector<std::vector<float>> x;
  for (int64_t width : parts)
    x.push_back(randomFloats(rng, size_t(m * width), -2, 2));
  if (c.element == 3)
    x[2][size_t(3 * parts[2] + 1)] = INFINITY; // a row of values that has no scale
  std::vector<float> fused;
  for (int64_t t = 0; t < m; ++t)
    for (int i = 0; i < 3; ++i)
      fused.insert(fused.end(), x[size_t(i)].begin() + t * parts[i],
                   x[size_t(i)].begin() + (t + 1) * parts[i]);
  const std::vector<float> angles = randomFloats(rng, size_t(m * 2 * half)),
                           norms[2] = {randomFloats(rng, size_t(c.size)),
                                       randomFloats(rng, size_t(c.size))};
  const std::vector<int64_t> slots = {17, 3, 47, 0, 32};
  const DeviceArray q(x[0]), k(x[1]), v(x[2]), qkv(fused), angleMemory(angles), qNorm(norms[0]),
      kNorm(norms[1]), slotMemory(slots);
  const int64_t e = c.element == 0 ? 4 : c.element == 3 ? 1 : 2, prefix = 8;
  const int64_t tokenBytes = (c.size + c.valueSize) * e + (c.element == 3 ? 8 : 0);
  const int64_t blockBytes = (prefix + c.kvHeads * tokenBytes) * blockTokens;
  DeviceArray kv(size_t(3 * blockBytes)), out(size_t(m * parts[0]) * 4);
  LlmrtCudaStep step{};
  step.T = m, step.kv = kv.data(), step.blockTokens = blockTokens, step.blockBytes = blockBytes;
  step.slots = reinterpret_cast<const long long *>(slotMemory.data());
  std::vector<void *> bindings = c.split ? pointers({&q, &k, &v}) : std::vector<void *>{qkv.data()};
  if (c.rotary)
    bindings.push_back(angleMemory.data());
  if (c.norm)
    bindings.push_back(qNorm.data()), bindings.push_back(kNorm.data());
  bindings.push_back(out.data());
  const std::vector<float> got = runAll<float>(kernels, "rope", step, bindings, out, prefix);
  ASSERT_EQ(got.size(), size_t(m * parts[0]));

  auto head = [&](const float *from, int64_t t, const std::vector<float> &norm) {
    std::vector<double> y(from, from + c.size);
    if (c.norm) {
      double squares = 0;
      for (double value : y)
        squares += value * value;
      for (int64_t i = 0; i < c.size; ++i)
        y[size_t(i)] *= norm[size_t(i)] / std::sqrt(squares / double(c.size) + 1e-6);
    }
    for (int64_t i = 0; i < half; ++i) {
      const size_t a = size_t(c.interleaved ? 2 * i : i),
                   b = size_t(c.interleaved ? 2 * i + 1 : i + half);
      const double cosine = angles[size_t(t * 2 * half + i)],
                   sine = angles[size_t(t * 2 * half + half + i)];
      const double first = y[a] * cosine - y[b] * sine, second = y[a] * sine + y[b] * cosine;
      y[a] = first, y[b] = second;
    }
    return y;
  };
  auto expectRow = [&](int64_t at, int64_t scaleAt, const std::vector<double> &want) {
    float scale = 1;
    if (c.element == 3)
      std::memcpy(&scale, kv.data() + scaleAt, 4);
    if (std::ranges::any_of(want, [](double w) { return std::isinf(w); })) {
      ASSERT_TRUE(std::isnan(scale));
      return;
    }
    for (size_t i = 0; i < want.size(); ++i) {
      const unsigned char *p = kv.data() + at + int64_t(i) * e;
      double value;
      if (c.element == 0) {
        float f;
        std::memcpy(&f, p, 4);
        value = f;
      } else if (c.element == 3) {
        value = double(int8_t(*p)) * scale;
      } else {
        uint16_t bits;
        std::memcpy(&bits, p, 2);
        value = c.element == 1 ? double(std::bit_cast<_Float16>(bits))
                               : double(std::bit_cast<float>(uint32_t(bits) << 16));
      }
      const double unit = c.element == 0 ? 1e-5 : c.element == 1 ? 1e-3 : c.element == 2 ? 8e-3 : 0;
      ASSERT_NEAR(value, want[i], unit * (1 + std::fabs(want[i])) + (c.element == 3 ? scale : 0))
          << i;
    }
  };
  for (int64_t t = 0; t < m; ++t) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const std::vector<double> want = head(&x[0][size_t(t * parts[0] + h * c.size)], t, norms[0]);
      for (int64_t i = 0; i < c.size; ++i)
        ASSERT_NEAR(got[size_t((t * c.heads + h) * c.size + i)], want[size_t(i)], 1e-5);
    }
    for (int64_t h = 0; h < c.kvHeads; ++h) {
      const int64_t slot = slots[size_t(t)], offset = slot % blockTokens;
      const int64_t base =
          slot / blockTokens * blockBytes + prefix * blockTokens + h * tokenBytes * blockTokens;
      const int64_t values = base + c.size * e * blockTokens,
                    scales = values + c.valueSize * e * blockTokens;
      expectRow(base + offset * c.size * e, scales + 4 * offset,
                head(&x[1][size_t(t * parts[1] + h * c.size)], t, norms[1]));
      const float *value = &x[2][size_t(t * parts[2] + h * c.valueSize)];
      expectRow(values + offset * c.valueSize * e, scales + 4 * (blockTokens + offset),
                std::vector<double>(value, value + c.valueSize));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, RopeAppend, testing::ValuesIn(ropeCases), nameOfCase);

TEST(LatentAppend, QueriesAndCacheMatch) {
  const int64_t heads = 5, latent = 36, rotary = 8, stride = 19, size = latent + rotary, m = 5;
  const int64_t blockTokens = 16, prefix = 8, bytes = 2;
  std::mt19937 rng(19);
  const std::vector<float> absorbed = randomFloats(rng, size_t(m * heads * latent)),
                           query = randomFloats(rng, size_t(m * heads * stride)),
                           rows = randomFloats(rng, size_t(m * latent)),
                           keys = randomFloats(rng, size_t(m * rotary)),
                           angles = randomFloats(rng, size_t(m * rotary));
  const std::vector<int64_t> slots = {17, 3, 47, 0, 32};
  const DeviceArray a(absorbed), q(query), r(rows), k(keys), angleMemory(angles), s(slots);
  const int64_t blockBytes = (prefix + size * bytes) * blockTokens;
  for (int64_t interleaved : {0, 1}) {
    EmulatedKernels kernels({{"append",
                              "latent_append",
                              {{"heads", heads},
                               {"latent", latent},
                               {"rotary", rotary},
                               {"stride", stride},
                               {"interleaved", interleaved},
                               {"kv_element", int64_t(1)}}}},
                            model);
    DeviceArray kv(size_t(3 * blockBytes)), out(size_t(m * heads * size) * 4);
    LlmrtCudaStep step{};
    step.T = m, step.kv = kv.data(), step.blockTokens = blockTokens, step.blockBytes = blockBytes;
    step.slots = reinterpret_cast<const long long *>(s.data());
    const std::vector<float> got = runAll<float>(
        kernels, "append", step, pointers({&a, &q, &r, &k, &angleMemory, &out}), out, prefix);
    ASSERT_EQ(got.size(), size_t(m * heads * size));
    auto rotated = [&](const float *x, int64_t t, int64_t i) {
      const int64_t half = rotary / 2, pair = interleaved ? i / 2 : i % half;
      const bool second = interleaved ? i % 2 : i >= half;
      const double first = x[interleaved ? 2 * pair : pair],
                   last = x[interleaved ? 2 * pair + 1 : pair + half],
                   cosine = angles[size_t(t * rotary + pair)],
                   sine = angles[size_t(t * rotary + half + pair)];
      return second ? first * sine + last * cosine : first * cosine - last * sine;
    };
    for (int64_t t = 0; t < m; ++t) {
      const unsigned char *key = kv.data() + slots[size_t(t)] / blockTokens * blockBytes +
                                 prefix * blockTokens +
                                 slots[size_t(t)] % blockTokens * size * bytes;
      for (int64_t i = 0; i < size; ++i) {
        _Float16 stored;
        std::memcpy(&stored, key + i * bytes, sizeof stored);
        const double want = i < latent ? rows[size_t(t * latent + i)]
                                       : rotated(&keys[size_t(t * rotary)], t, i - latent);
        ASSERT_NEAR(double(stored), want, 1e-3) << t << " " << i;
        for (int64_t h = 0; h < heads; ++h) {
          const float *x = &query[size_t((t * heads + h + 1) * stride - rotary)];
          ASSERT_NEAR(got[size_t((t * heads + h) * size + i)],
                      i < latent ? absorbed[size_t((t * heads + h) * latent + i)]
                                 : rotated(x, t, i - latent),
                      1e-6);
        }
      }
    }
  }
}

} // namespace

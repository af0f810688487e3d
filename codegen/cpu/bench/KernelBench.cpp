//===- KernelBench.cpp - each kernel beside the machine's own limits ---------===//
//
//   llmc_kernel_bench [--benchmark_filter=REGEX]
//
// One thread. GB/s counts the bytes of weights or KV (or of rows), GOPS two operations a product.
// `limit/...` measures a plain read of memory and multiply-add loops in the same program: read the
// other rows against them. The highest level that the machine has.
//
//===----------------------------------------------------------------------===//
#include "test/unit/codegen/KernelRunner.h"

#include "benchmark/benchmark.h"

#include <cmath>
#include <immintrin.h>
#include <map>

using namespace llmc;
using namespace llmc::test;

namespace {

CpuLevel level() { return runnableLevels().back(); }

void report(benchmark::State &state, double bytes, double operations) {
  using benchmark::Counter;
  const auto iterations = static_cast<double>(state.iterations());
  if (bytes > 0)
    state.counters["GB/s"] = Counter(bytes * iterations * 1e-9, Counter::kIsRate);
  if (operations > 0)
    state.counters["GOPS"] = Counter(operations * iterations * 1e-9, Counter::kIsRate);
}

// --- limits -----------------------------------------------------------------------------------

void limitRead(benchmark::State &state) {
  const size_t bytes = state.range(0) << 20;
  Buffer memory(bytes);
  for (auto _ : state) {
    __m256i a[4] = {};
    for (size_t i = 0; i < bytes; i += 128)
      for (int j = 0; j < 4; ++j)
        a[j] = _mm256_xor_si256(
            a[j], _mm256_load_si256(reinterpret_cast<const __m256i *>(memory.data() + i + 32 * j)));
    __m256i all = _mm256_xor_si256(_mm256_xor_si256(a[0], a[1]), _mm256_xor_si256(a[2], a[3]));
    benchmark::DoNotOptimize(all);
  }
  report(state, double(bytes), 0);
}
BENCHMARK(limitRead)->Name("limit/read_MiB")->Arg(256)->Arg(8);

void limitFma(benchmark::State &state) {
  __m256 a[12];
  for (auto &x : a)
    x = _mm256_set1_ps(1);
  const __m256 b = _mm256_set1_ps(0.999f), c = _mm256_set1_ps(1e-3f);
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i)
#pragma unroll
      for (auto &x : a)
        asm volatile("vfmadd213ps %2, %1, %0" : "+x"(x) : "x"(b), "x"(c));
    __m256 sum = a[0];
    for (int i = 1; i < 12; ++i)
      sum = _mm256_add_ps(sum, a[i]);
    benchmark::DoNotOptimize(sum);
  }
  report(state, 0, 1000.0 * 12 * 8 * 2);
}
BENCHMARK(limitFma)->Name("limit/fma_f32_avx2");

void limitMaddubs(benchmark::State &state) {
  __m256i a[12] = {};
  const __m256i b = _mm256_set1_epi8(3);
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i)
#pragma unroll
      for (auto &x : a) {
        __m256i product;
        asm volatile("vpmaddubsw %1, %1, %0" : "=x"(product) : "x"(b));
        asm volatile("vpaddw %1, %0, %0" : "+x"(x) : "x"(product));
      }
    __m256i sum = a[0];
    for (int i = 1; i < 12; ++i)
      sum = _mm256_add_epi16(sum, a[i]);
    benchmark::DoNotOptimize(sum);
  }
  report(state, 0, 1000.0 * 12 * 32 * 2);
}
BENCHMARK(limitMaddubs)->Name("limit/vpmaddubsw_avx2");

// --- gemm -------------------------------------------------------------------------------------

struct NamedFormat {
  const char *name;
  WeightFormat format;
  bool int8;
};
const NamedFormat kFormats[] = {
    {"i4g32_i8", {Element::I4, Packing::N16K4, 32, Element::F16}, true},
    {"i4g32min_i8", {Element::I4, Packing::N16K4, 32, Element::F16, true, Element::F16}, true},
    {"i8g32_i8", {Element::I8, Packing::N16K4, 32, Element::F16}, true},
    {"i4g32_f32", {Element::I4, Packing::N16K4, 32, Element::F16}, false},
    {"i4g32min_f32", {Element::I4, Packing::N16K4, 32, Element::F16, true, Element::F16}, false},
    {"i8g32_f32", {Element::I8, Packing::N16K4, 32, Element::F16}, false},
    {"f32_f32", {Element::F32, Packing::N16}, false},
    {"f16_f32", {Element::F16, Packing::N16}, false},
    {"bf16_f32", {Element::BF16, Packing::N16}, false},
};

/// y[M, N] with weights that don't fit the caches where M is 1: \p copies matrices in turn.
void gemm(benchmark::State &state, const NamedFormat &f, int64_t m, int64_t n, int64_t k,
          int64_t copies) {
  const int64_t taskTiles = 4;
  CompiledKernel kernel("gemm",
                        std::vector<KernelConstant>{{"k", k},
                                                    {"n", n},
                                                    {"x_int8", int64_t(f.int8)},
                                                    {"group", int64_t(32)},
                                                    {"task_tiles", taskTiles}} +
                            formatConstants(f.format),
                        level());
  const uint64_t bytes = *packedBytes(f.format, n, k);
  Buffer w(bytes * copies), x(m * (f.int8 ? LLMRT_Q8_ROW_BYTES(k, 32) : 4 * k)), y(m * n * 4);
  std::memset(w.data(), 0x11, w.bytes());
  std::memset(x.data(), 0x11, x.bytes());
  LlmrtStep step{};
  step.T = m;
  const int64_t tasks = (n / 16 + taskTiles - 1) / taskTiles;
  int64_t copy = 0;
  for (auto _ : state) {
    kernel.run(step, {x.data(), w.data() + copy * bytes, y.data()}, tasks);
    copy = (copy + 1) % copies;
  }
  report(state, double(bytes), 2.0 * m * n * k);
}

// --- attention --------------------------------------------------------------------------------

/// \p queries new tokens at the end of a context, SmolLM2's heads.
void attention(benchmark::State &state, int64_t element, int64_t queries, int64_t context,
               int64_t heads, int64_t kvHeads, int64_t d) {
  const int64_t queryTile = 16, blockTokens = 16, bytes = element == 0 ? 4 : 2;
  const int64_t perToken = kvHeads * 2 * d * bytes, blocks = (context + 15) / 16;
  CompiledKernel kernel("attention",
                        {{"heads", heads},
                         {"kv_heads", kvHeads},
                         {"key_size", d},
                         {"value_size", d},
                         {"scale", 1 / std::sqrt(double(d))},
                         {"kv_element", element},
                         {"query_tile", queryTile}},
                        level());
  Buffer pool(blocks * blockTokens * perToken), q(queries * heads * d * 4), y(q.bytes());
  std::memset(pool.data(), 0x11, pool.bytes());
  std::memset(q.data(), 0x11, q.bytes());
  std::vector<int32_t> table, positions, tileSeq, tileStart, tileCount;
  for (int64_t b = 0; b < blocks; ++b)
    table.push_back(b);
  for (int64_t t = 0; t < queries; ++t) {
    positions.push_back(context - queries + t);
    if (t % queryTile == 0) {
      tileSeq.push_back(0);
      tileStart.push_back(t);
      tileCount.push_back(std::min(queryTile, queries - t));
    }
  }
  LlmrtStep step{};
  step.T = queries, step.S = 1, step.Q = tileSeq.size(), step.positions = positions.data();
  step.blockTable = table.data(), step.maxBlocks = blocks, step.kv = pool.data();
  step.blockTokens = blockTokens, step.blockBytes = blockTokens * perToken;
  step.tileSeq = tileSeq.data(), step.tileStart = tileStart.data();
  step.tileCount = tileCount.data();
  for (auto _ : state)
    kernel.run(step, {q.data(), y.data()}, step.Q * kvHeads, {0});
  double products = 0;
  for (int64_t t = 0; t < queries; ++t)
    products += double(positions[t] + 1) * heads * d * 2;
  report(state, double(context) * perToken, 2 * products);
}

// --- rows -------------------------------------------------------------------------------------

void rows(benchmark::State &state, const std::string &kind, std::vector<KernelConstant> constants,
          int64_t d, int inputs, int64_t outputBytes) {
  const int64_t m = 64;
  CompiledKernel kernel(kind, std::move(constants), level());
  std::vector<Buffer> buffers;
  std::vector<void *> bindings;
  for (int i = 0; i < inputs; ++i) {
    buffers.push_back(Buffer::of(std::vector<float>(m * d, 0.5f)));
    bindings.push_back(buffers.back().data());
  }
  buffers.emplace_back(m * outputBytes);
  bindings.push_back(buffers.back().data());
  std::vector<int32_t> positions(m, 1000);
  LlmrtStep step{};
  step.T = m, step.positions = positions.data(), step.tokens = positions.data();
  step.logitRows = positions.data();
  std::fill(positions.begin(), positions.end(), 3);
  for (auto _ : state)
    kernel.run(step, bindings, m);
  report(state, double(m) * (inputs * d * 4 + outputBytes), 0);
}

void ropeAppend(benchmark::State &state, int64_t element) {
  const int64_t m = 64, heads = 9, kvHeads = 3, d = 64, bytes = element == 0 ? 4 : 2;
  CompiledKernel kernel("rope_append",
                        {{"heads", heads},
                         {"kv_heads", kvHeads},
                         {"head_size", d},
                         {"value_size", d},
                         {"rotary", d},
                         {"kv_element", element}},
                        level());
  Buffer qkv = Buffer::of(std::vector<float>(m * (heads + 2 * kvHeads) * d, 0.5f));
  Buffer angles = Buffer::of(std::vector<float>(m * d, 0.5f)), q(m * heads * d * 4);
  Buffer pool(m * kvHeads * 2 * d * bytes);
  std::vector<int64_t> slots;
  for (int64_t t = 0; t < m; ++t)
    slots.push_back(t);
  LlmrtStep step{};
  step.T = m, step.slots = slots.data(), step.kv = pool.data(), step.blockTokens = 16;
  step.blockBytes = 16 * kvHeads * 2 * d * bytes;
  for (auto _ : state)
    kernel.run(step, {qkv.data(), angles.data(), q.data()}, m, {0});
  report(state, double(qkv.bytes() + q.bytes() + pool.bytes()), 0);
}

// --- experts ----------------------------------------------------------------------------------

/// Two of eight experts a token, i4 weights and int8 inputs: bytes are those of the chosen experts
/// (all of them where there are many tokens).
void experts(benchmark::State &state, int64_t m, int64_t n, int64_t k) {
  const int64_t count = 8, slots = 2, taskTiles = 4;
  const WeightFormat format = {Element::I4, Packing::N16K4, 32, Element::F16};
  CompiledKernel kernel("grouped_gemm",
                        std::vector<KernelConstant>{{"k", k},
                                                    {"n", n},
                                                    {"x_int8", int64_t(1)},
                                                    {"group", int64_t(32)},
                                                    {"groups", count},
                                                    {"slots", slots},
                                                    {"chosen", int64_t(1)},
                                                    {"task_tiles", taskTiles}} +
                            formatConstants(format),
                        level());
  const size_t bytes = *packedBytes(format, n, k);
  Buffer w(count * bytes), x(m * LLMRT_Q8_ROW_BYTES(k, 32)), y(m * slots * n * 4);
  std::memset(w.data(), 0x11, w.bytes());
  std::memset(x.data(), 1, x.bytes());
  std::vector<int32_t> ids(m * slots);
  LlmrtStep step{};
  step.T = m;
  int32_t turn = 0;
  for (auto _ : state) {
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<int32_t>((turn + i) % count);
    turn += 2;
    kernel.run(step, {x.data(), w.data(), ids.data(), y.data()},
               (n / 16 + taskTiles - 1) / taskTiles);
  }
  report(state, double(bytes) * std::min(count, m * slots), 2.0 * m * slots * n * k);
}

void registerAll() {
  using benchmark::RegisterBenchmark;
  for (const NamedFormat &f : kFormats) {
    const std::string name = std::string("gemm/") + f.name;
    RegisterBenchmark((name + "/decode_2048x2048_cold").c_str(),
                      [f](auto &s) { gemm(s, f, 1, 2048, 2048, 64); });
    for (int64_t m : {2, 4, 64})
      RegisterBenchmark((name + "/m" + std::to_string(m) + "_1536x576").c_str(),
                        [f, m](auto &s) { gemm(s, f, m, 1536, 576, 1); });
    RegisterBenchmark((name + "/m512_1024x4096").c_str(),
                      [f](auto &s) { gemm(s, f, 512, 1024, 4096, 1); });
  }
  const char *const elements[] = {"f32", "f16", "bf16"};
  for (int64_t e = 0; e < 3; ++e) {
    const std::string name = std::string("attention/") + elements[e];
    RegisterBenchmark((name + "/decode_32k_h9_g3_d64").c_str(),
                      [e](auto &s) { attention(s, e, 1, 32768, 9, 3, 64); });
    RegisterBenchmark((name + "/prefill_512_h9_g3_d64").c_str(),
                      [e](auto &s) { attention(s, e, 512, 512, 9, 3, 64); });
    RegisterBenchmark((name + "/prefill_512_h8_g8_d128").c_str(),
                      [e](auto &s) { attention(s, e, 512, 512, 8, 8, 128); });
    RegisterBenchmark((std::string("rope_append/") + elements[e]).c_str(),
                      [e](auto &s) { ropeAppend(s, e); });
  }
  const int64_t d = 2048, q8 = LLMRT_Q8_ROW_BYTES(2048, 32);
  RegisterBenchmark("norm/f32",
                    [=](auto &s) { rows(s, "norm", {{"d", d}, {"eps", 1e-5}}, d, 2, d * 4); });
  RegisterBenchmark("norm/int8", [=](auto &s) {
    rows(s, "norm", {{"d", d}, {"eps", 1e-5}, {"out", int64_t(1)}, {"group", int64_t(32)}}, d, 2,
         q8);
  });
  RegisterBenchmark("quantize", [=](auto &s) {
    rows(s, "quantize", {{"k", d}, {"group", int64_t(32)}}, d, 1, q8);
  });
  for (const char *op : {"add", "silu_mul", "gelu_mul"})
    RegisterBenchmark((std::string("elementwise/") + op).c_str(), [=](auto &s) {
      rows(s, "elementwise", {{"op", std::string(op)}, {"d", d}}, d, 2, d * 4);
    });
  RegisterBenchmark("rope_angles", [](auto &s) {
    rows(s, "rope_angles", {{"half", int64_t(32)}, {"scale", 1.0}}, 32, 1, 64 * 4);
  });
  RegisterBenchmark("embed/f32_rows",
                    [=](auto &s) { rows(s, "embed", {{"d", d}, {"scale", 1.0}}, d, 1, d * 4); });
  for (int64_t m : {1, 8, 128})
    RegisterBenchmark(("experts/i4g32_i8/" + std::to_string(m)).c_str(),
                      [m](auto &s) { experts(s, m, 2048, 1024); });
  RegisterBenchmark("gather_rows",
                    [=](auto &s) { rows(s, "gather_rows", {{"d", d}}, d, 1, d * 4); });
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  registerAll();
  benchmark::RunSpecifiedBenchmarks();
}

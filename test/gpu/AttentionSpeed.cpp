// Runs the kernels of attention.cu on a prompt, checks rows of the result, and prints their speed.
//
//   llmrt_gpu_attention MODULE [TOKENS [REPEATS]]
#include "runtime/device/cuda/Device.h"
#include "runtime/device/cuda/Handles.h"
#include "runtime/device/cuda/KernelAbi.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace llmrt;
using namespace llmrt::cuda;

namespace {

constexpr int64_t heads = 32, kvHeads = 8, group = heads / kvHeads, queryTile = 32,
                  blockTokens = 16;

struct Kernel {
  const char *name;
  int64_t size;
  unsigned hopperShared, shared;
};
const Kernel kernels[] = {{"attention_d128", 128, 197632, 98304},
                          {"attention_d64", 64, 164864, 49152}};

/// Numbers of the prompt on the host, and what the device is given.
struct Prompt {
  int64_t tokens, size;
  std::vector<float> q;           ///< [tokens][heads][size]
  std::vector<_Float16> kv;       ///< [blocks][kvHeads] { K, V: [blockTokens][size] }
  std::vector<int32_t> table;     ///< [blocks]
  std::vector<int32_t> positions; ///< [tokens]

  Prompt(int64_t n, int64_t size) : tokens(n), size(size) {
    std::mt19937 rng(11);
    auto real = [&] { return float(int32_t(rng())) / float(1u << 31); };
    const int64_t blocks = (n + blockTokens - 1) / blockTokens;
    q.resize(size_t(n * heads * size));
    kv.resize(size_t(blocks * kvHeads * 2 * blockTokens * size));
    for (float &x : q)
      x = 2 * real();
    for (_Float16 &x : kv)
      x = _Float16(real());
    table.resize(size_t(blocks));
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), rng);
    positions.resize(size_t(n));
  }
  const _Float16 *row(int64_t key, int64_t kvHead, bool isValue) const {
    const int64_t block = table[size_t(key / blockTokens)];
    return &kv[size_t(
        (((block * kvHeads + kvHead) * 2 + isValue) * blockTokens + key % blockTokens) * size)];
  }
  /// The largest difference of a row from what it should be.
  double error(int64_t token, int64_t head, const float *got) const {
    const int64_t keys = positions[size_t(token)] + 1, g = head / group;
    const float *query = &q[size_t((token * heads + head) * size)];
    std::vector<double> p(static_cast<size_t>(keys)), out(static_cast<size_t>(size));
    double largest = -INFINITY, sum = 0;
    for (int64_t t = 0; t < keys; ++t) {
      double s = 0;
      for (int64_t i = 0; i < size; ++i)
        s += double(_Float16(query[i])) * double(row(t, g, false)[i]);
      p[size_t(t)] = s / std::sqrt(double(size));
      largest = std::max(largest, p[size_t(t)]);
    }
    for (double &x : p)
      sum += x = std::exp(x - largest);
    for (int64_t t = 0; t < keys; ++t)
      for (int64_t i = 0; i < size; ++i)
        out[size_t(i)] += p[size_t(t)] / sum * double(row(t, g, true)[i]);
    double worst = 0;
    for (int64_t i = 0; i < size; ++i)
      worst = std::max(worst, std::abs(out[size_t(i)] - double(got[i])));
    return std::isfinite(got[0]) ? worst : INFINITY;
  }
};

class Runner {
public:
  Runner(const Device &device, CUmodule module, CUstream stream, const Kernel &kernel, int64_t n)
      : driver(device.driver()), isHopper(device.major() == 9), module(module), stream(stream),
        kernel(kernel), prompt(n, kernel.size) {}

  Status prepare() {
    LLMRT_RETURN_IF_ERROR(
        driver.check(driver.ModuleGetFunction(&function, module, kernel.name), kernel.name));
    const unsigned shared = isHopper ? kernel.hopperShared : kernel.shared;
    LLMRT_RETURN_IF_ERROR(
        driver.check(driver.FuncSetAttribute(
                         function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(shared)),
                     kernel.name));
    LLMRT_RETURN_IF_ERROR(put(prompt.q, q));
    LLMRT_RETURN_IF_ERROR(put(prompt.kv, kv));
    LLMRT_RETURN_IF_ERROR(put(prompt.table, table));
    LLMRT_RETURN_IF_ERROR(put(prompt.positions, positions));
    const int64_t tiles = (prompt.tokens + queryTile - 1) / queryTile;
    std::vector<int32_t> sequences(static_cast<size_t>(tiles)), starts, counts;
    for (int64_t i = 0; i < tiles; ++i) {
      starts.push_back(int32_t(i * queryTile));
      counts.push_back(int32_t(std::min(queryTile, prompt.tokens - i * queryTile)));
    }
    LLMRT_RETURN_IF_ERROR(put(sequences, tileSeq));
    LLMRT_RETURN_IF_ERROR(put(starts, tileStart));
    LLMRT_RETURN_IF_ERROR(put(counts, tileCount));
    LLMRT_ASSIGN_OR_RETURN(out, DeviceBuffer::allocate(driver, prompt.q.size() * 4, kernel.name));
    auto ints = [](const DeviceBuffer &b) { return static_cast<const int *>(b.pointer()); };
    LlmrtCudaStep s{};
    s.T = prompt.tokens, s.S = 1, s.Q = tiles;
    s.positions = ints(positions), s.blockTable = ints(table);
    s.maxBlocks = int64_t(prompt.table.size());
    s.tileSeq = ints(tileSeq), s.tileStart = ints(tileStart), s.tileCount = ints(tileCount);
    s.kv = static_cast<unsigned char *>(kv.pointer());
    s.blockTokens = blockTokens;
    s.blockBytes = kvHeads * 4 * blockTokens * prompt.size;
    LLMRT_RETURN_IF_ERROR(put(std::vector<LlmrtCudaStep>{s}, step));
    return isHopper ? encodeMaps(s) : Status::ok();
  }

  /// Seconds of one launch, the mean of \p repeats after one that does not count.
  Result<double> run(bool isCausal, int repeats) {
    for (int64_t t = 0; t < prompt.tokens; ++t)
      prompt.positions[size_t(t)] = int32_t(isCausal ? t : prompt.tokens - 1);
    LLMRT_RETURN_IF_ERROR(
        driver.check(driver.MemcpyHtoDAsync(positions.address(), prompt.positions.data(),
                                            prompt.positions.size() * 4, stream),
                     kernel.name));
    CUevent begin = nullptr, end = nullptr;
    LLMRT_RETURN_IF_ERROR(driver.check(driver.EventCreate(&begin, CU_EVENT_DEFAULT), "an event"));
    LLMRT_RETURN_IF_ERROR(driver.check(driver.EventCreate(&end, CU_EVENT_DEFAULT), "an event"));
    LLMRT_RETURN_IF_ERROR(launch());
    LLMRT_RETURN_IF_ERROR(driver.check(driver.EventRecord(begin, stream), kernel.name));
    for (int i = 0; i < repeats; ++i)
      LLMRT_RETURN_IF_ERROR(launch());
    LLMRT_RETURN_IF_ERROR(driver.check(driver.EventRecord(end, stream), kernel.name));
    LLMRT_RETURN_IF_ERROR(driver.check(driver.StreamSynchronize(stream), kernel.name));
    float milliseconds = 0;
    LLMRT_RETURN_IF_ERROR(
        driver.check(driver.EventElapsedTime(&milliseconds, begin, end), kernel.name));
    driver.EventDestroy(begin), driver.EventDestroy(end);
    return double(milliseconds) / 1e3 / repeats;
  }

  /// The largest error of rows all over the prompt.
  Result<double> error() {
    std::vector<float> all(prompt.q.size());
    LLMRT_RETURN_IF_ERROR(driver.check(
        driver.MemcpyDtoHAsync(all.data(), out.address(), all.size() * 4, stream), kernel.name));
    LLMRT_RETURN_IF_ERROR(driver.check(driver.StreamSynchronize(stream), kernel.name));
    double worst = 0;
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t token = (prompt.tokens - 1) * i / 23, head = 7 * i % heads;
      worst = std::max(
          worst, prompt.error(token, head, &all[size_t((token * heads + head) * prompt.size)]));
    }
    return worst;
  }

  double operations(bool isCausal) const {
    const double n = double(prompt.tokens);
    return 4.0 * double(heads * prompt.size) * (isCausal ? n * (n + 1) / 2 : n * n);
  }

private:
  template <class T> Status put(const std::vector<T> &values, DeviceBuffer &to) {
    LLMRT_ASSIGN_OR_RETURN(to,
                           DeviceBuffer::allocate(driver, values.size() * sizeof(T), kernel.name));
    LLMRT_RETURN_IF_ERROR(driver.check(
        driver.MemcpyHtoDAsync(to.address(), values.data(), values.size() * sizeof(T), stream),
        kernel.name));
    return driver.check(driver.StreamSynchronize(stream), kernel.name);
  }

  Status encodeMaps(const LlmrtCudaStep &s) {
    if (!driver.TensorMapEncodeTiled)
      return unsupported("the driver is older than CUDA 12.0");
    const uint64_t row = uint64_t(prompt.size) * 2;
    const uint64_t sizes[] = {uint64_t(prompt.size), blockTokens, kvHeads, prompt.table.size()};
    const uint64_t strides[] = {row, 2 * row * blockTokens, uint64_t(s.blockBytes)};
    for (int i = 0; i < 4; ++i) {
      LlmrtTensorMap *const all[] = {&maps.keyPage, &maps.keyToken, &maps.valuePage,
                                     &maps.valueToken};
      const unsigned box[] = {64, i % 2 ? 1u : 16u, 1, 1}, ones[] = {1, 1, 1, 1};
      LLMRT_RETURN_IF_ERROR(driver.check(
          driver.TensorMapEncodeTiled(
              all[i], CU_TENSOR_MAP_DATA_TYPE_UINT16, 4, s.kv + (i / 2) * row * blockTokens, sizes,
              strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
              CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          "a tensor map"));
    }
    return Status::ok();
  }

  Status launch() {
    LlmrtCudaBindings b{};
    b.pointers[0] = q.pointer();
    b.pointers[1] = out.pointer();
    CUdeviceptr at = step.address();
    void *parameters[] = {&at, &b, &maps};
    const unsigned tiles = unsigned((prompt.tokens + queryTile - 1) / queryTile);
    const unsigned rows = isHopper ? 128 : 64;
    return driver.check(
        driver.LaunchKernel(
            function, tiles, kvHeads, unsigned(queryTile * group) / rows, isHopper ? 384 : 128, 1,
            1, isHopper ? kernel.hopperShared : kernel.shared, stream, parameters, nullptr),
        kernel.name);
  }

  const Driver &driver;
  const bool isHopper;
  CUmodule module;
  CUstream stream;
  const Kernel &kernel;
  Prompt prompt;
  CUfunction function = nullptr;
  DeviceBuffer q, kv, table, positions, tileSeq, tileStart, tileCount, out, step;
  LlmrtKvMaps maps{};
};

Status measure(const std::string &path, int64_t tokens, int repeats) {
  std::ifstream in(path, std::ios::binary);
  const std::string code(std::istreambuf_iterator<char>(in), {});
  if (code.empty())
    return ioError(path + ": can't be read");
  LLMRT_ASSIGN_OR_RETURN(auto device, Device::open(0));
  const Driver &driver = device->driver();
  CUstream stream = nullptr;
  LLMRT_RETURN_IF_ERROR(
      driver.check(driver.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream"));
  StreamOwner streamOwner(&driver, stream);
  CUmodule module = nullptr;
  LLMRT_RETURN_IF_ERROR(
      driver.check(driver.ModuleLoadDataEx(&module, code.c_str(), 0, nullptr, nullptr), path));
  ModuleOwner moduleOwner(&driver, module);
  bool isRight = true;
  for (const Kernel &kernel : kernels) {
    Runner runner(*device, module, stream, kernel, tokens);
    LLMRT_RETURN_IF_ERROR(runner.prepare());
    for (bool isCausal : {false, true}) {
      LLMRT_ASSIGN_OR_RETURN(double seconds, runner.run(isCausal, repeats));
      LLMRT_ASSIGN_OR_RETURN(double error, runner.error());
      isRight &= error < 2e-3;
      std::printf("%s %s, %lld tokens: %.3f ms, %.1f TFLOP/s, error %.1e %s\n", kernel.name,
                  isCausal ? "causal" : "without mask", static_cast<long long>(tokens),
                  seconds * 1e3, runner.operations(isCausal) / std::max(seconds, 1e-9) / 1e12,
                  error, error < 2e-3 ? "ok" : "WRONG");
      std::fflush(stdout);
    }
  }
  return isRight ? Status::ok() : internalError("attention gives other results than it should");
}

} // namespace

int main(int argc, char **argv) {
  const long long tokens = argc > 2 ? std::atoll(argv[2]) : 16384;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 10;
  if (argc < 2 || argc > 4 || tokens < 2 || tokens > 32768 || repeats < 1) {
    std::fprintf(stderr, "usage: %s MODULE [TOKENS, 2 to 32768 [REPEATS]]\n", argv[0]);
    return 2;
  }
  if (Status s = measure(argv[1], tokens, repeats); !s) {
    std::fprintf(stderr, "error: %s\n", s.message().c_str());
    return 1;
  }
  return 0;
}

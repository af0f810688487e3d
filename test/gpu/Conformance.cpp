// Runs the kernels of conformance.cu from a module (a cubin; on the stand-in driver an object for
// the emulator) and writes their results, or compares them with results that were written.
//
//   llmrt_gpu_conformance MODULE --write FILE | --compare FILE
#include "runtime/device/cuda/Device.h"
#include "runtime/device/cuda/Handles.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace llmrt;
using namespace llmrt::cuda;

namespace {

enum class Input { Words, Floats, Halves, Bf16s };

struct Test {
  const char *kernel;
  Input input;
  double tolerance; ///< of floats, relative to 1 + their size; 0: the same bits
};
/// Tensor cores add in an order and with roundings of their own; ex2.approx is within 2 ulp.
const Test tests[] = {
    {"convert", Input::Floats, 0},         {"pack", Input::Floats, 0},
    {"half_arithmetic", Input::Halves, 0}, {"exp2_approximate", Input::Floats, 1e-6},
    {"load_streaming", Input::Words, 0},   {"copy_async", Input::Words, 0},
    {"load_matrix", Input::Words, 0},      {"mma_f16", Input::Halves, 1e-5},
    {"mma_bf16", Input::Bf16s, 1e-5},      {"mma_tf32", Input::Floats, 1e-5},
    {"reduce", Input::Floats, 0},
};
constexpr size_t words = 32 * 16;
constexpr unsigned sharedBytes = 32 * 16 * 4;

/// Words from a fixed sequence (Knuth's MMIX constants).
std::vector<uint32_t> inputs(Input kind, uint64_t state) {
  auto next = [&] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return uint32_t(state >> 32);
  };
  auto real = [&] { return float(int32_t(next())) / float(1u << 30); }; // -2 to 2
  std::vector<uint32_t> in(words);
  for (uint32_t &w : in)
    switch (kind) {
    case Input::Words:
      w = next();
      break;
    case Input::Floats:
      w = std::bit_cast<uint32_t>(real());
      break;
    case Input::Halves: {
      _Float16 pair[2] = {_Float16(real()), _Float16(real())};
      std::memcpy(&w, pair, 4);
      break;
    }
    case Input::Bf16s:
      w = (std::bit_cast<uint32_t>(real()) & 0xffff0000u) | std::bit_cast<uint32_t>(real()) >> 16;
      break;
    }
  return in;
}

Result<std::vector<uint32_t>> run(const Driver &driver, CUmodule module, CUstream stream,
                                  const Test &test, uint64_t seed) {
  std::string what = test.kernel;
  CUfunction function = nullptr;
  LLMRT_RETURN_IF_ERROR(
      driver.check(driver.ModuleGetFunction(&function, module, test.kernel), what));
  LLMRT_ASSIGN_OR_RETURN(auto in, DeviceBuffer::allocate(driver, words * 4, what));
  LLMRT_ASSIGN_OR_RETURN(auto out, DeviceBuffer::allocate(driver, words * 4, what));
  std::vector<uint32_t> values = inputs(test.input, seed), results(words);
  void *pointers[] = {in.pointer(), out.pointer()};
  void *parameters[] = {&pointers[0], &pointers[1]};
  LLMRT_RETURN_IF_ERROR(
      driver.check(driver.MemcpyHtoDAsync(in.address(), values.data(), words * 4, stream), what));
  LLMRT_RETURN_IF_ERROR(driver.check(
      driver.LaunchKernel(function, 1, 1, 1, 32, 1, 1, sharedBytes, stream, parameters, nullptr),
      what));
  LLMRT_RETURN_IF_ERROR(
      driver.check(driver.MemcpyDtoHAsync(results.data(), out.address(), words * 4, stream), what));
  LLMRT_RETURN_IF_ERROR(driver.check(driver.StreamSynchronize(stream), what));
  return results;
}

/// Results that differ from \p expected.
size_t differing(const Test &test, const uint32_t *expected, const std::vector<uint32_t> &got) {
  size_t count = 0;
  for (size_t i = 0; i < words; ++i) {
    float a = std::bit_cast<float>(expected[i]), b = std::bit_cast<float>(got[i]);
    bool same =
        expected[i] == got[i] ||
        (test.tolerance > 0 && std::abs(double(a) - b) <= test.tolerance * (1 + std::abs(a)));
    count += !same;
  }
  return count;
}

Status conform(const std::string &path, bool write, const std::string &file) {
  auto readAll = [](const std::string &name) {
    std::ifstream in(name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::string code = readAll(path), known = write ? std::string() : readAll(file);
  if (code.empty())
    return ioError(path + ": can't be read");
  if (!write && known.size() != std::size(tests) * words * 4)
    return invalidFile(file + ": holds " + std::to_string(known.size()) +
                       " bytes of results, expected " +
                       std::to_string(std::size(tests) * words * 4));
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
  std::ofstream out;
  if (write)
    out.open(file, std::ios::binary);
  size_t failed = 0;
  for (size_t i = 0; i < std::size(tests); ++i) {
    LLMRT_ASSIGN_OR_RETURN(auto results, run(driver, module, stream, tests[i], i + 1));
    if (write) {
      out.write(reinterpret_cast<const char *>(results.data()), words * 4);
      continue;
    }
    std::vector<uint32_t> expected(words);
    std::memcpy(expected.data(), known.data() + i * words * 4, words * 4);
    size_t wrong = differing(tests[i], expected.data(), results);
    failed += wrong != 0;
    std::printf("%-18s %s\n", tests[i].kernel,
                wrong ? (std::to_string(wrong) + " of 512 words differ").c_str() : "ok");
  }
  if (write && !out.flush())
    return ioError(file + ": can't be written");
  return failed ? internalError(std::to_string(failed) + " instructions differ from the emulator's")
                : Status::ok();
}

} // namespace

int main(int argc, char **argv) {
  std::string mode = argc == 4 ? argv[2] : "";
  if (mode != "--write" && mode != "--compare") {
    std::fprintf(stderr, "usage: %s MODULE --write FILE | --compare FILE\n", argv[0]);
    return 2;
  }
  if (Status s = conform(argv[1], mode == "--write", argv[3]); !s) {
    std::fprintf(stderr, "error: %s\n", s.message().c_str());
    return 1;
  }
  return 0;
}

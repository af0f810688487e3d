#include "tools/common/MeasureLimits.h"

#include "runtime/device/cpu/CpuLevel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <sys/mman.h>
#include <thread>
#include <vector>
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace llmc::tools {

using llmrt::CpuLevel;
using llmrt::MachineLimits;

#ifdef __x86_64__
namespace {

/// Work of one thread: does one unit, returns the bytes read or operations done. What it computes
/// ends in \p sink, so that it isn't removed.
using Work = double (*)(const uint8_t *data, size_t size, volatile uint64_t *sink);

__attribute__((target("avx2"))) double readMemory(const uint8_t *data, size_t size,
                                                  volatile uint64_t *sink) {
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
  for (size_t i = 0; i + 128 <= size; i += 128) {
    a = _mm256_xor_si256(a, _mm256_load_si256(reinterpret_cast<const __m256i *>(data + i)));
    b = _mm256_xor_si256(b, _mm256_load_si256(reinterpret_cast<const __m256i *>(data + i + 32)));
    c = _mm256_xor_si256(c, _mm256_load_si256(reinterpret_cast<const __m256i *>(data + i + 64)));
    d = _mm256_xor_si256(d, _mm256_load_si256(reinterpret_cast<const __m256i *>(data + i + 96)));
  }
  a = _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d));
  *sink = static_cast<uint64_t>(_mm256_extract_epi64(a, 0));
  return static_cast<double>(size);
}

// Twelve independent accumulators cover latency times throughput of both units; the operands come
// from memory that the compiler can't see through and never leave their registers.
constexpr int kAccumulators = 12, kRounds = 20000;

__attribute__((target("avx2,fma"))) double floatAvx2(const uint8_t *data, size_t,
                                                     volatile uint64_t *sink) {
  __m256 x = _mm256_load_ps(reinterpret_cast<const float *>(data)), acc[kAccumulators];
  for (__m256 &a : acc)
    a = x;
  for (int i = 0; i < kRounds; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kAccumulators; ++j)
      acc[j] = _mm256_fmadd_ps(x, x, acc[j]);
  }
  for (int j = 1; j < kAccumulators; ++j)
    acc[0] = _mm256_add_ps(acc[0], acc[j]);
  *sink = static_cast<uint64_t>(_mm256_cvtss_f32(acc[0]));
  return 2.0 * 8 * kAccumulators * kRounds;
}

__attribute__((target("avx512f"))) double floatAvx512(const uint8_t *data, size_t,
                                                      volatile uint64_t *sink) {
  __m512 x = _mm512_load_ps(data), acc[kAccumulators];
  for (__m512 &a : acc)
    a = x;
  for (int i = 0; i < kRounds; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kAccumulators; ++j)
      acc[j] = _mm512_fmadd_ps(x, x, acc[j]);
  }
  for (int j = 1; j < kAccumulators; ++j)
    acc[0] = _mm512_add_ps(acc[0], acc[j]);
  *sink = static_cast<uint64_t>(_mm512_cvtss_f32(acc[0]));
  return 2.0 * 16 * kAccumulators * kRounds;
}

__attribute__((target("avx2"))) double intAvx2(const uint8_t *data, size_t,
                                               volatile uint64_t *sink) {
  __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i *>(data)), acc[kAccumulators];
  const __m256i ones = _mm256_set1_epi16(1);
  for (__m256i &a : acc)
    a = x;
  for (int i = 0; i < kRounds; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kAccumulators; ++j) // the accumulator as operand: nothing can be hoisted
      acc[j] = _mm256_add_epi32(acc[j], _mm256_madd_epi16(_mm256_maddubs_epi16(acc[j], x), ones));
  }
  for (int j = 1; j < kAccumulators; ++j)
    acc[0] = _mm256_add_epi32(acc[0], acc[j]);
  *sink = static_cast<uint64_t>(_mm256_extract_epi64(acc[0], 0));
  return 2.0 * 32 * kAccumulators * kRounds;
}

__attribute__((target("avx512f,avx512vnni"))) double intVnni(const uint8_t *data, size_t,
                                                             volatile uint64_t *sink) {
  __m512i x = _mm512_load_si512(data), acc[kAccumulators];
  for (__m512i &a : acc)
    a = x;
  for (int i = 0; i < kRounds; ++i) {
#pragma clang loop unroll(full)
    for (int j = 0; j < kAccumulators; ++j)
      acc[j] = _mm512_dpbusd_epi32(acc[j], x, x);
  }
  for (int j = 1; j < kAccumulators; ++j)
    acc[0] = _mm512_add_epi32(acc[0], acc[j]);
  *sink = static_cast<uint64_t>(_mm512_cvtsi512_si32(acc[0]));
  return 2.0 * 64 * kAccumulators * kRounds;
}

/// Runs \p work on all threads for \p seconds; the best rate of any piece of it, summed over
/// the threads. The best and not the mean: a limit is what the machine can do when left alone.
double measure(Work work, unsigned threads, double seconds, const uint8_t *data, size_t sizeEach) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> rates(threads, 0);
  std::atomic<unsigned> ready = 0;
  auto body = [&](unsigned t) {
    volatile uint64_t sink = 0;
    const uint8_t *mine = data + t * sizeEach;
    work(mine, sizeEach, &sink); // touches pages, warms the units
    for (++ready; ready < threads;)
      std::this_thread::yield();
    Clock::time_point start = Clock::now(), now = start;
    do {
      Clock::time_point from = now;
      double amount = work(mine, sizeEach, &sink);
      now = Clock::now();
      rates[t] = std::max(rates[t], amount / std::chrono::duration<double>(now - from).count());
    } while (std::chrono::duration<double>(now - start).count() < seconds);
  };
  std::vector<std::thread> pool;
  for (unsigned t = 1; t < threads; ++t)
    pool.emplace_back(body, t);
  body(0);
  for (std::thread &t : pool)
    t.join();
  double sum = 0;
  for (double r : rates)
    sum += r;
  return sum;
}

} // namespace
#endif

MachineLimits measureLimits(unsigned threads) {
  CpuLevel level = llmrt::machineCpuLevel();
  MachineLimits limits = llmrt::defaultLimits(llmrt::cpuLevelName(level), threads);
#ifdef __x86_64__
  if (level == CpuLevel::None)
    return limits;
  // Far above any last-level cache that a thread has to itself.
  size_t each = size_t(64) << 20;
  void *map = ::mmap(nullptr, each * limits.threads, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    return limits;
  ::madvise(map, each * limits.threads, MADV_HUGEPAGE); // fewer faults; not needed
  // Untouched pages would all be the one page of zeros, and read from cache.
  for (size_t i = 0; i < each * limits.threads; i += 4096)
    static_cast<uint8_t *>(map)[i] = 1;
  bool wide = level >= CpuLevel::X86V4;
  const auto *data = static_cast<const uint8_t *>(map);
  constexpr double kSeconds = 0.015;
  limits.bytesPerSecond = measure(readMemory, limits.threads, kSeconds, data, each);
  limits.floatOperationsPerSecond =
      measure(wide ? floatAvx512 : floatAvx2, limits.threads, kSeconds, data, each);
  limits.intOperationsPerSecond =
      measure(wide ? intVnni : intAvx2, limits.threads, kSeconds, data, each);
  ::munmap(map, each * limits.threads);
  limits.source = "measured";
#endif
  return limits;
}

} // namespace llmc::tools

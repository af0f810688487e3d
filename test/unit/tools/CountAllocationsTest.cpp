#include "tools/common/CountAllocations.h"

#include <atomic>
#include <gtest/gtest.h>
#include <new>
#include <thread>

using llmc::tools::allocationsOfThisThread;

namespace {

struct alignas(64) Line {
  char bytes[64];
};

template <typename Body> int64_t counted(Body body) {
  int64_t before = allocationsOfThisThread();
  body();
  return allocationsOfThisThread() - before;
}

TEST(CountAllocations, EveryFormOfNewOfThisThread) {
  // By function: what new-expressions allocate may be optimised away.
  size_t n = 100;
  EXPECT_EQ(counted([] {}), 0);
  EXPECT_EQ(counted([&] { ::operator delete(::operator new(n)); }), 1);
  EXPECT_EQ(counted([&] { ::operator delete(::operator new(n, std::nothrow)); }), 1);
  EXPECT_EQ(counted([&] { ::operator delete[](::operator new[](n)); }), 1);
  void *line = nullptr;
  EXPECT_EQ(counted([&] { line = ::operator new(sizeof(Line), std::align_val_t(64)); }), 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(line) % 64, 0u);
  ::operator delete(line, std::align_val_t(64));
}

TEST(CountAllocations, OtherThreadsCountForThemselves) {
  int64_t others = 0;
  std::atomic<int> turn = 0;
  std::thread other([&] {
    turn = 1;
    while (turn != 2)
      std::this_thread::yield();
    others = counted([] { ::operator delete(::operator new(1)); });
    turn = 3;
  });
  while (turn != 1)
    std::this_thread::yield();
  EXPECT_EQ(counted([&] {
              turn = 2;
              while (turn != 3)
                std::this_thread::yield();
            }),
            0);
  other.join();
  EXPECT_EQ(others, 1);
}

} // namespace

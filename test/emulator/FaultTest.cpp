// Every kind of fault is reported, in every order of threads, at the line that is wrong; correct
// kernels are silent.
#include "test/emulator/Emulator.h"
#include "test/emulator/KernelObject.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace simt;

namespace {

struct Fault {
  const char *kernel;
  const char *kind; ///< "": none
  const char *text = "";
  unsigned blocks = 1;
  int n = 48;
  unsigned sharedBytes = 0;
  size_t initialised = 128; ///< floats of p
};

const Fault faults[] = {
    {"bad_exit_before_barrier", "barrier divergence"},
    {"bad_two_barriers", "barrier divergence"},
    {"bad_barrier_against_shuffle", "deadlock|barrier divergence"},
    {"bad_shared_write_after_read", "shared race"},
    {"bad_shared_read_after_write", "shared race|uninitialised shared read"},
    {"bad_shared_write_write", "shared race"},
    {"bad_warp_without_syncwarp", "shared race|uninitialised shared read"},
    {"good_warp_with_syncwarp", ""},
    {"bad_shuffle_orders_no_memory", "shared race"},
    {"bad_bytes_of_one_word", "shared race"},
    {"good_bytes_of_one_word", ""},
    {"bad_uninitialised_shared", "uninitialised shared read"},
    {"bad_uninitialised_global", "uninitialised global read", "", 1, 0, 0, 64},
    {"bad_write_past_the_end", "global out of bounds", "past the end of an allocation of 512", 1,
     100},
    {"bad_read_before_the_start", "global out of bounds"},
    {"bad_shared_past_the_end", "shared out of bounds", "", 1, 0, 256},
    {"bad_array_index", "array index out of bounds", "index 6", 1, 6},
    {"bad_misaligned_vector", "misaligned access"},
    {"bad_misaligned_word", "misaligned access"},
    {"bad_shuffle_with_exited_lane", "warp divergence"},
    {"bad_divergent_shuffle", "warp divergence"},
    {"bad_shuffle_from_outside_the_mask", "shuffle from a lane outside the mask"},
    {"bad_own_lane_not_in_mask", "bad mask"},
    {"bad_copy_not_waited", "copy in flight", "", 1, 0, 1024},
    {"bad_copy_waited_for_too_few", "copy in flight", "", 1, 0, 1024},
    {"bad_copy_without_barrier", "shared race|copy in flight|uninitialised shared read", "", 1, 0,
     1024},
    {"bad_copy_left_at_exit", "copy in flight", "exits without waiting", 1, 0, 1024},
    {"good_copy", "", "", 1, 0, 1024},
    {"bad_blocks_add", "global race", "", 2},
    {"good_blocks_add", "", "", 2},
    {"bad_block_reads_what_another_wrote", "global race", "", 2},
    {"good_last_block_reduces", "", "", 2},
    {"bad_last_block_without_fence", "global race", "", 2},
    {"bad_last_block_reads_without_fence", "global race", "", 2},
    {"bad_last_block_without_barrier", "global race", "", 2},
    {"bad_last_block_fence_of_another_thread", "global race", "", 2},
    {"bad_last_block_writes_after_fence", "global race", "", 2},
    {"good_named_barriers", ""},
    {"good_arrive_hands_over", ""},
    {"bad_write_after_arrive", "shared race|uninitialised shared read"},
    {"bad_read_after_arrive", "shared race|uninitialised shared read"},
    {"bad_named_barrier_of_too_few", "deadlock|barrier divergence"},
    {"bad_host_pointer", "not device memory"},
};

class FaultTest : public testing::TestWithParam<std::tuple<Fault, Order>> {};

TEST_P(FaultTest, IsReported) {
  const auto &[fault, order] = GetParam();
  static KernelObject object(SIMT_FAULTS);
  options().order = order;
  clearReports();
  auto *p = static_cast<float *>(allocate(128 * 4));
  for (size_t i = 0; i < fault.initialised; ++i)
    p[i] = 1.f;
  p[127] = 0.f;
  markInitialised(p, fault.initialised * 4);
  int n = fault.n;
  void *arguments[] = {&p, &n};
  bool ok = launch(object.kernel(fault.kernel), {fault.blocks}, {64}, fault.sharedBytes, arguments);
  release(p);
  if (!*fault.kind) {
    ASSERT_TRUE(ok) << reports()[0].kind << ": " << reports()[0].text;
    return;
  }
  ASSERT_FALSE(ok);
  ASSERT_EQ(reports().size(), 1u);
  const Report &r = reports()[0];
  EXPECT_NE(("|" + std::string(fault.kind) + "|").find("|" + r.kind + "|"), std::string::npos)
      << r.kind << ": " << r.text;
  EXPECT_EQ(r.kernel, fault.kernel);
  EXPECT_NE(r.text.find("faults.cu:"), std::string::npos) << r.text;
  EXPECT_NE(r.text.find(fault.text), std::string::npos) << r.text;
}

std::string nameOf(const testing::TestParamInfo<FaultTest::ParamType> &info) {
  static const char *const orders[] = {"forward", "reverse", "random"};
  return std::string(std::get<0>(info.param).kernel) + "_" + orders[int(std::get<1>(info.param))];
}

INSTANTIATE_TEST_SUITE_P(All, FaultTest,
                         testing::Combine(testing::ValuesIn(faults),
                                          testing::Values(Order::Forward, Order::Reverse,
                                                          Order::Random)),
                         nameOf);

} // namespace

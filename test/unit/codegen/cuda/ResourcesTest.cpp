// What ptxas says of kernels, and which of them a plan may hold.
#include "codegen/cuda/Nvrtc.h"

#include "gtest/gtest.h"

using namespace llmc;

namespace {

/// What checkCudaResources says of a kernel of \p threads threads after this log; "" if all is
/// well.
std::string verdict(const std::string &log, uint32_t threads) {
  CudaUnit unit;
  unit.family = "gemm";
  CudaEntry entry;
  entry.name = "gemm_3";
  entry.block = threads;
  unit.entries.push_back(entry);
  CudaImage image;
  image.resources = parsePtxasLog(log);
  EXPECT_EQ(image.resources.count("gemm_3"), 1u);
  llmrt::Status status = checkCudaResources(unit, "sm_80", image);
  return status ? "" : status.message();
}

std::string ptxas(int stack, int stores, int loads, int registers) {
  return "ptxas info    : 0 bytes gmem\n"
         "ptxas info    : Compiling entry function 'gemm_3' for 'sm_80'\n"
         "ptxas info    : Function properties for gemm_3\n    " +
         std::to_string(stack) + " bytes stack frame, " + std::to_string(stores) +
         " bytes spill stores, " + std::to_string(loads) +
         " bytes spill loads\nptxas info    : Used " + std::to_string(registers) +
         " registers, used 1 barriers, 544 bytes cmem[0]\n";
}

TEST(CudaResources, KernelsWithinTheCeiling) {
  EXPECT_EQ(verdict(ptxas(0, 0, 0, 255), 128), "");
  EXPECT_EQ(verdict(ptxas(0, 0, 0, 255), 256), "");
  EXPECT_EQ(verdict(ptxas(0, 0, 0, 128), 512), "");
  EXPECT_EQ(verdict(ptxas(0, 0, 0, 64), 1024), "");
}

TEST(CudaResources, AnErrorNamesTheKernelAndWhatItTakes) {
  EXPECT_NE(verdict(ptxas(0, 8, 12, 255), 128)
                .find("kernel 'gemm_3' (gemm.cu) for sm_80 spills 20 bytes of registers:"),
            std::string::npos);
  EXPECT_NE(verdict(ptxas(48, 0, 0, 90), 128).find("keeps 48 bytes in local memory:"),
            std::string::npos);
  EXPECT_NE(verdict(ptxas(16, 4, 4, 255), 512)
                .find("spills 8 bytes of registers, keeps 16 bytes in local memory, takes 255 "
                      "registers a thread, at most 128 leave room for its blocks of 512:"),
            std::string::npos);
}

} // namespace

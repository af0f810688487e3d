//===- Emulator.h - runs CUDA kernels on the host ---------------------------===//
//
// Kernels are host code built by clang from our own CUDA C++ (Prelude.h). Every thread of a block
// is a fiber; a lane switches only at barriers and warp operations, so a launch is deterministic
// for an order and a seed. Objects built in checked mode report what a GPU would leave undefined.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_EMULATOR_EMULATOR_H
#define LLMC_TEST_EMULATOR_EMULATOR_H

#include "test/emulator/Abi.h"

#include <string>
#include <vector>

namespace simt {

/// The order in which runnable threads of a block, and blocks of a grid, get their turn.
enum class Order { Forward, Reverse, Random };

struct Options {
  /// Host threads that run blocks. More than one pays for grids of long blocks only; checked
  /// kernels use one.
  unsigned workers = 1;
  Order order = Order::Forward;
  uint32_t seed = 1;
  /// cp.async data normally lands as late as the waits allow; this lands it at once.
  bool copiesLandEarly = false;
};
Options &options();

/// One fault. A launch stops at its first.
struct Report {
  std::string kind;   ///< "shared race", "global out of bounds", ...
  std::string kernel; ///< its name
  std::string text;   ///< the thread, the place in the source, what it met
};
/// Faults since clearReports().
const std::vector<Report> &reports();
void clearReports();

// Device memory: filled with NaNs and not initialised until it is written; 4 KiB apart from its
// neighbours. Null: no room.
void *allocate(size_t bytes);
bool release(void *memory);
/// Whether [p, p + bytes) lies in one allocation.
bool isDeviceMemory(const void *p, size_t bytes);
/// Says that the host wrote it.
void markInitialised(const void *p, size_t bytes);
size_t allocatedBytes();
/// Bytes that the stand-in driver has copied from the device to the host.
uint64_t &bytesToHost();
/// Waits of the host for the stand-in driver (cuStreamSynchronize, cuEventSynchronize): how many
/// there were; that number \p skipped returned at once, as if it were not in the program.
struct HostWaits {
  unsigned met = 0, skipped = 0;
};
HostWaits &hostWaits();

/// Runs a kernel; false: it stopped with a report.
bool launch(const KernelEntry &kernel, dim3 grid, dim3 block, unsigned sharedBytes,
            void *const *arguments);

/// The most threads and dynamic shared memory of a block.
inline constexpr unsigned maxBlockThreads = 1024, maxSharedBytes = 227 * 1024;

/// How an instruction of checked kernels met memory, over all its executions by whole warps.
struct MemoryTraffic {
  std::string place; ///< file:line:column
  bool shared = false;
  uint64_t executions = 0;        ///< by a warp
  uint64_t bytes = 0;             ///< by its lanes
  uint64_t transactions = 0;      ///< shared: wavefronts; global: sectors of 32 bytes
  uint64_t leastTransactions = 0; ///< what that many bytes need
};
/// Counts from now on; a warp's executions are matched lane by lane in program order, anew after
/// each barrier and operation of the whole warp.
void countTraffic(bool on);
std::vector<MemoryTraffic> traffic();

} // namespace simt

#endif // LLMC_TEST_EMULATOR_EMULATOR_H

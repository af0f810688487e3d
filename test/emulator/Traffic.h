//===- Traffic.h - counts memory transactions of warps ----------------------===//
#ifndef LLMC_TEST_EMULATOR_TRAFFIC_H
#define LLMC_TEST_EMULATOR_TRAFFIC_H

#include "test/emulator/Checker.h"

namespace simt {

/// Tells the instructions of one place apart where a loop was unrolled: the return address of the
/// call that stands for them, 0 where the site is one itself.
extern thread_local const void *instruction;

/// One lane's part of an instruction. Does nothing unless countTraffic(true).
void noteTraffic(const Thread &thread, uint64_t address, int bytes, Site site, bool shared);
/// A copy unit's read of contiguous global memory.
void noteBulkRead(uint64_t address, uint64_t bytes, Site site);
/// A wgmma's read of 8 rows of 16 bytes at these shared offsets: one wavefront if they lie in
/// different banks.
void noteCoreMatrix(const uint32_t (&rows)[8], Site site);
/// The block is done: what its warps did together is complete.
void finishTraffic();

} // namespace simt

#endif // LLMC_TEST_EMULATOR_TRAFFIC_H

//===- Mbarriers.h - mbarriers of a block -----------------------------------===//
#ifndef LLMC_TEST_EMULATOR_MBARRIERS_H
#define LLMC_TEST_EMULATOR_MBARRIERS_H

#include "test/emulator/Block.h"

namespace simt {

/// The one at that address, which a thread has made; a fault if none has.
Mbarrier &mbarrierAt(void *address, Where where);
/// Ends the phase if all its arrivals and bytes are there.
void completePhase(void *address, Mbarrier &m);

} // namespace simt

#endif // LLMC_TEST_EMULATOR_MBARRIERS_H

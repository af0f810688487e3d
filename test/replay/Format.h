//===- Format.h - a recording of kernel calls ---------------------------------===//
//
// A recording is what one CPU level's kernels did, told so that another level's can do it again
// without the program around them: the memory they read, the calls, the memory they must leave
// behind. All addresses are those of the recorded process, the code included, so nothing is
// relocated: whoever replays maps memory there.
//
// A file is a sequence of records, each a Record and then its payload, padded to 8 bytes.
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_TEST_REPLAY_FORMAT_H
#define LLMC_TEST_REPLAY_FORMAT_H

#include <stdint.h>

namespace llmc::replay {

enum Kind : uint64_t {
  kStart = 0x31594c5052434d4cULL, ///< first record; address: MXCSR of the calls. Payload: level
  kWrite = 1,                     ///< the payload is put at the address
  kCall,                          ///< payload: Call, then the name of what is called
  kExpect,                        ///< memory from the address on must be the payload
  kExpectHash,                    ///< the payload is {bytes, hash of them}
  kEnd,                           ///< address: number of calls
};

struct Record {
  uint64_t kind, address, bytes; ///< bytes of the payload, without padding
};

/// Of a kCall, whose address is the function's: LlmrtKernel's arguments, as addresses.
struct Call {
  uint64_t step, bindings, scalars;
  int64_t taskBegin, taskEnd;
  uint64_t scratch;
};

constexpr uint64_t padded(uint64_t bytes) { return (bytes + 7) & ~uint64_t(7); }

/// FNV-1a over words of 8 bytes; \p bytes is a multiple of 8, \p p aligned.
inline uint64_t hashWords(const void *p, uint64_t bytes) {
  const uint64_t *words = static_cast<const uint64_t *>(p);
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (uint64_t i = 0; i < bytes / 8; ++i)
    hash = (hash ^ words[i]) * 0x100000001b3ULL;
  return hash;
}

} // namespace llmc::replay

#endif // LLMC_TEST_REPLAY_FORMAT_H

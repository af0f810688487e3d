//===- Recorder.h - writes a recording of kernel calls ------------------------===//
#ifndef LLMC_TEST_REPLAY_RECORDER_H
#define LLMC_TEST_REPLAY_RECORDER_H

#include "runtime/device/cpu/KernelAbi.h"
#include "test/replay/Format.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace llmc::replay {

/// Records calls of kernels that this machine runs, as calls of the same kernels in an object of
/// another level (loaded as this process loads its own, or a ForeignObject), which is never run
/// here. Memory is recorded where it differs from what the replay already has. Failures to write
/// end the process: half a recording proves nothing.
class Recorder {
public:
  Recorder(const std::string &file, const std::string &level);
  ~Recorder();
  Recorder(const Recorder &) = delete;

  /// Memory of the process that is known as a whole: who reaches into it gets all of it, and all of
  /// it is compared after each call that was given it.
  void add(const void *p, size_t bytes) { regions[address(p)] = bytes; }
  void remove(const void *p) { regions.erase(address(p)); }

  /// Memory that code lies in which the system's loader doesn't know.
  void addCode(const void *p, size_t bytes) { codes[address(p)] = bytes; }
  void removeCode(const void *p) { codes.erase(address(p)); }

  /// Before the call: its code (the object that \p function lies in), and all memory that it
  /// is given. \p bindingCount and \p scalarCount are the lengths of the arrays.
  void before(const std::string &name, const void *function, const LlmrtStep &step,
              void *const *bindings, size_t bindingCount, const int64_t *scalars,
              size_t scalarCount, int64_t taskBegin, int64_t taskEnd, void *scratch,
              size_t scratchBytes);
  /// After it: what the memory must be now. \p scratch is the kernel's own and not compared.
  void after(void *scratch, size_t scratchBytes);

private:
  static constexpr size_t kPage = 4096;
  /// What the replay has of a page: \p known tells for each 8 bytes.
  struct Page {
    std::array<uint8_t, kPage> bytes;
    std::array<bool, kPage / 8> known{};
  };
  static uint64_t address(const void *p) { return reinterpret_cast<uint64_t>(p); }
  void emit(Kind kind, uint64_t at, const void *payload, size_t bytes, const void *more = nullptr,
            size_t moreBytes = 0);
  void write(const void *p, size_t bytes);
  void expect(const void *p, size_t bytes);
  void forget(const void *p, size_t bytes);
  bool isKnown(uint64_t at, size_t bytes) const;
  void writeObject(const void *function);
  using Regions = std::map<uint64_t, size_t>;
  /// The region of \p among that \p p lies in: its start, or null.
  static const void *regionOf(const Regions &among, const void *p, size_t &bytes);

  std::string path;
  std::FILE *out;
  Regions regions, codes;
  std::unordered_map<uint64_t, Page> pages;
  std::vector<std::pair<const void *, size_t>> reached; ///< by the call
  uint64_t calls = 0;
};

} // namespace llmc::replay

#endif // LLMC_TEST_REPLAY_RECORDER_H

//===- Progress.h - how far a long piece of work is -----------------------------------===//
#ifndef LLMC_COMPILER_DRIVER_PROGRESS_H
#define LLMC_COMPILER_DRIVER_PROGRESS_H

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace llmc {

/// A bar that is redrawn on a terminal, a line at the end of each phase elsewhere, nothing when
/// quiet. Safe to advance from several threads.
class Progress {
public:
  explicit Progress(bool quiet);
  ~Progress();

  /// Starts a phase of \p total units (bytes, as a rule; 0: unknown), ending the one before.
  void begin(std::string_view phase, uint64_t total = 0);
  void advance(uint64_t units);
  /// Ends the last phase; also done by the destructor.
  void finish();

private:
  void draw(bool last);

  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  bool quiet_, terminal_, active_ = false;
  std::string phase_;
  uint64_t total_ = 0, done_ = 0;
  Clock::time_point started_, drawn_;
};

} // namespace llmc

#endif // LLMC_COMPILER_DRIVER_PROGRESS_H

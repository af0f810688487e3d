//===- Progress.cpp - how far a long piece of work is ---------------------------------===//

#include "compiler/driver/Progress.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace llmc;

Progress::Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO)) {
  const char *term = std::getenv("TERM");
  if (term && std::string_view(term) == "dumb")
    terminal_ = false;
}

Progress::~Progress() { finish(); }

void Progress::begin(std::string_view phase, uint64_t total) {
  finish();
  std::lock_guard lock(mutex_);
  phase_ = phase;
  total_ = total;
  done_ = 0;
  active_ = true;
  started_ = drawn_ = Clock::now();
  if (terminal_)
    draw(false);
}

void Progress::advance(uint64_t units) {
  std::lock_guard lock(mutex_);
  done_ += units;
  auto now = Clock::now();
  if (active_ && terminal_ && now - drawn_ > std::chrono::milliseconds(50)) {
    drawn_ = now;
    draw(false);
  }
}

void Progress::finish() {
  std::lock_guard lock(mutex_);
  if (active_)
    draw(true);
  active_ = false;
}

void Progress::draw(bool last) {
  if (quiet_)
    return;
  double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  if (last) {
    std::fprintf(stderr, "%s  %-12s %6.2f s\n", terminal_ ? "\r\033[K" : "", phase_.c_str(),
                 seconds);
    return;
  }
  constexpr int width = 30;
  double part =
      total_ ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_)) : 0;
  int filled = static_cast<int>(part * width);
  std::string bar(filled, '#');
  bar.resize(width, '.');
  if (total_)
    std::fprintf(stderr, "\r\033[K  %-12s [%s] %3.0f %%", phase_.c_str(), bar.c_str(), part * 100);
  else
    std::fprintf(stderr, "\r\033[K  %-12s ...", phase_.c_str());
  std::fflush(stderr);
}

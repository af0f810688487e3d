#include "test/emulator/driver/Streams.h"

#include <chrono>
#include <utility>

namespace standin {

using namespace llmrt::cuda;

namespace {

CUresult sticky = CUDA_SUCCESS;
std::vector<std::function<void()>> givenUp;

void giveUpWhatIsIdle() {
  for (const Stream *stream : streams())
    if (!stream->queue.empty())
      return;
  for (const std::function<void()> &giveUp : std::exchange(givenUp, {}))
    giveUp();
}

CUresult runFirst(Stream &stream) {
  Stream::Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (operation.record) {
    operation.record->reached = operation.generation;
    operation.record->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return CUDA_SUCCESS;
  }
  if (operation.wait)
    return waitFor(*operation.wait, operation.generation);
  if (sticky == CUDA_SUCCESS)
    sticky = operation.work();
  return sticky;
}

} // namespace

Stream &nullStream() {
  static Stream null;
  return null;
}

std::set<Stream *> &streams() {
  static std::set<Stream *> all{&nullStream()};
  return all;
}

CUresult stickyError() { return sticky; }

CUresult enqueue(Stream &stream, Work work) {
  if (stream.capturing) {
    stream.capturing->nodes.push_back(std::move(work));
    return CUDA_SUCCESS;
  }
  stream.queue.push_back({std::move(work)});
  return sticky;
}

CUresult drain(Stream &stream) {
  while (!stream.queue.empty())
    if (CUresult r = runFirst(stream))
      return r;
  giveUpWhatIsIdle();
  return sticky;
}

CUresult drainAll() {
  for (Stream *stream : streams())
    if (CUresult r = drain(*stream))
      return r;
  return sticky;
}

CUresult waitFor(Event &event, uint64_t generation) {
  for (Stream *stream : streams()) {
    bool here = false;
    for (const Stream::Operation &operation : stream->queue)
      here |= operation.record == &event && operation.generation == generation;
    while (here && event.reached < generation)
      if (CUresult r = runFirst(*stream))
        return r;
  }
  return sticky;
}

void afterQueued(std::function<void()> giveUp) {
  givenUp.push_back(std::move(giveUp));
  giveUpWhatIsIdle();
}

} // namespace standin

// The stand-in driver's streams, graphs and events.
#include "test/emulator/Emulator.h"
#include "test/emulator/driver/Device.h"

namespace standin {
namespace {

bool isSkipped() {
  simt::HostWaits &waits = simt::hostWaits();
  return ++waits.met == waits.skipped;
}

} // namespace

CUresult StreamCreate(CUstream *stream, unsigned) {
  Lock lock(driverMutex());
  auto *s = new Stream;
  streams().insert(s);
  *stream = reinterpret_cast<CUstream>(s);
  return CUDA_SUCCESS;
}
CUresult StreamDestroy(CUstream stream) {
  Lock lock(driverMutex());
  drain(streamOf(stream));
  streams().erase(&streamOf(stream));
  delete &streamOf(stream);
  return CUDA_SUCCESS;
}
CUresult StreamSynchronize(CUstream stream) {
  Lock lock(driverMutex());
  if (streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return isSkipped() ? stickyError() : drain(streamOf(stream));
}
CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  Lock lock(driverMutex());
  if (streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto *e = reinterpret_cast<Event *>(event);
  streamOf(stream).queue.push_back({nullptr, nullptr, e, e->recorded});
  return stickyError();
}
CUresult StreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  Lock lock(driverMutex());
  if (!stream || streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  streamOf(stream).capturing = std::make_unique<Graph>();
  return CUDA_SUCCESS;
}
CUresult StreamEndCapture(CUstream stream, CUgraph *graph) {
  Lock lock(driverMutex());
  if (!streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = reinterpret_cast<CUgraph>(streamOf(stream).capturing.release());
  return CUDA_SUCCESS;
}
CUresult GraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  Lock lock(driverMutex());
  *exec = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph *>(graph)));
  return CUDA_SUCCESS;
}
CUresult GraphDestroy(CUgraph graph) {
  Lock lock(driverMutex());
  delete reinterpret_cast<Graph *>(graph);
  return CUDA_SUCCESS;
}
CUresult GraphExecDestroy(CUgraphExec exec) {
  Lock lock(driverMutex());
  delete reinterpret_cast<Graph *>(exec);
  return CUDA_SUCCESS;
}
CUresult GraphLaunch(CUgraphExec exec, CUstream stream) {
  Lock lock(driverMutex());
  for (const Work &node : reinterpret_cast<Graph *>(exec)->nodes)
    if (CUresult r = enqueue(streamOf(stream), node))
      return r;
  return CUDA_SUCCESS;
}

CUresult EventCreate(CUevent *event, unsigned) {
  *event = reinterpret_cast<CUevent>(new Event);
  return CUDA_SUCCESS;
}
CUresult EventDestroy(CUevent event) {
  Lock lock(driverMutex());
  afterQueued([e = reinterpret_cast<Event *>(event)] { delete e; });
  return CUDA_SUCCESS;
}
CUresult EventRecord(CUevent event, CUstream stream) {
  Lock lock(driverMutex());
  if (streamOf(stream).capturing)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto *e = reinterpret_cast<Event *>(event);
  streamOf(stream).queue.push_back({nullptr, e, nullptr, ++e->recorded});
  return stickyError();
}
CUresult EventSynchronize(CUevent event) {
  Lock lock(driverMutex());
  auto *e = reinterpret_cast<Event *>(event);
  return isSkipped() ? stickyError() : waitFor(*e, e->recorded);
}
CUresult EventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  Lock lock(driverMutex());
  auto *a = reinterpret_cast<Event *>(start), *b = reinterpret_cast<Event *>(end);
  if (a->reached < a->recorded || b->reached < b->recorded)
    return CUDA_ERROR_NOT_READY;
  *milliseconds = float((b->seconds - a->seconds) * 1e3);
  return CUDA_SUCCESS;
}

} // namespace standin

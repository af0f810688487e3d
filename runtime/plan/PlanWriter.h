//===- PlanWriter.h - writes a plan file as its parts become known ------------===//
//
// Segments are declared with their size, their bytes come in pieces, in any order and from any
// thread, and go straight to a temporary file beside the target; of a segment only 16 MiB stay in
// memory at most. The head comes last. The file gets its name only when all of it was written and a
// reader's verifier accepted it; until then, and after any failure, there is no output.
//
//   LLMRT_ASSIGN_OR_RETURN(auto writer, PlanWriter::create("m.plan"));
//   LLMRT_ASSIGN_OR_RETURN(uint32_t w, writer->addSegment(fbs::SegmentKind::Weights, "weights",
//   n)); LLMRT_RETURN_IF_ERROR(writer->write(w, 0, bytes));
//   LLMRT_RETURN_IF_ERROR(writer->finish(head));    // fbs::PlanT; its segments are filled in
//
// Only the compiler and tests link this: libllmrt reads plans.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_PLANWRITER_H
#define LLMRT_PLAN_PLANWRITER_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/Xxh64.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace llmrt {

class PlanWriter {
public:
  /// Creates the temporary file "<path>.tmp-...". \p headReserve bytes are kept for the head;
  /// a head that turns out larger is made room for by moving what was written.
  static Result<std::unique_ptr<PlanWriter>> create(const std::string &path,
                                                    uint64_t headReserve = 256 * 1024);
  /// Removes the temporary file, unless finish() succeeded.
  ~PlanWriter();
  PlanWriter(const PlanWriter &) = delete;
  PlanWriter &operator=(const PlanWriter &) = delete;

  /// Declares the next segment and returns its index. Its place in the file follows the segments
  /// declared before; what is never written inside it must be gaps below 64 bytes, which are zero.
  Result<uint32_t> addSegment(fbs::SegmentKind kind, std::string name, uint64_t size);
  /// Writes \p bytes at \p offset of a segment. No byte may be written twice. Any thread.
  Status write(uint32_t segment, uint64_t offset, std::span<const uint8_t> bytes);
  /// A segment of bytes that are all there: declared and written.
  Result<uint32_t> addSegment(fbs::SegmentKind kind, std::string name,
                              std::span<const uint8_t> bytes);

  /// Computes the self-test of the finished file \p path: fills in the tokens and the fingerprint
  /// of a test whose prompt and number of tokens are set.
  using SelfTestRun = std::function<Status(const std::string &path, fbs::SelfTestT &test)>;

  /// Fills in \p head's format, segments and missing defaults, writes it, verifies the file as a
  /// reader would and gives it its name. The writer can't be used afterwards.
  /// \p check is what the reader is asked for: tests without code say requireCode = false.
  /// With \p selfTest and a head that has a self-test, the file as it would be is run; if that
  /// fails the plan has no self-test and \p selfTestStatus, which may be null, says why.
  Status finish(fbs::PlanT &head, const PlanOptions &check = {}, const SelfTestRun &selfTest = {},
                Status *selfTestStatus = nullptr);

  /// The bytes that a head takes: of use as headReserve.
  static uint64_t headBytes(fbs::PlanT &head);

private:
  struct Segment {
    fbs::SegmentKind kind;
    std::string name;
    uint64_t offset; ///< in the file
    uint64_t size;
    std::map<uint64_t, uint64_t> written; ///< begin -> end, disjoint, neighbours merged
    uint64_t hashed = 0;                  ///< bytes that went into the hash as they were written
    std::map<uint64_t, std::vector<uint8_t>> early; ///< written pieces beyond `hashed`, by offset
    uint64_t earlyBytes = 0;
    Xxh64 hash;
  };

  PlanWriter() = default;
  Status failed(const char *what, int error) const;
  Status writeAt(uint64_t offset, const void *data, uint64_t size);
  Status readAt(uint64_t offset, void *data, uint64_t size);
  static void hashPiece(Segment &segment, uint64_t offset, std::span<const uint8_t> bytes);
  Status fillHugePages(uint64_t begin, uint64_t end);
  Status finishHash(Segment &segment);
  Status moveSegments(uint64_t by);
  Status writeHead(const flatbuffers::DetachedBuffer &bytes);

  std::string path_, temporary_;
  int fd_ = -1;
  std::mutex mutex_;    ///< guards all below
  Status firstFailure_; ///< of a write: finish() reports it if the caller went on
  std::vector<std::unique_ptr<Segment>> segments_;
  uint64_t end_ = 0;            ///< where the next segment starts, page-aligned
  std::vector<bool> hugePages_; ///< of the file: those that a write has touched
  std::vector<uint8_t> zeros_;  ///< one huge page
};

/// Puts the defaults that the schema's tables stand for where \p head has none, and the format that
/// this build writes.
void fillPlanDefaults(fbs::PlanT &head);
/// The bytes of \p head: the same for the same contents.
flatbuffers::DetachedBuffer serializeHead(const fbs::PlanT &head);

} // namespace llmrt

#endif // LLMRT_PLAN_PLANWRITER_H

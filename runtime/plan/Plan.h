//===- Plan.h - a loaded plan file -------------------------------------------===//
//
// Opening a plan maps the file read-only and verifies everything but the weights' checksums; no
// weight is read. A Plan that exists has a head in which every index, size and offset was checked,
// so its users index without checks of their own. See README.md for what is guaranteed.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_PLAN_PLAN_H
#define LLMRT_PLAN_PLAN_H

#include "runtime/plan/plan_generated.h"
#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace llmrt {

struct PlanOptions {
  /// Accept a file that its group or others may write. A plan holds machine code: whoever can
  /// write the file can run code as whoever loads it.
  bool allowWritableByOthers = false;
  /// Read all weights once and compare their checksums.
  bool verifyWeights = false;
  /// Accept a head whose kernels no code module provides: for tests that bring their own kernels.
  bool requireCode = true;
};

class Plan {
public:
  /// Maps and verifies \p path. Errors: IoError (can't open, writable by others), InvalidFile
  /// (damaged, truncated, inconsistent), Unsupported (a newer format or kernel ABI); each names the
  /// file, what was found and what was expected.
  static Result<std::shared_ptr<const Plan>> open(const std::string &path,
                                                  const PlanOptions &options = {});
  /// The same for the bytes of a plan file, which are copied; \p name stands in messages.
  static Result<std::shared_ptr<const Plan>> fromMemory(std::span<const uint8_t> bytes,
                                                        const PlanOptions &options = {},
                                                        std::string name = "plan");
  ~Plan();
  Plan(const Plan &) = delete;
  Plan &operator=(const Plan &) = delete;

  const fbs::Plan &head() const { return *head_; }
  /// The path, or the name that fromMemory() was given.
  const std::string &name() const { return name_; }
  /// XXH64 of the head, which holds the checksums of all else: names this plan's content.
  uint64_t contentHash() const { return contentHash_; }
  uint64_t fileSize() const { return fileSize_; }
  uint64_t headSize() const { return headSize_; }

  size_t segmentCount() const { return head_->segments()->size(); }
  /// The bytes of segment \p i, without its padding.
  std::span<const uint8_t> segment(size_t i) const {
    const fbs::Segment &s = *head_->segments()->Get(static_cast<uint32_t>(i));
    return {map_ + s.offset(), static_cast<size_t>(s.size())};
  }
  /// The bytes of weight \p i: packedBytes() of its format and shape, 64-byte aligned.
  std::span<const uint8_t> weight(size_t i) const {
    const fbs::Weight &w = *head_->weights()->Get(static_cast<uint32_t>(i));
    return segment(w.segment()).subspan(w.offset(), w.size());
  }
  const void *weightData(size_t i) const { return weight(i).data(); }

  /// Compares the checksum of segment \p i with the head; reads all its bytes.
  Status verifySegment(size_t i) const;

private:
  Plan() = default;
  /// Checks the header and head that were read, then the semantics and small segments.
  Status verify(const PlanOptions &options);
  Status verifyPadding() const;

  std::string name_;
  const uint8_t *map_ = nullptr; ///< the whole file, page-aligned
  uint64_t fileSize_ = 0;
  /// The head is a private copy: what was verified can't change under its readers.
  std::vector<uint64_t> headWords_;
  uint64_t headSize_ = 0;
  uint64_t contentHash_ = 0;
  const fbs::Plan *head_ = nullptr;
};

} // namespace llmrt

#endif // LLMRT_PLAN_PLAN_H

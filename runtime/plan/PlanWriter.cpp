#include "runtime/plan/PlanWriter.h"

#include "runtime/plan/PlanFormat.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

namespace llmrt {

/// Bytes of a segment that are kept until the hash reaches them.
static constexpr uint64_t kEarlyBytes = 16 << 20;
/// A huge page of x86-64 and of AArch64 with pages of 4 KiB.
static constexpr uint64_t kHugePage = 2 << 20;

void fillPlanDefaults(fbs::PlanT &head) {
  head.format = std::make_unique<fbs::Version>(kPlanMajor, kPlanMinor);
  auto need = [](auto &table) {
    if (!table)
      table = std::make_unique<std::remove_reference_t<decltype(*table)>>();
  };
  need(head.provenance);
  need(head.model);
  need(head.limits);
  need(head.kv);
  need(head.text);
  need(head.text->generation);
}

flatbuffers::DetachedBuffer serializeHead(const fbs::PlanT &head) {
  flatbuffers::FlatBufferBuilder builder(64 * 1024);
  // A scalar takes the same room whatever its value: the head's size doesn't depend on checksums.
  builder.ForceDefaults(true);
  fbs::FinishPlanBuffer(builder, fbs::CreatePlan(builder, &head));
  return builder.Release();
}

uint64_t PlanWriter::headBytes(fbs::PlanT &head) {
  fillPlanDefaults(head);
  return serializeHead(head).size();
}

Status PlanWriter::failed(const char *what, int error) const {
  std::string message = path_ + ": " + what + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT)
    return resourceExhausted(message + " (the plan needs " + std::to_string(end_) + " bytes)");
  return ioError(message);
}

Result<std::unique_ptr<PlanWriter>> PlanWriter::create(const std::string &path,
                                                       uint64_t headReserve) {
  std::unique_ptr<PlanWriter> writer(new PlanWriter);
  writer->path_ = path;
  struct stat st;
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return ioError(path + ": can't write a plan there: not a regular file");
  writer->end_ = alignUp(sizeof(PlanHeader) + std::min(headReserve, kMaxHeadBytes), kPlanPage);
  // Not mkstemp: a plan is as public as the umask lets it be, and never writable by others, which
  // a reader would refuse.
  static std::atomic<unsigned> counter = 0;
  do {
    writer->temporary_ =
        path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    writer->fd_ = ::open(writer->temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  } while (writer->fd_ < 0 && errno == EEXIST);
  if (writer->fd_ < 0)
    return writer->failed("can't create a file beside it", errno);
  return writer;
}

PlanWriter::~PlanWriter() {
  if (fd_ < 0)
    return;
  ::unlink(temporary_.c_str());
  ::close(fd_);
}

Status PlanWriter::writeAt(uint64_t offset, const void *data, uint64_t size) {
  const auto *p = static_cast<const uint8_t *>(data);
  while (size != 0) {
    ssize_t n = ::pwrite(fd_, p, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return failed("can't write", n < 0 ? errno : ENOSPC);
    p += n, size -= static_cast<uint64_t>(n), offset += static_cast<uint64_t>(n);
  }
  return Status::ok();
}

Status PlanWriter::readAt(uint64_t offset, void *data, uint64_t size) {
  auto *p = static_cast<uint8_t *>(data);
  while (size != 0) {
    ssize_t n = ::pread(fd_, p, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return failed("can't read back", n < 0 ? errno : EIO);
    p += n, size -= static_cast<uint64_t>(n), offset += static_cast<uint64_t>(n);
  }
  return Status::ok();
}

Result<uint32_t> PlanWriter::addSegment(fbs::SegmentKind kind, std::string name, uint64_t size) {
  std::lock_guard lock(mutex_);
  // off_t is signed.
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max() - 2 * kPlanPage;
  if (size > kLargest || end_ > kLargest - size)
    return invalidArgument(path_ + ": segment '" + name + "' of " + std::to_string(size) +
                           " bytes is too large for a file");
  auto segment = std::make_unique<Segment>();
  segment->kind = kind;
  segment->name = std::move(name);
  segment->offset = end_;
  segment->size = size;
  end_ = alignUp(end_ + size, kPlanPage);
  // Sparse until written; a limit on file sizes shows here and not after minutes of work.
  if (::ftruncate(fd_, static_cast<off_t>(end_)) != 0)
    return failed("can't extend", errno);
  segments_.push_back(std::move(segment));
  return static_cast<uint32_t>(segments_.size() - 1);
}

Result<uint32_t> PlanWriter::addSegment(fbs::SegmentKind kind, std::string name,
                                        std::span<const uint8_t> bytes) {
  LLMRT_ASSIGN_OR_RETURN(uint32_t index, addSegment(kind, std::move(name), bytes.size()));
  LLMRT_RETURN_IF_ERROR(write(index, 0, bytes));
  return index;
}

/// A gap that only aligns the next weight is taken as final, so that the hash can follow. What
/// comes before its turn, as from several threads, is kept for a moment: reading a large plan back
/// from its file would take longer than hashing it.
void PlanWriter::hashPiece(Segment &s, uint64_t offset, std::span<const uint8_t> bytes) {
  auto follows = [&s](uint64_t begin) { return begin - s.hashed < kPlanAlignment; };
  auto hash = [&s](uint64_t begin, std::span<const uint8_t> piece) {
    s.hash.updateZeros(begin - s.hashed);
    s.hash.update(piece.data(), piece.size());
    s.hashed = begin + piece.size();
  };
  if (!follows(offset)) {
    if (s.earlyBytes + bytes.size() <= kEarlyBytes) {
      s.early.emplace(offset, std::vector<uint8_t>(bytes.begin(), bytes.end()));
      s.earlyBytes += bytes.size();
    }
    return;
  }
  hash(offset, bytes);
  for (auto first = s.early.begin(); first != s.early.end() && follows(first->first);
       first = s.early.erase(first)) {
    hash(first->first, first->second);
    s.earlyBytes -= first->second.size();
  }
}

/// Has the page cache keep the bytes [begin, end) of the file in huge pages. File systems with
/// large folios (ext4 since Linux 6.16, measured) take as large a one as the first write to a place
/// covers, and who maps the file gets what the cache has: pieces of a few hundred kilobytes would
/// leave it in small pages, which a decoding step reads a tenth slower. So the first piece in a
/// huge page is preceded by zeros for all of it.
Status PlanWriter::fillHugePages(uint64_t begin, uint64_t end) {
  for (uint64_t page = begin / kHugePage; page * kHugePage < end; ++page) {
    const uint64_t first = page * kHugePage, last = first + kHugePage;
    if (hugePages_.size() <= page)
      hugePages_.resize(page + 1);
    const bool touched = hugePages_[page];
    hugePages_[page] = true;
    // Not beyond what segments take so far: a limit on the file's size is met when they are
    // declared.
    if (touched || last > end_ || (begin <= first && end >= last))
      continue;
    zeros_.resize(kHugePage);
    LLMRT_RETURN_IF_ERROR(writeAt(first, zeros_.data(), kHugePage));
  }
  return Status::ok();
}

Status PlanWriter::write(uint32_t index, uint64_t offset, std::span<const uint8_t> bytes) {
  if (bytes.empty())
    return Status::ok();
  uint64_t fileOffset = 0;
  Status status;
  {
    std::lock_guard lock(mutex_);
    if (index >= segments_.size())
      return internalError(path_ + ": segment " + std::to_string(index) + " wasn't declared");
    Segment &s = *segments_[index];
    auto fault = [&](const char *what) {
      return internalError(path_ + ": bytes " + std::to_string(offset) + " + " +
                           std::to_string(bytes.size()) + " of segment '" + s.name + "' " + what);
    };
    if (offset > s.size || bytes.size() > s.size - offset)
      return fault("lie outside it");
    uint64_t end = offset + bytes.size();
    auto next = s.written.lower_bound(offset);
    auto previous = next == s.written.begin() ? s.written.end() : std::prev(next);
    if ((next != s.written.end() && next->first < end) ||
        (previous != s.written.end() && previous->second > offset) || offset < s.hashed)
      return fault("were written before");
    hashPiece(s, offset, bytes);
    auto merged = s.written.emplace(offset, end).first;
    if (previous != s.written.end() && previous->second == offset) {
      previous->second = end;
      s.written.erase(merged);
      merged = previous;
    }
    if (next != s.written.end() && next->first == end) {
      merged->second = next->second;
      s.written.erase(next);
    }
    fileOffset = s.offset + offset;
    status = fillHugePages(fileOffset, fileOffset + bytes.size());
  }
  if (status.isOk())
    status = writeAt(fileOffset, bytes.data(), bytes.size());
  if (!status.isOk()) {
    std::lock_guard lock(mutex_);
    if (firstFailure_.isOk())
      firstFailure_ = status;
  }
  return status;
}

/// Checks that all was written and hashes what came far too early, from the file.
Status PlanWriter::finishHash(Segment &s) {
  uint64_t at = 0;
  auto missing = [&](uint64_t end) {
    return internalError(path_ + ": bytes " + std::to_string(at) + " to " + std::to_string(end) +
                         " of segment '" + s.name + "' were never written");
  };
  for (auto [begin, end] : s.written) {
    if (begin - at >= kPlanAlignment)
      return missing(begin);
    at = end;
  }
  if (s.size - at >= kPlanAlignment)
    return missing(s.size);
  std::vector<uint8_t> piece(std::min<uint64_t>(s.size - s.hashed, 1 << 20));
  while (s.hashed != s.size) {
    uint64_t n = std::min<uint64_t>(piece.size(), s.size - s.hashed);
    LLMRT_RETURN_IF_ERROR(readAt(s.offset + s.hashed, piece.data(), n));
    s.hash.update(piece.data(), n);
    s.hashed += n;
  }
  return Status::ok();
}

/// Makes room for a head that outgrew its reserve: from the end, so that no byte is overwritten
/// before it was moved.
Status PlanWriter::moveSegments(uint64_t by) {
  std::vector<uint8_t> piece(4 << 20);
  for (auto it = segments_.rbegin(); it != segments_.rend(); ++it) {
    Segment &s = **it;
    for (uint64_t left = s.size; left != 0;) {
      uint64_t n = std::min<uint64_t>(left, piece.size());
      left -= n;
      LLMRT_RETURN_IF_ERROR(readAt(s.offset + left, piece.data(), n));
      LLMRT_RETURN_IF_ERROR(writeAt(s.offset + by + left, piece.data(), n));
    }
    s.offset += by;
  }
  end_ += by;
  // What lay before the first segment's new place, and between the end of one and the start of the
  // next, must be zero again.
  std::vector<uint8_t> zeros(kPlanPage);
  uint64_t first = segments_.empty() ? end_ : segments_.front()->offset;
  for (uint64_t at = 0; at < first; at += kPlanPage)
    LLMRT_RETURN_IF_ERROR(writeAt(at, zeros.data(), kPlanPage));
  for (const auto &s : segments_) {
    uint64_t tail = s->offset + s->size;
    LLMRT_RETURN_IF_ERROR(writeAt(tail, zeros.data(), alignUp(tail, kPlanPage) - tail));
  }
  return Status::ok();
}

Status PlanWriter::writeHead(const flatbuffers::DetachedBuffer &bytes) {
  PlanHeader header = {};
  std::memcpy(header.magic, kPlanMagic, sizeof header.magic);
  header.containerVersion = kContainerVersion;
  header.headSize = bytes.size();
  header.headChecksum = Xxh64::hash(bytes.data(), bytes.size());
  header.fileSize = end_;
  LLMRT_RETURN_IF_ERROR(writeAt(sizeof header, bytes.data(), bytes.size()));
  return writeAt(0, &header, sizeof header);
}

Status PlanWriter::finish(fbs::PlanT &head, const PlanOptions &check, const SelfTestRun &selfTest,
                          Status *selfTestStatus) {
  if (fd_ < 0)
    return internalError(path_ + ": finished before");
  LLMRT_RETURN_IF_ERROR(firstFailure_);
  fillPlanDefaults(head);
  auto describe = [&] {
    head.segments.clear();
    for (const auto &s : segments_) {
      auto t = std::make_unique<fbs::SegmentT>();
      t->kind = s->kind;
      t->name = s->name;
      t->offset = s->offset;
      t->size = s->size;
      t->checksum = s->hash.digest();
      head.segments.push_back(std::move(t));
    }
  };
  for (const auto &s : segments_)
    LLMRT_RETURN_IF_ERROR(finishHash(*s));
  describe();
  flatbuffers::DetachedBuffer bytes = serializeHead(head);
  if (bytes.size() > kMaxHeadBytes)
    return unsupported(path_ + ": the head takes " + std::to_string(bytes.size()) +
                       " bytes, the limit is " + std::to_string(kMaxHeadBytes));
  uint64_t room = segments_.empty() ? end_ : segments_.front()->offset;
  uint64_t needed = alignUp(sizeof(PlanHeader) + bytes.size(), kPlanPage);
  if (segments_.empty())
    end_ = needed;
  else if (needed > room) {
    LLMRT_RETURN_IF_ERROR(moveSegments(needed - room));
    describe();
    bytes = serializeHead(head);
  }

  if (::ftruncate(fd_, static_cast<off_t>(end_)) != 0)
    return failed("can't extend", errno);
  LLMRT_RETURN_IF_ERROR(writeHead(bytes));
  if (head.self_test && selfTest) {
    Status tested = selfTest(temporary_, *head.self_test);
    if (!tested)
      head.self_test.reset();
    if (selfTestStatus)
      *selfTestStatus = tested;
    // Another head of at most the same size: what is beyond it must be zero.
    std::vector<uint8_t> zeros(bytes.size());
    LLMRT_RETURN_IF_ERROR(writeAt(sizeof(PlanHeader), zeros.data(), zeros.size()));
    bytes = serializeHead(head);
    LLMRT_RETURN_IF_ERROR(writeHead(bytes));
  }

  if (auto plan = Plan::open(temporary_, check); !plan)
    return internalError(path_ + ": the plan would be refused: " + plan.status().message());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0)
    return failed("can't rename the finished file", errno);
  int fd = std::exchange(fd_, -1);
  // Some file systems report a failed write only now.
  if (::close(fd) != 0) {
    int error = errno;
    ::unlink(path_.c_str());
    return failed("can't write", error);
  }
  return Status::ok();
}

} // namespace llmrt

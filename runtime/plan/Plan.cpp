#include "runtime/plan/Plan.h"

#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/PlanVerifier.h"
#include "runtime/plan/Xxh64.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llmrt {
namespace {

std::string number(uint64_t v) { return std::to_string(v); }

Status damaged(const std::string &what, uint64_t hash, uint64_t wanted) {
  char text[80];
  std::snprintf(text, sizeof text, "XXH64 is %016llx, the file says %016llx",
                static_cast<unsigned long long>(hash), static_cast<unsigned long long>(wanted));
  return invalidFile(what + " is damaged: its " + text);
}

/// A descriptor that closes itself.
struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0)
      ::close(fd);
  }
};

Status readAt(int fd, void *to, size_t size, uint64_t offset) {
  auto *p = static_cast<uint8_t *>(to);
  while (size != 0) {
    ssize_t n = ::pread(fd, p, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return ioError(std::string("can't read: ") + std::strerror(errno));
    if (n == 0)
      return invalidFile("the file became shorter while it was read");
    p += n, size -= static_cast<size_t>(n), offset += static_cast<uint64_t>(n);
  }
  return Status::ok();
}

/// Everything that can be said from the first 64 bytes and the size of the file.
Status checkHeader(const PlanHeader &h, uint64_t fileSize) {
  if (std::memcmp(h.magic, kPlanMagic, sizeof h.magic) != 0)
    return invalidFile("not a plan file: it doesn't start with \"LLMPLAN1\"; make one with "
                       "'llmc compile'");
  if (h.containerVersion == __builtin_bswap32(kContainerVersion))
    return unsupported("written by a big-endian machine; plans are little-endian: compile the "
                       "model again");
  if (h.containerVersion > kContainerVersion)
    return unsupported("container version " + number(h.containerVersion) +
                       " is newer than this build's " + number(kContainerVersion) +
                       "; update llmrt or compile the model again");
  if (h.containerVersion != kContainerVersion)
    return invalidFile("container version " + number(h.containerVersion) + ", expected " +
                       number(kContainerVersion));
  if (h.reserved0 != 0 || h.reserved1[0] != 0 || h.reserved1[1] != 0 || h.reserved1[2] != 0)
    return invalidFile("reserved bytes of the header aren't zero");
  if (h.fileSize != fileSize)
    return invalidFile((fileSize < h.fileSize ? "truncated: the file has " : "the file has ") +
                       number(fileSize) + " bytes, its header says " + number(h.fileSize));
  if (h.headSize > kMaxHeadBytes)
    return invalidFile("head of " + number(h.headSize) + " bytes, the limit is " +
                       number(kMaxHeadBytes));
  if (h.headSize < 8 || h.headSize > fileSize - sizeof h)
    return invalidFile("head of " + number(h.headSize) + " bytes in a file of " + number(fileSize));
  return Status::ok();
}

/// The offset of the first byte in [p, p + size) that isn't zero, or \p size.
uint64_t firstNonZero(const uint8_t *p, uint64_t size) {
  uint64_t i = 0;
  for (; size - i >= 8; i += 8) {
    uint64_t word;
    std::memcpy(&word, p + i, 8);
    if (word != 0)
      break;
  }
  while (i < size && p[i] == 0)
    ++i;
  return i;
}

} // namespace

Plan::~Plan() {
  if (map_)
    ::munmap(const_cast<uint8_t *>(map_), fileSize_);
}

Result<std::shared_ptr<const Plan>> Plan::open(const std::string &path,
                                               const PlanOptions &options) {
  std::shared_ptr<Plan> plan(new Plan);
  plan->name_ = path;
  auto load = [&]() -> Status {
    // Without O_NONBLOCK, opening a named pipe would wait for its writer for ever.
    File file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0)
      return ioError(std::string("can't open: ") + std::strerror(errno));
    struct stat st;
    if (::fstat(file.fd, &st) != 0)
      return ioError(std::string("can't stat: ") + std::strerror(errno));
    if (!S_ISREG(st.st_mode))
      return invalidFile("not a regular file");
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !options.allowWritableByOthers) {
      char mode[8];
      std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(st.st_mode & 07777));
      return ioError(std::string("writable by others (mode ") + mode +
                     "); a plan holds code, so run 'chmod go-w' on it if you trust it");
    }
    auto fileSize = static_cast<uint64_t>(st.st_size);
    PlanHeader header;
    if (fileSize < sizeof header)
      return invalidFile("truncated: " + number(fileSize) + " bytes are no plan file");
    LLMRT_RETURN_IF_ERROR(readAt(file.fd, &header, sizeof header, 0));
    LLMRT_RETURN_IF_ERROR(checkHeader(header, fileSize));
    plan->headSize_ = header.headSize;
    plan->contentHash_ = header.headChecksum;
    plan->headWords_.resize((header.headSize + 7) / 8);
    LLMRT_RETURN_IF_ERROR(readAt(file.fd, plan->headWords_.data(), header.headSize, sizeof header));
    void *map = ::mmap(nullptr, fileSize, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (map == MAP_FAILED)
      return ioError("can't map " + number(fileSize) + " bytes: " + std::strerror(errno));
    // What is not in the page cache yet is read into huge pages, where kernel and file system know
    // them: reading a file of 90 MB takes no longer so, and decoding is faster ever after.
    ::madvise(map, fileSize, MADV_HUGEPAGE);
    plan->map_ = static_cast<const uint8_t *>(map);
    plan->fileSize_ = fileSize;
    return plan->verify(options);
  };
  if (Status s = load(); !s.isOk())
    return s.withContext(path);
  return std::shared_ptr<const Plan>(std::move(plan));
}

Result<std::shared_ptr<const Plan>> Plan::fromMemory(std::span<const uint8_t> bytes,
                                                     const PlanOptions &options, std::string name) {
  std::shared_ptr<Plan> plan(new Plan);
  plan->name_ = std::move(name);
  auto load = [&]() -> Status {
    PlanHeader header;
    if (bytes.size() < sizeof header)
      return invalidFile("truncated: " + number(bytes.size()) + " bytes are no plan file");
    std::memcpy(&header, bytes.data(), sizeof header);
    LLMRT_RETURN_IF_ERROR(checkHeader(header, bytes.size()));
    plan->headSize_ = header.headSize;
    plan->contentHash_ = header.headChecksum;
    plan->headWords_.resize((header.headSize + 7) / 8);
    std::memcpy(plan->headWords_.data(), bytes.data() + sizeof header, header.headSize);
    void *map =
        ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
      return resourceExhausted("can't allocate " + number(bytes.size()) + " bytes");
    plan->map_ = static_cast<const uint8_t *>(map);
    plan->fileSize_ = bytes.size();
    std::memcpy(map, bytes.data(), bytes.size());
    ::mprotect(map, bytes.size(), PROT_READ);
    return plan->verify(options);
  };
  if (Status s = load(); !s.isOk())
    return s.withContext(plan->name_);
  return std::shared_ptr<const Plan>(std::move(plan));
}

Status Plan::verify(const PlanOptions &options) {
  std::span<const uint8_t> head(reinterpret_cast<const uint8_t *>(headWords_.data()), headSize_);
  if (uint64_t hash = Xxh64::hash(head.data(), head.size()); hash != contentHash_)
    return damaged("the head", hash, contentHash_);
  VerifyOptions verify;
  verify.fileSize = fileSize_;
  LLMRT_ASSIGN_OR_RETURN(head_, PlanVerifier::verifyHead(head, verify));
  LLMRT_RETURN_IF_ERROR(verifyPadding());
  for (size_t i = 0; i < segmentCount(); ++i)
    if (options.verifyWeights ||
        head_->segments()->Get(static_cast<uint32_t>(i))->kind() != fbs::SegmentKind::Weights)
      LLMRT_RETURN_IF_ERROR(verifySegment(i));
  // After the checksums: damage is named as damage, not as whatever it did to the code.
  if (options.requireCode)
    LLMRT_RETURN_IF_ERROR(PlanVerifier::verifyCode(*this));
  return Status::ok();
}

Status Plan::verifyPadding() const {
  uint64_t at = sizeof(PlanHeader) + headSize_;
  auto check = [&](uint64_t end, const std::string &after) -> Status {
    uint64_t bad = firstNonZero(map_ + at, end - at);
    if (bad != end - at)
      return invalidFile("the padding after " + after + " isn't zero at byte " + number(at + bad));
    return Status::ok();
  };
  std::string before = "the head";
  for (const fbs::Segment *s : *head_->segments()) {
    LLMRT_RETURN_IF_ERROR(check(s->offset(), before));
    at = s->offset() + s->size();
    before = "segment '" + s->name()->str() + "'";
  }
  return check(fileSize_, before);
}

Status Plan::verifySegment(size_t i) const {
  const fbs::Segment &s = *head_->segments()->Get(static_cast<uint32_t>(i));
  std::span<const uint8_t> bytes = segment(i);
  if (uint64_t hash = Xxh64::hash(bytes.data(), bytes.size()); hash != s.checksum())
    return damaged("segment '" + s.name()->str() + "'", hash, s.checksum());
  return Status::ok();
}

} // namespace llmrt

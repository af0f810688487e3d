#include "runtime/plan/PlanImage.h"

#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/PlanWriter.h"
#include "runtime/plan/Xxh64.h"

#include <cstring>

namespace llmrt {

std::vector<uint8_t> wrapHead(const fbs::PlanT &head, const std::vector<SegmentImage> &segments) {
  flatbuffers::DetachedBuffer bytes = serializeHead(head);
  uint64_t end = alignUp(sizeof(PlanHeader) + bytes.size(), kPlanPage);
  std::vector<uint8_t> image(end);
  for (const SegmentImage &s : segments) {
    image.resize(alignUp(end + s.bytes.size(), kPlanPage));
    if (!s.bytes.empty())
      std::memcpy(image.data() + end, s.bytes.data(), s.bytes.size());
    end = image.size();
  }
  PlanHeader header = {};
  std::memcpy(header.magic, kPlanMagic, sizeof header.magic);
  header.containerVersion = kContainerVersion;
  header.headSize = bytes.size();
  header.headChecksum = Xxh64::hash(bytes.data(), bytes.size());
  header.fileSize = image.size();
  std::memcpy(image.data(), &header, sizeof header);
  std::memcpy(image.data() + sizeof header, bytes.data(), bytes.size());
  return image;
}

std::vector<uint8_t> buildPlanImage(fbs::PlanT &head, const std::vector<SegmentImage> &segments) {
  fillPlanDefaults(head);
  head.segments.clear();
  for (const SegmentImage &s : segments) {
    auto t = std::make_unique<fbs::SegmentT>();
    t->kind = s.kind;
    t->name = s.name;
    t->size = s.bytes.size();
    t->checksum = Xxh64::hash(s.bytes.data(), s.bytes.size());
    head.segments.push_back(std::move(t));
  }
  // Offsets don't change the head's size: scalars are always stored.
  uint64_t at = alignUp(sizeof(PlanHeader) + serializeHead(head).size(), kPlanPage);
  for (auto &s : head.segments) {
    s->offset = at;
    at = alignUp(at + s->size, kPlanPage);
  }
  return wrapHead(head, segments);
}

} // namespace llmrt

#include "test/replay/Recorder.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <link.h>

using namespace llmc::replay;

/// Round to nearest, all exceptions masked, denormals are zeros: how the runtime calls kernels.
static constexpr uint64_t kMxcsr = 0x1f80 | 0x8000 | 0x0040;

[[noreturn]] static void fail(const std::string &what) {
  std::fprintf(stderr, "recording kernels: %s\n", what.c_str());
  std::exit(1);
}

Recorder::Recorder(const std::string &file, const std::string &level)
    : path(file), out(std::fopen(file.c_str(), "wb")) {
  if (!out)
    fail(path + ": " + std::strerror(errno));
  emit(kStart, kMxcsr, level.data(), level.size());
}

Recorder::~Recorder() {
  emit(kEnd, calls, nullptr, 0);
  if (std::fclose(out) != 0)
    fail(path + ": " + std::strerror(errno));
}

void Recorder::emit(Kind kind, uint64_t at, const void *payload, size_t bytes, const void *more,
                    size_t moreBytes) {
  const Record record{kind, at, bytes + moreBytes};
  const uint64_t zeros = 0;
  const size_t padding = padded(record.bytes) - record.bytes;
  if (std::fwrite(&record, sizeof(record), 1, out) != 1 ||
      (bytes && std::fwrite(payload, bytes, 1, out) != 1) ||
      (moreBytes && std::fwrite(more, moreBytes, 1, out) != 1) ||
      (padding && std::fwrite(&zeros, padding, 1, out) != 1))
    fail(path + ": " + std::strerror(errno));
}

/// Calls body(number of the page, offset in it, bytes, address) for each page's part of a range.
template <typename Body> static void forPages(uint64_t at, size_t bytes, Body body) {
  constexpr uint64_t page = 4096;
  for (const uint64_t end = at + bytes; at < end;) {
    const uint64_t next = std::min(end, (at / page + 1) * page);
    body(at / page, at % page, next - at, reinterpret_cast<const uint8_t *>(at));
    at = next;
  }
}

/// Calls body(word, first byte, bytes) for each 8 bytes, or part of them, of a page's part.
template <typename Body> static void forWords(uint64_t offset, size_t bytes, Body body) {
  for (const uint64_t end = offset + bytes; offset < end;) {
    const uint64_t next = std::min(end, (offset / 8 + 1) * 8);
    body(offset / 8, offset, next - offset);
    offset = next;
  }
}

void Recorder::write(const void *p, size_t bytes) {
  uint64_t start = 0, end = 0; // of the run that differs
  auto flush = [&] {
    if (end > start)
      emit(kWrite, start, reinterpret_cast<const void *>(start), end - start);
  };
  forPages(address(p), bytes,
           [&](uint64_t number, uint64_t first, size_t part, const uint8_t *now) {
             Page &page = pages[number];
             forWords(first, part, [&](uint64_t word, uint64_t offset, size_t size) {
               const uint8_t *here = now + (offset - first);
               if (page.known[word] && std::memcmp(&page.bytes[offset], here, size) == 0)
                 return;
               page.known[word] = size == 8; // of a part of a word the rest stays unknown
               std::memcpy(&page.bytes[offset], here, size);
               if (address(here) != end) {
                 flush();
                 start = address(here);
               }
               end = address(here) + size;
             });
           });
  flush();
}

bool Recorder::isKnown(uint64_t at, size_t bytes) const {
  bool known = true;
  forPages(at, bytes, [&](uint64_t number, uint64_t first, size_t part, const uint8_t *now) {
    auto it = pages.find(number);
    if (it == pages.end() || std::memcmp(&it->second.bytes[first], now, part) != 0) {
      known = false;
      return;
    }
    forWords(first, part,
             [&](uint64_t word, uint64_t, size_t) { known = known && it->second.known[word]; });
  });
  return known;
}

void Recorder::forget(const void *p, size_t bytes) {
  forPages(address(p), bytes, [&](uint64_t number, uint64_t first, size_t part, const uint8_t *) {
    if (auto it = pages.find(number); it != pages.end())
      forWords(first, part,
               [&](uint64_t word, uint64_t, size_t) { it->second.known[word] = false; });
  });
}

void Recorder::expect(const void *p, size_t bytes) {
  // What didn't change is told by a hash.
  for (uint64_t at = address(p), end = at + bytes; at < end;) {
    auto pageEnd = [&](uint64_t from) { return std::min(end, (from / kPage + 1) * kPage); };
    auto isSame = [&](uint64_t from) {
      return from % 8 == 0 && pageEnd(from) % 8 == 0 && isKnown(from, pageEnd(from) - from);
    };
    uint64_t next = pageEnd(at);
    if (isSame(at)) {
      while (next < end && isSame(next))
        next = pageEnd(next);
      const uint64_t payload[] = {next - at,
                                  hashWords(reinterpret_cast<const void *>(at), next - at)};
      emit(kExpectHash, at, payload, sizeof(payload));
    } else {
      emit(kExpect, at, reinterpret_cast<const void *>(at), next - at);
      Page &page = pages[at / kPage];
      forWords(at % kPage, next - at,
               [&](uint64_t word, uint64_t, size_t size) { page.known[word] = size == 8; });
      std::memcpy(&page.bytes[at % kPage], reinterpret_cast<const void *>(at), next - at);
    }
    at = next;
  }
}

void Recorder::writeObject(const void *function) {
  size_t bytes;
  if (const void *code = regionOf(codes, function, bytes))
    return write(code, bytes);
  struct Search {
    Recorder *recorder;
    uint64_t function;
    bool found;
  } search{this, address(function), false};
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        auto &search = *static_cast<Search *>(data);
        auto segments = [&](auto body) {
          for (int i = 0; i < info->dlpi_phnum; ++i)
            if (const auto &segment = info->dlpi_phdr[i]; segment.p_type == PT_LOAD)
              body(info->dlpi_addr + segment.p_vaddr, segment.p_memsz);
        };
        segments([&](uint64_t start, uint64_t bytes) {
          search.found |= search.function >= start && search.function < start + bytes;
        });
        if (search.found)
          segments([&](uint64_t start, uint64_t bytes) {
            search.recorder->write(reinterpret_cast<const void *>(start), bytes);
          });
        return int(search.found);
      },
      &search);
  if (!search.found)
    fail("a kernel lies in no loaded object");
}

const void *Recorder::regionOf(const Regions &among, const void *p, size_t &bytes) {
  auto it = among.upper_bound(address(p));
  if (it == among.begin())
    return nullptr;
  --it;
  bytes = it->second;
  return address(p) < it->first + it->second ? reinterpret_cast<const void *>(it->first) : nullptr;
}

void Recorder::before(const std::string &name, const void *function, const LlmrtStep &step,
                      void *const *bindings, size_t bindingCount, const int64_t *scalars,
                      size_t scalarCount, int64_t taskBegin, int64_t taskEnd, void *scratch,
                      size_t scratchBytes) {
  reached.clear();
  auto give = [&](const void *p, size_t bytes) {
    if (p && bytes)
      reached.emplace_back(p, bytes);
  };
  auto giveRegion = [&](const void *p, const char *what) {
    size_t bytes;
    const void *start = regionOf(regions, p, bytes);
    if (!start)
      fail(name + ": its " + what + " lies in no memory that was announced");
    give(start, bytes);
  };
  give(&step, sizeof(step));
  give(step.tokens, 4 * step.T);
  give(step.positions, 4 * step.T);
  give(step.queryStart, 4 * (step.S + 1));
  give(step.contextLen, 4 * step.S);
  give(step.blockTable, 4 * step.S * step.maxBlocks);
  give(step.longContext, 4 * step.T);
  give(step.slots, 8 * step.T);
  give(step.logitRows, 4 * step.R);
  give(step.tileSeq, 4 * step.Q);
  give(step.tileStart, 4 * step.Q);
  give(step.tileCount, 4 * step.Q);
  give(step.items, sizeof(LlmrtAttentionItem) * step.itemCount);
  if (step.ancestors)
    give(step.ancestors, 4 * step.T * step.ancestorWidth);
  if (step.partials)
    giveRegion(step.partials, "partial results");
  if (step.arrivals)
    giveRegion(step.arrivals, "arrival counters");
  if (step.kv)
    giveRegion(step.kv, "KV pool");
  give(bindings, sizeof(void *) * bindingCount);
  for (size_t i = 0; i < bindingCount; ++i)
    giveRegion(bindings[i], ("binding " + std::to_string(i)).c_str());
  give(scalars, 8 * scalarCount);

  writeObject(function);
  for (auto [p, bytes] : reached)
    write(p, bytes);
  if (scratchBytes)
    write(scratch, scratchBytes);
  const Call call{address(&step), address(bindings), address(scalars),
                  taskBegin,      taskEnd,           address(scratch)};
  emit(kCall, address(function), &call, sizeof(call), name.data(), name.size());
  ++calls;
}

void Recorder::after(void *scratch, size_t scratchBytes) {
  std::sort(reached.begin(), reached.end());
  reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
  for (auto [p, bytes] : reached)
    expect(p, bytes);
  forget(scratch, scratchBytes);
}

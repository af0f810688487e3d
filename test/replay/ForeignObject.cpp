#include "test/replay/ForeignObject.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <sys/mman.h>

using namespace llmc::replay;

[[noreturn]] static void fail(const char *what) {
  std::fprintf(stderr, "loading code of another architecture: %s\n", what);
  std::exit(1);
}

bool ForeignObject::isForeign(std::string_view bytes) {
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header))
    fail("no ELF header");
  std::memcpy(&header, bytes.data(), sizeof(header));
#if defined(__x86_64__)
  return header.e_machine != EM_X86_64;
#else
  return header.e_machine != EM_AARCH64;
#endif
}

ForeignObject::ForeignObject(std::string_view bytes) {
  auto get = [&]<typename T>(T &value, uint64_t at) {
    if (at > bytes.size() || bytes.size() - at < sizeof(T))
      fail("it is cut off");
    std::memcpy(&value, bytes.data() + at, sizeof(T));
  };
  Elf64_Ehdr header;
  get(header, 0);
  auto forSegments = [&](auto body) {
    for (unsigned i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      get(segment, header.e_phoff + i * sizeof(segment));
      body(segment);
    }
  };
  Elf64_Phdr dynamic{};
  forSegments([&](const Elf64_Phdr &p) {
    if (p.p_type == PT_LOAD)
      length = std::max<size_t>(length, p.p_vaddr + p.p_memsz);
    else if (p.p_type == PT_DYNAMIC)
      dynamic = p;
  });
  if (!length || !dynamic.p_memsz)
    fail("no shared object");
  constexpr size_t page = 4096;
  length = (length + page - 1) / page * page;
  void *memory =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    fail("no memory");
  start = static_cast<uint8_t *>(memory);
  forSegments([&](const Elf64_Phdr &p) {
    if (p.p_type == PT_LOAD)
      std::memcpy(start + p.p_vaddr, bytes.data() + p.p_offset, p.p_filesz);
  });

  uint64_t symbols = 0, strings = 0, hash = 0, relocations = 0, relocationBytes = 0;
  for (auto *d = reinterpret_cast<const Elf64_Dyn *>(start + dynamic.p_vaddr); d->d_tag != DT_NULL;
       ++d)
    switch (d->d_tag) {
    case DT_SYMTAB:
      symbols = d->d_un.d_ptr;
      break;
    case DT_STRTAB:
      strings = d->d_un.d_ptr;
      break;
    case DT_GNU_HASH:
      hash = d->d_un.d_ptr;
      break;
    case DT_RELA:
      relocations = d->d_un.d_ptr;
      break;
    case DT_RELASZ:
      relocationBytes = d->d_un.d_val;
      break;
    case DT_JMPREL:
    case DT_RELR:
      fail("relocations of another sort");
    default:
      break;
    }
  for (uint64_t i = 0; i < relocationBytes / sizeof(Elf64_Rela); ++i) {
    const auto &r = reinterpret_cast<const Elf64_Rela *>(start + relocations)[i];
    if (ELF64_R_TYPE(r.r_info) != R_AARCH64_RELATIVE)
      fail("a relocation that isn't relative");
    const uint64_t value = reinterpret_cast<uint64_t>(start) + static_cast<uint64_t>(r.r_addend);
    std::memcpy(start + r.r_offset, &value, sizeof(value));
  }
  // As many symbols as the hash table's longest chain reaches (DT_GNU_HASH: buckets, first symbol,
  // words of the filter, its shift; filter; buckets; chains).
  const auto *table = reinterpret_cast<const uint32_t *>(start + hash);
  const uint32_t bucketCount = table[0], first = table[1];
  const uint32_t *buckets = table + 4 + 2 * table[2], *chains = buckets + bucketCount;
  uint32_t last = 0;
  for (uint32_t i = 0; i < bucketCount; ++i)
    last = std::max(last, buckets[i]);
  if (last < first)
    fail("no symbols");
  while (!(chains[last - first] & 1))
    ++last;
  for (uint32_t i = first; i <= last; ++i) {
    const auto &s = reinterpret_cast<const Elf64_Sym *>(start + symbols)[i];
    functions[reinterpret_cast<const char *>(start + strings + s.st_name)] = start + s.st_value;
  }
}

ForeignObject::~ForeignObject() {
  if (start)
    ::munmap(start, length);
}

const void *ForeignObject::find(const std::string &symbol) const {
  auto found = functions.find(symbol);
  return found == functions.end() ? nullptr : found->second;
}

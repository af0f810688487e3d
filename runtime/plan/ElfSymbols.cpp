#include "runtime/plan/ElfSymbols.h"

#include <cstring>
#include <elf.h>
#include <optional>
#include <vector>

namespace llmrt {
namespace {

Status bad(const char *what) {
  return invalidFile(std::string("not a usable ELF object: ") + what);
}

/// Copies a T from \p at, if all of it is there; objects in a file need no alignment.
template <typename T> std::optional<T> get(std::span<const uint8_t> bytes, uint64_t at) {
  if (at > bytes.size() || sizeof(T) > bytes.size() - at)
    return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// The parts of the dynamic section that matter here.
struct Dynamic {
  uint64_t symbols = 0, strings = 0, stringsSize = 0, hash = 0, gnuHash = 0;
};

class Reader {
public:
  explicit Reader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  Status headers(const char *&machine) {
    auto h = get<Elf64_Ehdr>(bytes_, 0);
    if (!h || std::memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
      return bad("no ELF header");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
        h->e_type != ET_DYN)
      return bad("not a little-endian 64-bit shared object");
    if (h->e_machine != EM_X86_64 && h->e_machine != EM_AARCH64)
      return bad("neither for x86-64 nor for AArch64");
    machine = h->e_machine == EM_X86_64 ? "x86-64" : "aarch64";
    if (h->e_phentsize != sizeof(Elf64_Phdr))
      return bad("program headers of another size");
    for (unsigned i = 0; i < h->e_phnum; ++i) {
      uint64_t at = 0;
      if (__builtin_add_overflow(h->e_phoff, uint64_t(i) * sizeof(Elf64_Phdr), &at))
        return bad("program headers outside the file");
      auto p = get<Elf64_Phdr>(bytes_, at);
      if (!p)
        return bad("program headers outside the file");
      if (p->p_type != PT_LOAD && p->p_type != PT_DYNAMIC)
        continue;
      uint64_t end = 0;
      if (p->p_offset > bytes_.size() || p->p_filesz > bytes_.size() - p->p_offset ||
          p->p_filesz > p->p_memsz || __builtin_add_overflow(p->p_vaddr, p->p_memsz, &end))
        return bad("a program header outside the file");
      (p->p_type == PT_LOAD ? loads_ : dynamics_).push_back(*p);
    }
    if (dynamics_.size() != 1)
      return bad("it must have one dynamic section");
    return Status::ok();
  }

  Result<Dynamic> dynamic() const {
    Dynamic d;
    const Elf64_Phdr &p = dynamics_[0];
    for (uint64_t i = 0; i < p.p_filesz / sizeof(Elf64_Dyn); ++i) {
      Elf64_Dyn e = *get<Elf64_Dyn>(bytes_, p.p_offset + i * sizeof(Elf64_Dyn));
      switch (e.d_tag) {
      case DT_NULL:
        return d;
      case DT_NEEDED:
        return bad("it needs another library");
      case DT_INIT:
      case DT_FINI:
      case DT_INIT_ARRAY:
      case DT_FINI_ARRAY:
      case DT_PREINIT_ARRAY:
        return bad("it has code that runs when it is loaded or unloaded");
      case DT_SYMTAB:
        d.symbols = e.d_un.d_ptr;
        break;
      case DT_STRTAB:
        d.strings = e.d_un.d_ptr;
        break;
      case DT_STRSZ:
        d.stringsSize = e.d_un.d_val;
        break;
      case DT_SYMENT:
        if (e.d_un.d_val != sizeof(Elf64_Sym))
          return bad("symbols of another size");
        break;
      case DT_HASH:
        d.hash = e.d_un.d_ptr;
        break;
      case DT_GNU_HASH:
        d.gnuHash = e.d_un.d_ptr;
        break;
      default:
        break;
      }
    }
    return d;
  }

  /// A T at a virtual address, from the bytes that the file maps there.
  template <typename T> std::optional<T> atAddress(uint64_t address) const {
    for (const Elf64_Phdr &p : loads_)
      if (address >= p.p_vaddr && address - p.p_vaddr < p.p_filesz &&
          sizeof(T) <= p.p_filesz - (address - p.p_vaddr))
        return get<T>(bytes_, p.p_offset + (address - p.p_vaddr));
    return std::nullopt;
  }

  bool isExecutable(uint64_t address) const {
    for (const Elf64_Phdr &p : loads_)
      if ((p.p_flags & PF_X) != 0 && address >= p.p_vaddr && address - p.p_vaddr < p.p_memsz)
        return true;
    return false;
  }

  /// The number of dynamic symbols: DT_HASH says it, DT_GNU_HASH implies it as the end of the
  /// chain that begins at the highest bucket.
  Result<uint64_t> symbolCount(const Dynamic &d) const {
    if (d.hash != 0) {
      auto count = atAddress<Elf64_Word>(d.hash + 4);
      if (!count)
        return bad("DT_HASH outside its memory");
      return uint64_t(*count);
    }
    auto buckets = atAddress<uint32_t>(d.gnuHash), first = atAddress<uint32_t>(d.gnuHash + 4),
         bloom = atAddress<uint32_t>(d.gnuHash + 8);
    if (d.gnuHash == 0 || !buckets || !first || !bloom)
      return bad("no symbol hash table");
    uint64_t bucketsAt = d.gnuHash + 16 + uint64_t(*bloom) * 8;
    uint64_t chainsAt = bucketsAt + uint64_t(*buckets) * 4, last = 0;
    for (uint64_t i = 0; i < *buckets; ++i) {
      auto b = atAddress<uint32_t>(bucketsAt + i * 4);
      if (!b)
        return bad("DT_GNU_HASH outside its memory");
      last = *b > last ? *b : last;
    }
    if (last < *first)
      return uint64_t(*first);
    for (;; ++last) {
      auto link = atAddress<uint32_t>(chainsAt + (last - *first) * 4);
      if (!link)
        return bad("DT_GNU_HASH outside its memory");
      if ((*link & 1) != 0)
        return last + 1;
    }
  }

  /// The string at \p index of the string table: inside the table and terminated.
  std::optional<std::string_view> stringAt(const Dynamic &d, uint64_t index) const {
    if (index >= d.stringsSize)
      return std::nullopt;
    for (const Elf64_Phdr &p : loads_) {
      uint64_t from = 0;
      if (__builtin_add_overflow(d.strings, index, &from) || from < p.p_vaddr ||
          from - p.p_vaddr >= p.p_filesz)
        continue;
      uint64_t offset = from - p.p_vaddr;
      uint64_t room = std::min(p.p_filesz - offset, d.stringsSize - index);
      const char *s = reinterpret_cast<const char *>(bytes_.data()) + p.p_offset + offset;
      const void *end = std::memchr(s, 0, room);
      if (!end)
        return std::nullopt;
      return std::string_view(s, static_cast<const char *>(end) - s);
    }
    return std::nullopt;
  }

private:
  std::span<const uint8_t> bytes_;
  std::vector<Elf64_Phdr> loads_, dynamics_;
};

} // namespace

Result<ElfSymbols> ElfSymbols::read(std::span<const uint8_t> object) {
  Reader reader(object);
  ElfSymbols result;
  LLMRT_RETURN_IF_ERROR(reader.headers(result.machine_));
  LLMRT_ASSIGN_OR_RETURN(Dynamic d, reader.dynamic());
  LLMRT_ASSIGN_OR_RETURN(uint64_t count, reader.symbolCount(d));
  // Symbol 0 is the undefined one that every table starts with.
  for (uint64_t i = 1; i < count; ++i) {
    auto s = reader.atAddress<Elf64_Sym>(d.symbols + i * sizeof(Elf64_Sym));
    auto name = s ? reader.stringAt(d, s->st_name) : std::nullopt;
    if (!name)
      return bad("a symbol outside its memory");
    if (s->st_shndx == SHN_UNDEF)
      return invalidFile("imports '" + std::string(*name) +
                         "'; a module of a plan imports nothing");
    if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && ELF64_ST_BIND(s->st_info) != STB_LOCAL &&
        reader.isExecutable(s->st_value))
      result.functions_.insert(*name);
  }
  return result;
}

} // namespace llmrt

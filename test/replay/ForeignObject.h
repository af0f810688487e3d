//===- ForeignObject.h - code for another architecture, put into memory -------===//
#ifndef LLMC_TEST_REPLAY_FOREIGNOBJECT_H
#define LLMC_TEST_REPLAY_FOREIGNOBJECT_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace llmc::replay {

/// An ELF shared object as a plan has it (no imports), loaded where there is room and relocated for
/// that, whatever its architecture; it can be recorded, not run. A file that it doesn't understand
/// ends the process.
class ForeignObject {
public:
  explicit ForeignObject(std::string_view bytes);
  ~ForeignObject();
  ForeignObject(const ForeignObject &) = delete;

  /// Whether \p bytes are for another architecture than this process.
  static bool isForeign(std::string_view bytes);

  const void *memory() const { return start; }
  size_t size() const { return length; }
  /// The function's address; null where there is none of that name.
  const void *find(const std::string &symbol) const;

private:
  uint8_t *start = nullptr;
  size_t length = 0;
  std::map<std::string, const void *> functions;
};

} // namespace llmc::replay

#endif // LLMC_TEST_REPLAY_FOREIGNOBJECT_H

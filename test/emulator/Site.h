//===- Site.h - where in the source something happened ----------------------===//
#ifndef LLMC_TEST_EMULATOR_SITE_H
#define LLMC_TEST_EMULATOR_SITE_H

#include "test/emulator/Abi.h"

#include <string>
#include <vector>

namespace simt {

/// A place in the source: that of a wrapper's caller, or a return address to be symbolized.
class Site {
public:
  Site() = default;
  Site(Where where);
  static Site ofReturnAddress(const void *pc);

  /// "file:line:column", and " in file:line:column" for each call that was inlined around it; "?"
  /// where nothing is known. The object that has the code must still be loaded.
  std::string text() const { return texts({*this}).front(); }
  /// The same for many sites: the symbolizer, which takes a tenth of a second to read an object,
  /// runs once for each object.
  static std::vector<std::string> texts(const std::vector<Site> &sites);

  uint64_t key() const { return bits_; }

private:
  static constexpr uint64_t returnAddress = uint64_t(1) << 63;
  uint64_t bits_ = 0;
};

} // namespace simt

#endif // LLMC_TEST_EMULATOR_SITE_H

//===- Wire.h - protobuf messages read in place -------------------------------===//
//
// An ONNX file is one protobuf message. It is walked here field by field over the mapped file:
// nothing is copied, there is no 2 GiB limit, and a length-delimited field is known by its
// offset in the file, which is how a weight gets from an ONNX file into a plan without ever
// entering the IR. Format: https://protobuf.dev/programming-guides/encoding
//
//===----------------------------------------------------------------------===//
#ifndef LLMC_IMPORT_ONNX_WIRE_H
#define LLMC_IMPORT_ONNX_WIRE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace llmc::onnx {

/// Bytes of the mapped file together with their place in it.
struct Span {
  const uint8_t *data = nullptr;
  uint64_t size = 0;
  uint64_t offset = 0; ///< of the first byte, from the start of the file

  llvm::StringRef str() const {
    return {reinterpret_cast<const char *>(data), static_cast<size_t>(size)};
  }
  llvm::ArrayRef<uint8_t> bytes() const { return {data, static_cast<size_t>(size)}; }
};

enum class WireType : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

/// One field of a message.
struct Field {
  uint32_t number = 0;
  WireType type = WireType::Varint;
  uint64_t value = 0; ///< of a varint, fixed64 or fixed32 field
  Span span;          ///< of a length-delimited field
};

/// The failure of reading a file, as text without the file's name.
llvm::Error malformed(const llvm::Twine &what);

/// Calls \p visit for each field of \p message, in file order, until one fails. An overlong
/// varint, a length beyond the message, a field number of 0 and the group wire types (which no
/// version of the ONNX schema has) are errors.
llvm::Error forEachField(Span message, llvm::function_ref<llvm::Error(const Field &)> visit);

/// Appends the values of a repeated varint field, \p field being one element or a packed run.
llvm::Error forEachVarint(const Field &field, llvm::function_ref<llvm::Error(uint64_t)> visit);

/// The same for a repeated float (\p width 4) or double (8); values come as their bits.
llvm::Error forEachFixed(const Field &field, unsigned width,
                         llvm::function_ref<llvm::Error(uint64_t)> visit);

/// Checked readers of singular fields; the error names \p what.
llvm::Error readString(const Field &field, llvm::StringRef what, llvm::StringRef &out);
llvm::Error readSpan(const Field &field, llvm::StringRef what, Span &out);
llvm::Error readInt(const Field &field, llvm::StringRef what, int64_t &out);
llvm::Error readFloat(const Field &field, llvm::StringRef what, float &out);

} // namespace llmc::onnx

#endif // LLMC_IMPORT_ONNX_WIRE_H

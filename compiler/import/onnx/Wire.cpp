//===- Wire.cpp - protobuf messages read in place -----------------------------===//
#include "compiler/import/onnx/Wire.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"
#include <bit>
#include <system_error>

using namespace llmc::onnx;
using llvm::Error;

Error llmc::onnx::malformed(const llvm::Twine &what) {
  return llvm::createStringError(std::make_error_code(std::errc::invalid_argument), what);
}

namespace {

/// A position in a message; every read is checked against the end.
struct Cursor {
  const uint8_t *at, *end;

  uint64_t left() const { return static_cast<uint64_t>(end - at); }

  /// Seven bits a byte, lowest first; false if it doesn't end or has more than 64 bits.
  bool varint(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at == end)
        return false;
      uint8_t byte = *at++;
      if (shift == 63 && byte > 1)
        return false;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return false;
  }
};

Error damaged(Span message, const Cursor &cursor, const llvm::Twine &what) {
  uint64_t place = message.offset + static_cast<uint64_t>(cursor.at - message.data);
  return malformed("damaged or truncated at byte " + llvm::Twine(place) + ": " + what);
}

} // namespace

Error llmc::onnx::forEachField(Span message, llvm::function_ref<Error(const Field &)> visit) {
  Cursor cursor{message.data, message.data + message.size};
  while (cursor.at != cursor.end) {
    uint64_t key, length;
    if (!cursor.varint(key))
      return damaged(message, cursor, "a field key that is not a varint");
    Field field;
    uint64_t number = key >> 3;
    if (number == 0 || number >= (1u << 29))
      return damaged(message, cursor, "field number " + llvm::Twine(number));
    field.number = static_cast<uint32_t>(number);
    field.type = static_cast<WireType>(key & 7);
    switch (field.type) {
    case WireType::Varint:
      if (!cursor.varint(field.value))
        return damaged(message, cursor, "a varint that does not end");
      break;
    case WireType::Fixed64:
      if (cursor.left() < 8)
        return damaged(message, cursor, "a 64-bit value is cut off");
      field.value = llvm::support::endian::read64le(cursor.at);
      cursor.at += 8;
      break;
    case WireType::Fixed32:
      if (cursor.left() < 4)
        return damaged(message, cursor, "a 32-bit value is cut off");
      field.value = llvm::support::endian::read32le(cursor.at);
      cursor.at += 4;
      break;
    case WireType::Bytes:
      if (!cursor.varint(length))
        return damaged(message, cursor, "a length that is not a varint");
      if (length > cursor.left())
        return damaged(message, cursor,
                       "field " + llvm::Twine(field.number) + " has a length of " +
                           llvm::Twine(length) + " bytes but only " + llvm::Twine(cursor.left()) +
                           " are left");
      field.span = {cursor.at, length,
                    message.offset + static_cast<uint64_t>(cursor.at - message.data)};
      cursor.at += length;
      break;
    default:
      return damaged(message, cursor, "wire type " + llvm::Twine(key & 7));
    }
    if (Error error = visit(field))
      return error;
  }
  return Error::success();
}

Error llmc::onnx::forEachVarint(const Field &field, llvm::function_ref<Error(uint64_t)> visit) {
  if (field.type == WireType::Varint)
    return visit(field.value);
  if (field.type != WireType::Bytes)
    return malformed("field " + llvm::Twine(field.number) + " should hold integers");
  Cursor cursor{field.span.data, field.span.data + field.span.size};
  while (cursor.at != cursor.end) {
    uint64_t value;
    if (!cursor.varint(value))
      return damaged(field.span, cursor, "a varint that does not end");
    if (Error error = visit(value))
      return error;
  }
  return Error::success();
}

Error llmc::onnx::forEachFixed(const Field &field, unsigned width,
                               llvm::function_ref<Error(uint64_t)> visit) {
  WireType single = width == 4 ? WireType::Fixed32 : WireType::Fixed64;
  if (field.type == single)
    return visit(field.value);
  if (field.type != WireType::Bytes || field.span.size % width != 0)
    return malformed("field " + llvm::Twine(field.number) + " should hold " +
                     llvm::Twine(width * 8) + "-bit values");
  for (uint64_t i = 0; i < field.span.size; i += width) {
    uint64_t bits = width == 4 ? llvm::support::endian::read32le(field.span.data + i)
                               : llvm::support::endian::read64le(field.span.data + i);
    if (Error error = visit(bits))
      return error;
  }
  return Error::success();
}

Error llmc::onnx::readSpan(const Field &field, llvm::StringRef what, Span &out) {
  if (field.type != WireType::Bytes)
    return malformed(what + " is not a length-delimited field");
  out = field.span;
  return Error::success();
}

Error llmc::onnx::readString(const Field &field, llvm::StringRef what, llvm::StringRef &out) {
  Span span;
  if (Error error = readSpan(field, what, span))
    return error;
  out = span.str();
  return Error::success();
}

Error llmc::onnx::readInt(const Field &field, llvm::StringRef what, int64_t &out) {
  if (field.type != WireType::Varint)
    return malformed(what + " is not an integer");
  out = static_cast<int64_t>(field.value);
  return Error::success();
}

Error llmc::onnx::readFloat(const Field &field, llvm::StringRef what, float &out) {
  if (field.type != WireType::Fixed32)
    return malformed(what + " is not a 32-bit float");
  out = std::bit_cast<float>(static_cast<uint32_t>(field.value));
  return Error::success();
}

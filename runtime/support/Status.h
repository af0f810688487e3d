//===- Status.h - how the runtime reports failure ----------------------------===//
//
// Every fallible function of the runtime returns a Status or a Result<T>. Both are
// [[nodiscard]]; a message names the thing that failed, the reason and, where there is one,
// the way out. Nothing in the runtime throws across a library border.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_SUPPORT_STATUS_H
#define LLMRT_SUPPORT_STATUS_H

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace llmrt {

/// The kinds of failure; the values are those of llmrt_status in the C API.
enum class StatusCode : int {
  Ok = 0,
  InvalidArgument = 1,   ///< the caller's value is wrong (a parameter, a prompt, a flag)
  InvalidFile = 2,       ///< a file is malformed, truncated or damaged
  Unsupported = 3,       ///< well formed, but this build or machine can't do it
  ResourceExhausted = 4, ///< memory, KV blocks, threads
  IoError = 5,           ///< the operating system refused
  Cancelled = 6,
  Internal = 7,        ///< a fault of ours
  QueueFull = 8,       ///< too many requests wait; the same one may be sent again later
  DeadlineExceeded = 9, ///< the request's own time limit
  Unavailable = 10 ///< the engine takes no more requests: it is shutting down
};

class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status ok() { return {}; }
  bool isOk() const { return code_ == StatusCode::Ok; }
  explicit operator bool() const { return isOk(); }
  StatusCode code() const { return code_; }
  const std::string &message() const { return message_; }
  /// The same failure with \p prefix and ": " before its message.
  Status withContext(std::string_view prefix) const {
    return isOk() ? *this : Status(code_, std::string(prefix) + ": " + message_);
  }

private:
  StatusCode code_ = StatusCode::Ok;
  std::string message_;
};

inline Status invalidArgument(std::string m) { return {StatusCode::InvalidArgument, std::move(m)}; }
inline Status invalidFile(std::string m) { return {StatusCode::InvalidFile, std::move(m)}; }
inline Status unsupported(std::string m) { return {StatusCode::Unsupported, std::move(m)}; }
inline Status resourceExhausted(std::string m) {
  return {StatusCode::ResourceExhausted, std::move(m)};
}
inline Status ioError(std::string m) { return {StatusCode::IoError, std::move(m)}; }
inline Status internalError(std::string m) { return {StatusCode::Internal, std::move(m)}; }

/// A value or the Status that says why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : value_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : value_(std::in_place_index<1>, std::move(status)) {
    assert(!std::get<1>(value_).isOk() && "a Result without a value needs a failure");
  }
  bool isOk() const { return value_.index() == 0; }
  explicit operator bool() const { return isOk(); }
  Status status() const { return isOk() ? Status() : std::get<1>(value_); }
  T &operator*() & { return std::get<0>(value_); }
  const T &operator*() const & { return std::get<0>(value_); }
  T &&operator*() && { return std::get<0>(std::move(value_)); }
  T *operator->() { return &std::get<0>(value_); }
  const T *operator->() const { return &std::get<0>(value_); }

private:
  std::variant<T, Status> value_;
};

} // namespace llmrt

/// Returns from the enclosing function when \p expr is a failed Status.
#define LLMRT_RETURN_IF_ERROR(expr)                                                                \
  do {                                                                                             \
    if (::llmrt::Status status_ = (expr); !status_.isOk())                                         \
      return status_;                                                                              \
  } while (false)

#define LLMRT_CONCAT_(a, b) a##b
#define LLMRT_CONCAT(a, b) LLMRT_CONCAT_(a, b)
/// `LLMRT_ASSIGN_OR_RETURN(auto x, f());` unwraps a Result or returns its Status.
#define LLMRT_ASSIGN_OR_RETURN(decl, expr)                                                         \
  auto LLMRT_CONCAT(result_, __LINE__) = (expr);                                                   \
  if (!LLMRT_CONCAT(result_, __LINE__).isOk())                                                     \
    return LLMRT_CONCAT(result_, __LINE__).status();                                               \
  decl = std::move(*LLMRT_CONCAT(result_, __LINE__))

#endif // LLMRT_SUPPORT_STATUS_H

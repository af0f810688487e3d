#include "runtime/text/Pattern.h"

#include "runtime/text/PatternSyntax.h"
#include "runtime/text/Utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace llmrt {

namespace {
// Steps of one search; a sane pattern needs a few for each character of a line.
constexpr uint32_t kMatchLimit = 20'000'000;
// Memory of the interpreter, which takes over when the JIT stack is too small.
constexpr uint32_t kHeapLimitKiB = 256 * 1024;
constexpr size_t kJitStackBytes = 1 << 20;
} // namespace

struct Pattern::Code {
  pcre2_code *code = nullptr;
  bool isCompiled = false; ///< to machine code
  ~Code() { pcre2_code_free(code); }
};

struct PatternScratch::Impl {
  pcre2_match_data *data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context *context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack *stack = pcre2_jit_stack_create(32 * 1024, kJitStackBytes, nullptr);
  Impl() {
    if (!context)
      return;
    pcre2_set_match_limit(context, kMatchLimit);
    pcre2_set_heap_limit(context, kHeapLimitKiB);
    if (stack)
      pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Impl() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

PatternScratch::PatternScratch() = default;
PatternScratch::~PatternScratch() = default;

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.source = std::move(text);
  return pattern;
}

Result<Pattern> Pattern::regex(std::string_view expression) {
  LLMRT_ASSIGN_OR_RETURN(std::string translated, translatePattern(expression));
  Pattern pattern;
  pattern.source = expression;
  pattern.code = std::make_shared<Code>();
  pcre2_compile_context *context = pcre2_compile_context_create(nullptr);
  if (!context)
    return resourceExhausted("no memory to compile a pattern");
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pattern.code->code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C,
      &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!pattern.code->code) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(error, text, sizeof(text));
    return unsupported("pattern '" + std::string(expression) +
                       "': " + reinterpret_cast<const char *>(text));
  }
  // Without JIT support the interpreter does the same, slower.
  size_t machineCode = 0;
  (void)pcre2_jit_compile(pattern.code->code, PCRE2_JIT_COMPLETE);
  (void)pcre2_pattern_info(pattern.code->code, PCRE2_INFO_JITSIZE, &machineCode);
  pattern.code->isCompiled = machineCode > 0;
  return pattern;
}

int Pattern::find(std::string_view text, size_t from, PatternScratch &scratch, Span &match) const {
  if (!code) {
    size_t at = source.empty() ? std::string_view::npos : text.find(source, from);
    if (at == std::string_view::npos)
      return 0;
    match = {at, at + source.size()};
    return 1;
  }
  if (!scratch.impl)
    scratch.impl = std::make_unique<PatternScratch::Impl>();
  PatternScratch::Impl &impl = *scratch.impl;
  if (!impl.data || !impl.context)
    return PCRE2_ERROR_NOMEMORY;
  const auto *subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  auto interpret = [&](uint32_t options) {
    return pcre2_match(code->code, subject, text.size(), from, options | PCRE2_NO_UTF_CHECK,
                       impl.data, impl.context);
  };
  // The machine code itself, without the checks of pcre2_match, which cost as much as a word.
  int rc = code->isCompiled ? pcre2_jit_match(code->code, subject, text.size(), from,
                                              PCRE2_NO_UTF_CHECK, impl.data, impl.context)
                            : interpret(0);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
    rc = interpret(PCRE2_NO_JIT);
  if (rc < 0)
    return rc == PCRE2_ERROR_NOMATCH ? 0 : rc;
  const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(impl.data);
  // \K in a lookaround could move the start behind the end; such a match is of no use.
  if (offsets[0] > offsets[1] || offsets[1] < from)
    return 0;
  match = {offsets[0], offsets[1]};
  return 1;
}

Status Pattern::failure(int error, size_t size) const {
  PCRE2_UCHAR message[256];
  pcre2_get_error_message(error, message, sizeof(message));
  return resourceExhausted("pattern '" + source + "' on a text of " + std::to_string(size) +
                           " bytes: " + reinterpret_cast<const char *>(message));
}

size_t Pattern::next(std::string_view text, size_t at) {
  return at < text.size() ? at + utf8Width(text, at) : at + 1;
}

} // namespace llmrt

//===- ChatTemplate.h - a model's chat template -------------------------------===//
//
// Chat templates are Jinja programs that models bring along. This engine renders them to the
// same text as Hugging Face's apply_chat_template (Jinja 3.1 in its immutable sandbox, with
// trim_blocks, lstrip_blocks, loop controls, `tojson` without HTML escapes, `raise_exception`,
// `strftime_now` and `{% generation %}`). A template can reach nothing but the context it is
// given: there are no files, imports, attributes of the host or mutable arguments.
//
//===----------------------------------------------------------------------===//
#ifndef LLMRT_TEXT_CHAT_CHATTEMPLATE_H
#define LLMRT_TEXT_CHAT_CHATTEMPLATE_H

#include "runtime/support/Status.h"
#include "runtime/text/chat/CivilTime.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace llmrt {

/// What one rendering may use. Exceeding a limit is an error (ResourceExhausted). The defaults
/// leave room for a thousand times what published templates need for a long conversation.
struct TemplateLimits {
  uint64_t steps = 4'000'000;         ///< nodes evaluated, loop rounds, and bytes copied / 64
  uint64_t memoryBytes = 40ull << 20; ///< what the template makes, beside the context it is given
  uint64_t outputBytes = 16ull << 20; ///< the text; 4 x the context's size comes on top
  unsigned depth = 400;               ///< nested expressions, blocks and macro calls together
};

namespace jinja {
struct Program;
}

struct RenderOptions {
  /// What strftime_now() sees; the local time if it is absent.
  std::optional<CivilTime> now;
  TemplateLimits limits;
  /// OpenAI's clients send the arguments of a tool call as JSON text, while most templates want a
  /// mapping. If this is set, such a text in messages[].tool_calls[].function.arguments becomes a
  /// mapping that still prints as that text, for the templates that just print it. Text that
  /// holds no JSON object stays text, and an empty one becomes {}.
  bool parseToolArguments = false;
};

/// A parsed template. Immutable, cheap to copy, and safe to render from many threads at once.
class ChatTemplate {
public:
  /// Fails with InvalidFile: "line 3: ..." for anything that is no template. Nothing is ever
  /// replaced by another template.
  static Result<ChatTemplate> parse(std::string source);

  /// Renders with the members of \p context (an object) as variables.
  /// Fails with InvalidArgument (an undefined value was used, raise_exception was called, ...) or
  /// ResourceExhausted (a limit); the message begins with the line.
  Result<std::string> render(const nlohmann::ordered_json &context,
                             const RenderOptions &options = {}) const;

  const std::string &source() const;
  /// Whether the text of the template reads the variable \p name (as `tools`, `enable_thinking`).
  bool mentions(std::string_view name) const;
  /// Whether the template walks over the parts of a message's content, so that it takes
  /// [{"type": "text", ...}, ...] and not only strings.
  bool takesContentParts() const;

private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Program> program)
      : program_(std::move(program)) {}
  std::shared_ptr<const jinja::Program> program_;
};

} // namespace llmrt

#endif // LLMRT_TEXT_CHAT_CHATTEMPLATE_H

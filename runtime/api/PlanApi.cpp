// Versions, errors, plans and text of the C API.
#include "runtime/api/Handles.h"

#include <algorithm>

using namespace llmrt;
using namespace llmrt::capi;

namespace llmrt::capi {

static thread_local std::string lastError;

llmrt_status report(const Status &status) {
  if (!status.isOk())
    lastError = status.message();
  return static_cast<llmrt_status>(status.code());
}

} // namespace llmrt::capi

namespace {

/// Copies \p n elements to a caller's buffer, or only counts them.
template <typename T>
Status fill(const T *from, size_t n, size_t withTerminator, T *to, size_t capacity, size_t *count) {
  *count = n;
  if (!to)
    return Status::ok();
  if (capacity < n + withTerminator)
    return invalidArgument("the buffer has room for " + std::to_string(capacity) + "; " +
                           std::to_string(n + withTerminator) + " are needed");
  std::copy_n(from, n, to);
  if (withTerminator)
    to[n] = T(0);
  return Status::ok();
}

Status readMessages(const llmrt_message *messages, size_t count, std::vector<ChatMessage> &list) {
  if (!messages && count > 0)
    return missing("messages");
  for (size_t i = 0; i < count; ++i) {
    if (!messages[i].role || !messages[i].content)
      return missing(messages[i].role ? "a message's content" : "a message's role");
    list.push_back({messages[i].role, messages[i].content});
  }
  return Status::ok();
}

} // namespace

extern "C" {

uint32_t llmrt_version(void) {
  return LLMRT_VERSION_MAJOR << 16 | LLMRT_VERSION_MINOR << 8 | LLMRT_VERSION_PATCH;
}

#define LLMRT_TEXT_OF_(x) #x
#define LLMRT_TEXT_OF(x) LLMRT_TEXT_OF_(x)
const char *llmrt_version_string(void) {
  return LLMRT_TEXT_OF(LLMRT_VERSION_MAJOR) "." LLMRT_TEXT_OF(
      LLMRT_VERSION_MINOR) "." LLMRT_TEXT_OF(LLMRT_VERSION_PATCH);
}

const char *llmrt_last_error(void) { return lastError.c_str(); }

const char *llmrt_status_name(llmrt_status status) {
  switch (status) {
  case LLMRT_OK:
    return "ok";
  case LLMRT_INVALID_ARGUMENT:
    return "invalid argument";
  case LLMRT_INVALID_FILE:
    return "invalid file";
  case LLMRT_UNSUPPORTED:
    return "unsupported";
  case LLMRT_RESOURCE_EXHAUSTED:
    return "resource exhausted";
  case LLMRT_IO_ERROR:
    return "i/o error";
  case LLMRT_QUEUE_FULL:
    return "queue full";
  case LLMRT_DEADLINE_EXCEEDED:
    return "deadline exceeded";
  case LLMRT_UNAVAILABLE:
    return "unavailable";
  case LLMRT_CANCELLED:
    return "cancelled";
  case LLMRT_INTERNAL:
    return "internal error";
  }
  return "unknown status";
}

llmrt_status llmrt_plan_open(const char *path, const llmrt_plan_options *options,
                             llmrt_plan **plan) {
  return guarded([&]() -> Status {
    if (!path || !plan)
      return missing(path ? "plan" : "path");
    *plan = nullptr;
    llmrt_plan_options read = {};
    LLMRT_RETURN_IF_ERROR(readOptions(options, read, "llmrt_plan_options"));
    PlanOptions planOptions;
    planOptions.allowWritableByOthers = read.allow_writable_by_others != 0;
    planOptions.verifyWeights = read.verify_weights != 0;
    LLMRT_ASSIGN_OR_RETURN(auto model, Model::open(path, planOptions));
    *plan = new llmrt_plan{std::move(model)};
    return Status::ok();
  });
}

void llmrt_plan_close(llmrt_plan *plan) { delete plan; }

llmrt_status llmrt_plan_get_info(const llmrt_plan *plan, llmrt_plan_info *info) {
  return guarded([&]() -> Status {
    if (!plan || !info)
      return missing(plan ? "info" : "plan");
    const fbs::Plan &head = plan->model->plan()->head();
    llmrt_plan_info all = {};
    all.size = info->size;
    all.name = head.model()->name()->c_str();
    all.architecture = head.model()->architecture()->c_str();
    all.parameters = head.model()->parameters();
    all.layers = static_cast<int32_t>(head.model()->layers());
    all.vocabulary = static_cast<int32_t>(head.model()->vocab_size());
    all.max_context = static_cast<int32_t>(head.model()->max_context());
    all.kv_bytes_per_token = head.kv()->bytes_per_token();
    all.has_tokenizer = plan->model->hasTokenizer();
    all.has_chat_template = plan->model->hasChatTemplate();
    if (info->size < sizeof(size_t))
      return invalidArgument("llmrt_plan_info.size is not set; it must be sizeof(llmrt_plan_info)");
    std::memcpy(info, &all, std::min(info->size, sizeof(all)));
    return Status::ok();
  });
}

llmrt_status llmrt_tokenize(const llmrt_plan *plan, const char *text, size_t length, uint32_t flags,
                            int32_t *ids, size_t capacity, size_t *count) {
  return guarded([&]() -> Status {
    if (!plan || !count || (!text && length > 0))
      return missing(!plan ? "plan" : !count ? "count" : "text");
    constexpr uint32_t known = LLMRT_TOKENIZE_ADD_SPECIAL | LLMRT_TOKENIZE_PARSE_SPECIAL;
    if (flags & ~known)
      return unsupported("llmrt_tokenize: unknown flags " + std::to_string(flags & ~known));
    LLMRT_ASSIGN_OR_RETURN(auto tokenizer, plan->model->tokenizer());
    EncodeOptions options;
    options.addSpecial = (flags & LLMRT_TOKENIZE_ADD_SPECIAL) != 0;
    options.parseSpecial = (flags & LLMRT_TOKENIZE_PARSE_SPECIAL) != 0;
    LLMRT_ASSIGN_OR_RETURN(
        auto encoded, tokenizer->encode(std::string_view(length ? text : "", length), options));
    return fill(encoded.data(), encoded.size(), 0, ids, capacity, count);
  });
}

llmrt_status llmrt_detokenize(const llmrt_plan *plan, const int32_t *ids, size_t count,
                              uint32_t flags, char *text, size_t capacity, size_t *length) {
  return guarded([&]() -> Status {
    if (!plan || !length || (!ids && count > 0))
      return missing(!plan ? "plan" : !length ? "length" : "ids");
    if (flags & ~LLMRT_DETOKENIZE_KEEP_SPECIAL)
      return unsupported("llmrt_detokenize: unknown flags " + std::to_string(flags));
    LLMRT_ASSIGN_OR_RETURN(auto tokenizer, plan->model->tokenizer());
    DecodeOptions options;
    options.skipSpecial = (flags & LLMRT_DETOKENIZE_KEEP_SPECIAL) == 0;
    LLMRT_ASSIGN_OR_RETURN(std::string decoded, tokenizer->decode({ids, count}, options));
    return fill(decoded.data(), decoded.size(), 1, text, capacity, length);
  });
}

llmrt_status llmrt_encode_chat(const llmrt_plan *plan, const llmrt_message *messages, size_t count,
                               int add_generation_prompt, int32_t *ids, size_t capacity,
                               size_t *id_count) {
  return guarded([&]() -> Status {
    if (!plan || !id_count)
      return missing(plan ? "id_count" : "plan");
    std::vector<ChatMessage> list;
    LLMRT_RETURN_IF_ERROR(readMessages(messages, count, list));
    LLMRT_ASSIGN_OR_RETURN(auto encoded,
                           plan->model->encodeChat(std::move(list), add_generation_prompt != 0));
    return fill(encoded.data(), encoded.size(), 0, ids, capacity, id_count);
  });
}

llmrt_status llmrt_apply_chat_template(const llmrt_plan *plan, const llmrt_message *messages,
                                       size_t count, int add_generation_prompt, char *text,
                                       size_t capacity, size_t *length) {
  return guarded([&]() -> Status {
    if (!plan || !length)
      return missing(plan ? "length" : "plan");
    std::vector<ChatMessage> list;
    LLMRT_RETURN_IF_ERROR(readMessages(messages, count, list));
    LLMRT_ASSIGN_OR_RETURN(std::string rendered,
                           plan->model->applyChatTemplate(list, add_generation_prompt != 0));
    return fill(rendered.data(), rendered.size(), 1, text, capacity, length);
  });
}

} // extern "C"

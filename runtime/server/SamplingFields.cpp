#include "runtime/server/SamplingFields.h"

#include <algorithm>
#include <charconv>
#include <random>

namespace llmrt::server {
namespace {

constexpr size_t mostStops = 64, longestStop = 64 << 10;

/// Fields of OpenAI's API and its relatives that this server does not honour, and the JSON texts of
/// values that ask for nothing.
struct Refused {
  std::string_view name;
  std::string_view harmless[3];
  std::string_view why;
};
constexpr Refused refused[] = {
    {"allowed_token_ids", {}, "is not supported; logit_bias can exclude tokens"},
    {"audio", {}, "is not supported: the model answers with text"},
    {"chat_template", {}, "is not supported: the model's own template is used"},
    {"function_call", {"\"none\""}, "is replaced by tool_choice"},
    {"functions", {"[]"}, "is replaced by tools"},
    {"logits_processors", {"[]"}, "is not supported"},
    {"modalities", {"[\"text\"]"}, "may only be [\"text\"]"},
    {"prediction", {}, "is not supported"},
    {"prompt_embeds", {}, "is not supported"},
    {"prompt_logprobs", {}, "is not supported"},
    {"spaces_between_special_tokens", {"true"}, "may only be true"},
    {"store", {"false"}, "is not supported: answers are not kept"},
    {"suffix", {"\"\""}, "is not supported: the model does not fill gaps"},
    {"tfs_z", {"1", "1.0"}, "is not supported"},
    {"truncate_prompt_tokens", {}, "is not supported: a prompt is never cut"},
    {"verbosity", {"\"medium\""}, "is not supported"},
    {"web_search_options", {}, "is not supported"},
};

/// Fields that are for the operator of a service, or hints that change no answer.
constexpr std::string_view noEffect[] = {
    "metadata", "prompt_cache_key",      "request_id", "safety_identifier", "service_tier",
    "user",     "prompt_cache_retention"};

/// Compact JSON of a small value, to compare.
std::string compact(JsonValue value) {
  Result<Json> json = toJson(value);
  return json ? dump(*json) : "";
}

void readStops(Fields &fields, GenerationRequest &request) {
  JsonValue stop = fields.value("stop");
  auto add = [&](JsonValue element) {
    if (!element.isString())
      return fields.fail("stop", std::string("holds ") + element.typeName() +
                                     "; it must be a string or an array of strings");
    std::string text(element.asString());
    if (text.empty())
      return fields.fail("stop", "holds an empty string, which would end every answer at once");
    if (text.size() > longestStop)
      return fields.fail("stop", "holds a string of " + std::to_string(text.size()) +
                                     " bytes; at most " + std::to_string(longestStop) +
                                     " are allowed");
    request.stops.push_back(std::move(text));
  };
  if (!stop)
    return;
  if (!stop.isArray())
    return add(stop);
  if (stop.size() > mostStops)
    return fields.fail("stop", "has " + std::to_string(stop.size()) + " strings; at most " +
                                   std::to_string(mostStops) + " are allowed");
  for (JsonValue element : stop.elements())
    add(element);
}

void readLogitBias(Fields &fields, int32_t vocabulary, SamplingParams &sampling) {
  JsonValue bias = fields.value("logit_bias");
  if (!bias)
    return;
  if (!bias.isObject())
    return fields.fail("logit_bias",
                       std::string("must be an object of token ids and numbers, not ") +
                           bias.typeName());
  for (auto [key, value] : bias.members()) {
    int64_t id = -1;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= vocabulary)
      return fields.fail("logit_bias", "names token '" + std::string(key.substr(0, 40)) +
                                           "'; ids go from 0 to " + std::to_string(vocabulary - 1));
    std::optional<double> number = asDouble(value);
    if (!number || *number < -100 || *number > 100)
      return fields.fail("logit_bias",
                         "of token " + std::string(key) + " must be a number from -100 to 100");
    auto same = std::find_if(sampling.logitBias.begin(), sampling.logitBias.end(),
                             [&](const LogitBias &b) { return b.id == id; });
    if (same != sampling.logitBias.end())
      return fields.fail("logit_bias", "names token " + std::to_string(id) + " twice");
    if (sampling.logitBias.size() == 4096)
      return fields.fail("logit_bias", "names more than 4096 tokens");
    sampling.logitBias.push_back({static_cast<int32_t>(id), static_cast<float>(*number)});
  }
}

/// Texts that may not appear, as tokens: alone and after a space, which tokenizers spell apart.
void readBadWords(Fields &fields, const Served &served, SamplingParams &sampling) {
  JsonValue words = fields.value("bad_words");
  if (!words)
    return;
  if (!words.isArray() || words.size() > 256)
    return fields.fail("bad_words", "must be an array of up to 256 texts");
  for (JsonValue word : words.elements()) {
    if (!word.isString() || word.asString().empty())
      return fields.fail("bad_words", "must be an array of texts that are not empty");
    for (const char *before : {"", " "}) {
      Result<std::vector<int32_t>> ids = served.tokenizer->encode(
          before + std::string(word.asString()), {.parseSpecial = false, .addSpecial = false});
      if (!ids)
        return fields.fail(fromStatus(ids.status(), "bad_words"));
      if (!ids->empty() && std::find(sampling.badWords.begin(), sampling.badWords.end(), *ids) ==
                               sampling.badWords.end())
        sampling.badWords.push_back(std::move(*ids));
    }
  }
}

/// What draws, or changes probabilities, and the values that do not.
constexpr std::pair<const char *, double> changesDraws[] = {{"top_p", 1},
                                                            {"min_p", 0},
                                                            {"typical_p", 1},
                                                            {"top_k", 0},
                                                            {"mirostat", 0},
                                                            {"xtc_probability", 0},
                                                            {"dry_multiplier", 0},
                                                            {"presence_penalty", 0},
                                                            {"repeat_penalty", 1},
                                                            {"frequency_penalty", 0},
                                                            {"repetition_penalty", 1}};

/// Beam search, by the names of vLLM (use_beam_search, best_of) and of Hugging Face (num_beams).
void readBeams(Fields &fields, GenerationRequest &request) {
  std::optional<bool> use = fields.boolean("use_beam_search");
  std::optional<int64_t> beams = fields.integer("num_beams", 1, maxBeams);
  std::optional<double> lengthPenalty = fields.number("length_penalty", -10, 10);
  JsonValue stop = fields.value("early_stopping");
  BeamSearchParams params;
  if (stop.isBool())
    params.stop = stop.asBool() ? BeamStop::Early : BeamStop::Hopeless;
  else if (stop.isString() && stop.asString() == "never")
    params.stop = BeamStop::Never;
  else if (stop)
    return fields.fail("early_stopping", "must be true, false or \"never\"");
  params.lengthPenalty = static_cast<float>(lengthPenalty.value_or(1));
  if (use == false && beams.value_or(1) > 1)
    return fields.fail("num_beams", "asks for beam search, and use_beam_search is false");
  if (!use.value_or(beams.value_or(1) > 1)) {
    if (params.lengthPenalty != 1)
      fields.fail("length_penalty", "belongs to beam search; see use_beam_search and num_beams");
    if (params.stop != BeamStop::Hopeless)
      fields.fail("early_stopping", "belongs to beam search; see use_beam_search and num_beams");
    return;
  }
  if (beams && request.choices > request.answers && request.choices != *beams)
    return fields.fail("best_of", "and num_beams both say how many beams there are");
  params.width = static_cast<int32_t>(beams.value_or(request.choices));
  request.choices = request.answers;
  if (params.width < static_cast<int32_t>(request.answers))
    return fields.fail("num_beams", "is " + std::to_string(params.width) + ", less than n");
  request.beams = params;

  constexpr const char *why = "can't be combined with beam search, which takes the likeliest texts "
                              "by the model's own probabilities";
  std::optional<double> temperature = asDouble(fields.value("temperature"));
  if (temperature && *temperature != 0 && *temperature != 1)
    return fields.fail("temperature", why);
  for (auto [name, neutral] : changesDraws)
    if (std::optional<double> given = asDouble(fields.value(name));
        given && *given != neutral && !(std::string_view(name) == "top_k" && *given == -1))
      return fields.fail(name, why);
  for (const char *name : {"logit_bias", "bad_words", "stop"})
    if (JsonValue value = fields.value(name); value && (value.isString() || value.size() > 0))
      return fields.fail(name, why);
  SamplingParams sampling;
  sampling.minTokens = request.sampling.minTokens;
  request.sampling = std::move(sampling);
}

uint64_t randomSeed() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

} // namespace

void readModel(Fields &fields, const Served &served) {
  std::optional<std::string> model = fields.string("model");
  if (!model || served.serves(*model))
    return;
  std::string names;
  for (const std::string &name : served.names)
    names += (names.empty() ? "'" : ", '") + name + "'";
  fields.fail({404,
               "the model '" + model->substr(0, 200) + "' does not exist; served here: " + names,
               "invalid_request_error", "model", "model_not_found", 0});
}

void readSampling(Fields &fields, const Served &served, GenerationRequest &request) {
  SamplingParams &sampling = request.sampling;
  sampling = served.samplingDefaults;
  auto number = [&](const char *name, float &value, double low, double high) {
    if (std::optional<double> given = fields.number(name, low, high))
      value = static_cast<float>(*given);
  };
  number("temperature", sampling.temperature, 0, 100);
  number("top_p", sampling.topP, 0, 1);
  number("min_p", sampling.minP, 0, 1);
  number("typical_p", sampling.typicalP, 0, 1);
  number("xtc_probability", sampling.xtcProbability, 0, 1);
  number("xtc_threshold", sampling.xtcThreshold, 0, 1);
  number("dry_multiplier", sampling.dryMultiplier, 0, 100);
  number("dry_base", sampling.dryBase, 1, 100);
  if (auto length = fields.integer("dry_allowed_length", 0, INT32_MAX))
    sampling.dryAllowedLength = static_cast<int32_t>(*length);
  if (auto last = fields.integer("dry_penalty_last_n", -1, INT32_MAX))
    sampling.dryLastN = static_cast<int32_t>(*last);
  if (auto mode = fields.integer("mirostat", 0, 2)) {
    if (*mode == 1)
      fields.fail("mirostat", "may be 0 (off) or 2");
    sampling.mirostat = static_cast<int32_t>(*mode);
  }
  number("mirostat_tau", sampling.mirostatTau, 0, 100);
  number("mirostat_eta", sampling.mirostatEta, 0, 1);
  if (auto least = fields.integer("min_tokens", 0, INT32_MAX))
    sampling.minTokens = static_cast<int32_t>(*least);
  readBadWords(fields, served, sampling);
  number("presence_penalty", sampling.presencePenalty, -2, 2);
  number("frequency_penalty", sampling.frequencyPenalty, -2, 2);
  for (const char *name : {"repeat_penalty", "repetition_penalty"}) {
    number(name, sampling.repetitionPenalty, 0, 100);
    if (!(sampling.repetitionPenalty > 0))
      fields.fail(name, "is 0; it must be above 0 (1 is off)");
  }
  if (auto k = fields.integer("top_k", -1, std::numeric_limits<int64_t>::max()))
    sampling.topK = static_cast<int32_t>(std::min<int64_t>(*k, INT32_MAX));
  if (auto seed = fields.integer("seed", INT64_MIN, INT64_MAX))
    sampling.seed = static_cast<uint64_t>(*seed);
  else
    sampling.seed = randomSeed();
  readLogitBias(fields, served.vocabulary, sampling);

  if (auto n = fields.integer("n", 1, 128))
    request.choices = request.answers = static_cast<uint32_t>(*n);
  if (auto best = fields.integer("best_of", 1, 128)) {
    if (*best < request.answers)
      fields.fail("best_of", "is " + std::to_string(*best) + ", less than n");
    request.choices = static_cast<uint32_t>(*best);
  }
  readStops(fields, request);
  if (auto ids = fields.ids("stop_token_ids", served.vocabulary))
    request.stopIds = std::move(*ids);
  if (auto priority = fields.integer("priority", INT32_MIN, INT32_MAX))
    request.priority = static_cast<int32_t>(*priority);
  readBeams(fields, request);
  request.cacheSalt = fields.string("cache_salt").value_or("");
  request.timeout = fields.number("timeout", 0.001, 1e6);
  request.ignoreEnd = fields.boolean("ignore_eos").value_or(false);
  request.skipSpecial = fields.boolean("skip_special_tokens").value_or(true);
  request.includeStop = fields.boolean("include_stop_str_in_output").value_or(false);
}

void refuseChoices(Fields &fields, const GenerationRequest &request) {
  if (request.answers != 1)
    fields.fail("n", "may only be 1");
  if (request.choices != 1)
    fields.fail("best_of", "may only be 1");
  if (request.beams.width > 0)
    fields.fail("use_beam_search", "is not supported here; see /v1/chat/completions");
}

void readStream(Fields &fields, GenerationRequest &request, AnswerHead &head) {
  request.stream = head.stream = fields.boolean("stream").value_or(false);
  if (request.stream && (request.beams.width > 0 || request.choices > request.answers))
    fields.fail("stream", "is not possible with beam search or best_of above n: which text is the "
                          "answer is known at the end");
  JsonValue options = fields.value("stream_options");
  if (!options)
    return;
  if (!options.isObject())
    return fields.fail("stream_options",
                       std::string("must be an object, not ") + options.typeName());
  if (!head.stream)
    return fields.fail("stream_options", "is allowed only with 'stream': true");
  Fields inner(options, "stream_options.");
  head.includeUsage = inner.boolean("include_usage").value_or(false);
  head.continuousUsage = inner.boolean("continuous_usage_stats").value_or(false);
  if (inner.error())
    fields.fail(*inner.error());
}

std::vector<std::string> checkUnread(Fields &fields) {
  for (std::string_view name : noEffect)
    fields.value(name);
  for (const Refused &entry : refused) {
    std::vector<std::string> left = fields.unread();
    if (std::find(left.begin(), left.end(), entry.name) == left.end())
      continue;
    JsonValue value = fields.value(entry.name);
    std::string text = value.size() > 8 ? "" : compact(value);
    if (std::find(std::begin(entry.harmless), std::end(entry.harmless), text) ==
            std::end(entry.harmless) ||
        text.empty())
      fields.fail(entry.name, std::string(entry.why));
  }
  return fields.unread();
}

} // namespace llmrt::server

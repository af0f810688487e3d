#include "tools/common/BenchSpeculation.h"

#include "runtime/engine/DeviceEngine.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/SetSpeculation.h"
#include "tools/common/BenchSupport.h"
#include "tools/common/StepCosts.h"
#include "tools/common/Table.h"
#include "tools/common/TokenFile.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

namespace llmc::tools {

using namespace llmrt;

namespace {

struct Prompt {
  std::string name;
  std::vector<int32_t> ids;
};

struct Compared {
  std::string name;
  int64_t promptTokens = 0, tokens = 0;
  std::vector<double> plain, speculative;      ///< tokens/s of each repetition
  int64_t draftTokens = 0, acceptedTokens = 0; ///< of all repetitions
  StepSizes steps;                             ///< of all repetitions, without those of prompts

  double ratio() const {
    std::vector<double> ratios;
    for (size_t i = 0; i < plain.size(); ++i)
      ratios.push_back(speculative[i] / plain[i]);
    return median(ratios);
  }
  double accepted() const {
    return draftTokens ? static_cast<double>(acceptedTokens) / static_cast<double>(draftTokens) : 0;
  }
  /// Tokens after the first, a step.
  double tokensPerStep() const {
    int64_t count = 0;
    for (auto [size, times] : steps)
      count += times;
    return tokensOfAll() / static_cast<double>(std::max<int64_t>(count, 1));
  }
  /// The ratio as the steps' sizes give it.
  double ratioBySteps(const StepCosts &costs) const {
    return tokensOfAll() * costs.seconds(1) / costs.seconds(steps);
  }

private:
  double tokensOfAll() const {
    return static_cast<double>((tokens - 1) * static_cast<int64_t>(plain.size()));
  }
};

class IdListener final : public CountingListener {
public:
  bool onToken(const TokenEvent &event) override {
    ids.push_back(event.token.id);
    return CountingListener::onToken(event);
  }
  std::vector<int32_t> ids;
};

Result<Prompt> readPrompt(const Model &model, const std::string &line, const std::string &place) {
  auto wrong = [&](const std::string &what) { return invalidFile(place + ": " + what); };
  nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object())
    return wrong("not a JSON object, as {\"name\": \"story\", \"prompt\": \"Once\"}");
  auto isText = [](const nlohmann::json &object, const char *key) {
    return object.contains(key) && object[key].is_string();
  };
  if (!isText(json, "name"))
    return wrong("\"name\" is missing or is no text");
  Prompt prompt{json["name"], {}};
  if (isText(json, "prompt")) {
    LLMRT_ASSIGN_OR_RETURN(prompt.ids, model.encodePrompt(std::string(json["prompt"])));
    return prompt;
  }
  if (!json.contains("messages") || !json["messages"].is_array() || json["messages"].empty())
    return wrong("has neither a \"prompt\" nor \"messages\"");
  std::vector<ChatMessage> messages;
  for (const nlohmann::json &message : json["messages"]) {
    if (!message.is_object() || !isText(message, "role") || !isText(message, "content"))
      return wrong("a message needs the texts \"role\" and \"content\"");
    messages.push_back({message["role"], message["content"]});
  }
  LLMRT_ASSIGN_OR_RETURN(prompt.ids, model.encodeChat(messages, true));
  return prompt;
}

Result<std::vector<Prompt>> readPrompts(const Model &model, const std::string &path) {
  LLMRT_ASSIGN_OR_RETURN(std::string text, readWholeFile(path));
  std::istringstream lines(text);
  std::vector<Prompt> prompts;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos)
      continue;
    std::string place = path + ", line " + std::to_string(number);
    Result<Prompt> prompt = readPrompt(model, line, place);
    if (!prompt)
      return prompt.status().code() == StatusCode::InvalidFile ? prompt.status()
                                                               : prompt.status().withContext(place);
    prompts.push_back(std::move(*prompt));
  }
  if (prompts.empty())
    return invalidFile(path + ": holds no prompt");
  return prompts;
}

class SpeculationBench {
public:
  SpeculationBench(const BenchOptions &options) : options_(options) {}

  Status run(const std::string &path) {
    LLMRT_ASSIGN_OR_RETURN(model_, Model::open(path));
    LLMRT_ASSIGN_OR_RETURN(std::vector<Prompt> prompts, readPrompts(*model_, options_.promptsFile));
    LLMRT_ASSIGN_OR_RETURN(endIds_, model_->endIds());
    LLMRT_ASSIGN_OR_RETURN(plain_, makeEngine(""));
    LLMRT_ASSIGN_OR_RETURN(speculative_, makeEngine(options_.speculativeConfig));
    for (const Prompt &prompt : prompts)
      LLMRT_RETURN_IF_ERROR(compare(prompt).withContext(prompt.name));
    return Status::ok();
  }

  std::vector<Compared> rows;
  StepCosts costs;
  const Model &model() const { return *model_; }
  /// The largest ratio that these steps could give: guesses cost nothing and come true.
  double bound() const {
    double most = 1;
    for (int64_t size : costs.sizes(seenOften))
      most = std::max(most, static_cast<double>(size) * costs.seconds(1) / costs.seconds(size));
    return most;
  }
  static constexpr size_t seenOften = 5;

private:
  Result<std::unique_ptr<Engine>> makeEngine(const std::string &speculation) {
    EngineOptions engine;
    LLMRT_ASSIGN_OR_RETURN(engine.device, parseDevice(options_.device));
    engine.threads = options_.threads;
    engine.maxSequences = 1;
    engine.blockTokens = options_.blockSize;
    engine.maxBatchedTokens = options_.maxBatchedTokens;
    LLMRT_ASSIGN_OR_RETURN(engine.sampledVocabulary, model_->sampledVocabulary());
    if (!speculation.empty())
      LLMRT_RETURN_IF_ERROR(setSpeculation(*model_, speculation, engine));
    return createEngine(model_->plan(), engine);
  }

  /// Runs \p prompt to its end; the speed after the first token. Adds its steps to \p steps.
  Result<double> answer(Engine &engine, const Prompt &prompt, std::vector<int32_t> &ids,
                        StepSizes *steps) {
    IdListener listener;
    RequestOptions request;
    request.prompt = prompt.ids;
    request.maxNewTokens = options_.newTokens;
    request.endIds = endIds_;
    request.listener = &listener;
    LLMRT_ASSIGN_OR_RETURN(RequestId id, engine.add(std::move(request)));
    (void)id;
    while (engine.busy()) {
      const bool decodes = listener.tokens > 0;
      const int64_t guesses = engine.metrics().draftTokens;
      const auto start = Clock::now();
      LLMRT_RETURN_IF_ERROR(engine.step());
      if (!decodes || !steps)
        continue;
      const int64_t size = 1 + engine.metrics().draftTokens - guesses;
      costs.add(size, secondsBetween(start, Clock::now()));
      ++(*steps)[size];
    }
    LLMRT_RETURN_IF_ERROR(listener.status);
    ids = std::move(listener.ids);
    double seconds = secondsBetween(listener.stats.firstToken, listener.stats.lastToken);
    if (ids.size() < 2 || seconds <= 0)
      return invalidArgument("the answer has " + std::to_string(ids.size()) +
                             " tokens; speed needs two or more");
    return static_cast<double>(ids.size() - 1) / seconds;
  }

  Status compare(const Prompt &prompt) {
    Compared row;
    row.name = prompt.name;
    row.promptTokens = static_cast<int64_t>(prompt.ids.size());
    std::vector<int32_t> want, got;
    // Not timed: the prompt comes into both caches.
    for (Engine *engine : {plain_.get(), speculative_.get()})
      LLMRT_RETURN_IF_ERROR(answer(*engine, prompt, want, nullptr).status());
    const EngineMetrics &metrics = speculative_->metrics();
    int64_t drafts = metrics.draftTokens, accepted = metrics.acceptedTokens;
    StepSizes plainSteps;
    int64_t repetitions = options_.repetitions ? options_.repetitions : 5;
    for (int64_t i = 0; i < repetitions; ++i) {
      // Which goes first changes, so that a slower machine slows both.
      for (bool speculates : {i % 2 == 1, i % 2 == 0}) {
        Engine &engine = speculates ? *speculative_ : *plain_;
        LLMRT_ASSIGN_OR_RETURN(double speed, answer(engine, prompt, speculates ? got : want,
                                                    speculates ? &row.steps : &plainSteps));
        (speculates ? row.speculative : row.plain).push_back(speed);
      }
      if (got != want && !speculative_->limits().speculation.classical)
        return Status(StatusCode::Internal, "the answer with speculation is another one");
    }
    row.tokens = static_cast<int64_t>(want.size());
    row.draftTokens = metrics.draftTokens - drafts;
    row.acceptedTokens = metrics.acceptedTokens - accepted;
    rows.push_back(std::move(row));
    return Status::ok();
  }

  const BenchOptions &options_;
  std::shared_ptr<const Model> model_;
  std::vector<int32_t> endIds_;
  std::unique_ptr<Engine> plain_, speculative_;
};

double geometricMean(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

struct Ratios {
  explicit Ratios(const SpeculationBench &bench) {
    for (const Compared &row : bench.rows) {
      timed.push_back(row.ratio());
      bySteps.push_back(row.ratioBySteps(bench.costs));
    }
  }
  std::vector<double> timed, bySteps;
};

void printTable(const SpeculationBench &bench, std::ostream &out) {
  Table table({"prompt", "tokens", "answer", "plain", "speculative", "ratio", "by steps",
               "guesses true", "tokens a step"});
  for (const Compared &row : bench.rows)
    table.add({row.name, std::to_string(row.promptTokens), std::to_string(row.tokens),
               fixed(median(row.plain), " tok/s"), fixed(median(row.speculative), " tok/s"),
               fixed(row.ratio(), "", 2), fixed(row.ratioBySteps(bench.costs), "", 2),
               fixed(100 * row.accepted(), " %"), fixed(row.tokensPerStep(), "", 2)});
  table.print(out);
  const Ratios ratios(bench);
  auto line = [&](const char *name, const std::vector<double> &values) {
    out << name << fixed(std::ranges::min(values), "", 2) << ", geometric mean "
        << fixed(geometricMean(values), "", 2) << "\n";
  };
  line("\nlowest ratio ", ratios.timed);
  line("by the steps' sizes and the median time of each: lowest ", ratios.bySteps);
  out << "a step of n tokens over one of one token:";
  for (int64_t size : bench.costs.sizes(SpeculationBench::seenOften))
    out << " " << size << ": " << fixed(bench.costs.seconds(size) / bench.costs.seconds(1), "", 2);
  out << "\nso the ratio could be " << fixed(bench.bound(), "", 2)
      << " at most, if every guess came true\n";
}

void printJson(const SpeculationBench &bench, std::ostream &out) {
  nlohmann::ordered_json json;
  json["model"] = bench.model().plan()->head().model()->name()->str();
  const Ratios ratios(bench);
  json["lowest_ratio"] = std::ranges::min(ratios.timed);
  json["mean_ratio"] = geometricMean(ratios.timed);
  json["lowest_ratio_by_steps"] = std::ranges::min(ratios.bySteps);
  json["mean_ratio_by_steps"] = geometricMean(ratios.bySteps);
  json["ratio_bound"] = bench.bound();
  auto &costs = json["step_costs"] = nlohmann::ordered_json::array();
  for (int64_t size : bench.costs.sizes(1))
    costs.push_back({{"tokens", size}, {"seconds", bench.costs.seconds(size)}});
  auto &prompts = json["prompts"] = nlohmann::ordered_json::array();
  for (const Compared &row : bench.rows)
    prompts.push_back({{"name", row.name},
                       {"prompt_tokens", row.promptTokens},
                       {"tokens", row.tokens},
                       {"plain", median(row.plain)},
                       {"speculative", median(row.speculative)},
                       {"ratio", row.ratio()},
                       {"ratio_by_steps", row.ratioBySteps(bench.costs)},
                       {"draft_tokens", row.draftTokens},
                       {"accepted_tokens", row.acceptedTokens},
                       {"tokens_per_step", row.tokensPerStep()}});
  out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

} // namespace

int benchSpeculationMain(const std::string &plan, const BenchOptions &options, std::ostream &out,
                         std::ostream &err) {
  SpeculationBench bench(options);
  Status status = bench.run(plan);
  if (status) {
    options.json ? printJson(bench, out) : printTable(bench, out);
    if (!out.good())
      status = ioError("writing the output failed");
  }
  if (!status)
    err << "error: " << status.message() << std::endl;
  return status ? 0 : 1;
}

} // namespace llmc::tools

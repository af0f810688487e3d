#include "tools/common/Eval.h"

#include "runtime/engine/DeviceEngine.h"
#include "runtime/engine/Model.h"
#include "tools/common/EvalStatistics.h"
#include "tools/common/JsonWriter.h"
#include "tools/common/Table.h"
#include "tools/common/TokenFile.h"

#include <algorithm>

namespace llmc::tools {

using namespace llmrt;

namespace {

constexpr int64_t defaultWindow = 512;

/// Takes the rows of logits of one window as they come.
class RowListener : public RequestListener {
public:
  bool onToken(const TokenEvent &) override { return true; }
  void onFinish(const FinishEvent &event) override { status = event.status; }
  Status status;
};

/// Keeps rows until they are taken.
class RowQueue final : public RowListener {
public:
  void onPromptLogits(int64_t, std::span<const float> logits, int64_t vocabulary) override {
    values_.insert(values_.end(), logits.begin(), logits.end());
    vocabulary_ = static_cast<size_t>(vocabulary);
  }
  int64_t rows() const {
    return vocabulary_ ? static_cast<int64_t>(values_.size() / vocabulary_) : 0;
  }
  std::span<const float> row(size_t i) const {
    return std::span(values_).subspan(i * vocabulary_, vocabulary_);
  }
  void drop(int64_t rows) {
    values_.erase(values_.begin(), values_.begin() + rows * static_cast<int64_t>(vocabulary_));
  }

private:
  std::vector<float> values_;
  size_t vocabulary_ = 0;
};

/// Adds the rows to the statistics; with a reference, its rows for the same positions must wait in
/// the queue.
class Scorer final : public RowListener {
public:
  Scorer(EvalStatistics &statistics, std::span<const int32_t> window, RowQueue *reference)
      : statistics_(statistics), window_(window), reference_(reference) {}

  void onPromptLogits(int64_t first, std::span<const float> logits, int64_t vocabulary) override {
    auto columns = static_cast<size_t>(vocabulary);
    int64_t rows = static_cast<int64_t>(logits.size() / columns);
    for (int64_t r = 0; r < rows && failure; ++r) {
      int64_t next = first + r + 1;
      if (next >= static_cast<int64_t>(window_.size()))
        break; // nothing follows the last token
      std::span<const float> row = logits.subspan(size_t(r) * columns, columns);
      int32_t token = window_[size_t(next)];
      Status added = reference_ ? statistics_.add(row, reference_->row(size_t(r)), token)
                                : statistics_.add(row, token);
      if (!added)
        failure = added.withContext("token " + std::to_string(next - 1) + " of a window");
    }
    if (reference_)
      reference_->drop(rows);
  }
  Status failure;

private:
  EvalStatistics &statistics_;
  std::span<const int32_t> window_;
  RowQueue *reference_;
};

Result<std::unique_ptr<Engine>> makeEngine(const Model &model, int64_t window,
                                           const EvalOptions &options) {
  EngineOptions engine;
  engine.threads = options.threads;
  engine.promptLogits = true;
  engine.kvTokens = window;
  ModelShape shape = modelShape(model.plan()->head());
  engine.maxBatchedTokens = std::min({options.chunk, window, shape.maxTokens, shape.maxRows});
  return createEngine(model.plan(), engine);
}

Status addWindow(Engine &engine, std::span<const int32_t> window, RequestListener &listener) {
  RequestOptions request;
  request.prompt.assign(window.begin(), window.end());
  request.maxNewTokens = 0;
  request.promptLogits = true;
  request.listener = &listener;
  LLMRT_ASSIGN_OR_RETURN(RequestId id, engine.add(std::move(request)));
  (void)id;
  return Status::ok();
}

Result<std::vector<int32_t>> encode(const Model &model, std::string_view text) {
  LLMRT_ASSIGN_OR_RETURN(auto tokenizer, model.tokenizer());
  return tokenizer->encode(text, {.parseSpecial = false, .addSpecial = false});
}

struct Evaluation {
  std::shared_ptr<const Model> model, reference;
  std::vector<int32_t> tokens;
  int64_t window = 0, windows = 0;
  EvalStatistics statistics;

  Status open(const std::string &path, const EvalOptions &options);
  Status run(const EvalOptions &options);
};

Status Evaluation::open(const std::string &path, const EvalOptions &options) {
  LLMRT_ASSIGN_OR_RETURN(model, Model::open(path));
  std::string text;
  if (options.text.empty()) {
    LLMRT_ASSIGN_OR_RETURN(tokens, readTokenFile(options.tokensFile));
  } else {
    LLMRT_ASSIGN_OR_RETURN(text, readWholeFile(options.text));
    LLMRT_ASSIGN_OR_RETURN(tokens, encode(*model, text));
  }
  int64_t context = model->plan()->head().model()->max_context();
  if (!options.reference.empty()) {
    LLMRT_ASSIGN_OR_RETURN(reference, Model::open(options.reference));
    const fbs::Model &a = *model->plan()->head().model();
    const fbs::Model &b = *reference->plan()->head().model();
    if (a.vocab_size() != b.vocab_size())
      return invalidArgument(options.reference + ": the reference has " +
                             std::to_string(b.vocab_size()) + " logits a token, the plan " +
                             std::to_string(a.vocab_size()) + "; compare plans of the same model");
    if (!text.empty() && reference->hasTokenizer()) {
      LLMRT_ASSIGN_OR_RETURN(std::vector<int32_t> others, encode(*reference, text));
      if (others != tokens)
        return invalidArgument(options.reference +
                               ": the reference's tokenizer makes other tokens of the text; "
                               "compare plans of the same model");
    }
    context = std::min<int64_t>(context, b.max_context());
  }
  if (options.context > context)
    return invalidArgument("--context " + std::to_string(options.context) +
                           " is beyond the model's context of " + std::to_string(context));
  window = options.context > 0 ? options.context : std::min(defaultWindow, context);
  if (options.maxTokens > 0 && static_cast<int64_t>(tokens.size()) > options.maxTokens)
    tokens.resize(static_cast<size_t>(options.maxTokens));
  if (tokens.size() < 2)
    return invalidArgument((options.text.empty() ? options.tokensFile : options.text) + ": " +
                           std::to_string(tokens.size()) +
                           " tokens; an evaluation needs at least 2");
  return Status::ok();
}

Status Evaluation::run(const EvalOptions &options) {
  LLMRT_ASSIGN_OR_RETURN(auto engine, makeEngine(*model, window, options));
  std::unique_ptr<Engine> referenceEngine;
  if (reference) {
    LLMRT_ASSIGN_OR_RETURN(referenceEngine, makeEngine(*reference, window, options));
  }
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += size_t(window)) {
    std::span<const int32_t> ids =
        std::span(tokens).subspan(begin, std::min(size_t(window), tokens.size() - begin));
    RowQueue rows;
    Scorer scorer(statistics, ids, reference ? &rows : nullptr);
    LLMRT_RETURN_IF_ERROR(addWindow(*engine, ids, scorer));
    if (reference)
      LLMRT_RETURN_IF_ERROR(addWindow(*referenceEngine, ids, rows));
    while (engine->busy()) {
      // The reference goes first by as much as the plan's next step may give.
      while (reference && referenceEngine->busy() &&
             rows.rows() < engine->limits().maxBatchedTokens)
        LLMRT_RETURN_IF_ERROR(referenceEngine->step());
      LLMRT_RETURN_IF_ERROR(rows.status);
      LLMRT_RETURN_IF_ERROR(engine->step());
      LLMRT_RETURN_IF_ERROR(scorer.failure);
    }
    LLMRT_RETURN_IF_ERROR(scorer.status);
    ++windows;
  }
  return Status::ok();
}

void printJson(const Evaluation &e, std::ostream &out) {
  const EvalStatistics &s = e.statistics;
  JsonWriter j(out);
  j.object([&] {
    j.key("model").value(e.model->plan()->head().model()->name()->string_view());
    j.key("tokens").value(e.tokens.size());
    j.key("scored").value(s.tokens());
    j.key("context").value(e.window);
    j.key("windows").value(e.windows);
    j.key("perplexity").value(s.perplexity().mean);
    j.key("perplexity_error").value(s.perplexity().error);
    j.key("loss").value(s.loss().mean);
    j.key("loss_error").value(s.loss().error);
    if (!s.compared())
      return;
    std::vector<double> sorted = s.divergences();
    j.key("reference_perplexity").value(s.referencePerplexity().mean);
    j.key("kl").object([&] {
      j.key("mean").value(s.divergence().mean);
      j.key("error").value(s.divergence().error);
      j.key("median").value(quantile(sorted, 0.5));
      j.key("p99").value(quantile(sorted, 0.99));
      j.key("max").value(sorted.back());
    });
    j.key("same_top").value(s.sameTop());
  });
}

std::string number(const char *format, double a, double b = 0) {
  char text[64];
  std::snprintf(text, sizeof text, format, a, b);
  return text;
}

void printTable(const Evaluation &e, std::ostream &out) {
  const EvalStatistics &s = e.statistics;
  out << e.model->plan()->head().model()->name()->string_view() << ", " << s.tokens()
      << " tokens scored in " << e.windows << " window" << (e.windows == 1 ? "" : "s") << " of "
      << e.window << "\n\n";
  Table table({"what", "value"});
  auto estimated = [&](const char *what, const char *format, Estimate value) {
    table.add({what, number(format, value.mean, value.error)});
  };
  estimated("perplexity", "%.4f +- %.4f", s.perplexity());
  if (s.compared()) {
    std::vector<double> sorted = s.divergences();
    estimated("perplexity of the reference", "%.4f +- %.4f", s.referencePerplexity());
    estimated("KL divergence, mean", "%.6f +- %.6f", s.divergence());
    table.add({"KL divergence, median", number("%.6f", quantile(sorted, 0.5))});
    table.add({"KL divergence, 99 %", number("%.6f", quantile(sorted, 0.99))});
    table.add({"KL divergence, largest", number("%.6f", sorted.back())});
    table.add({"same likeliest token", number("%.2f %%", 100 * s.sameTop())});
  }
  table.print(out);
}

} // namespace

int evalMain(const std::string &path, const EvalOptions &options, std::ostream &out,
             std::ostream &err) {
  if (options.text.empty() == options.tokensFile.empty()) {
    err << "error: give a text (--text FILE) or token ids (--tokens-file FILE)" << std::endl;
    return 2;
  }
  Evaluation evaluation;
  Status status = evaluation.open(path, options);
  if (status)
    status = evaluation.run(options);
  if (!status) {
    err << "error: " << status.message() << std::endl;
    return 1;
  }
  (options.json ? printJson : printTable)(evaluation, out);
  if (!out.flush()) {
    err << "error: writing the output failed" << std::endl;
    return 1;
  }
  return 0;
}

} // namespace llmc::tools

#include "tools/common/CommandFlags.h"
#include "tools/common/Run.h"

namespace llmc::tools {

CLI::App *addRunCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *run = app.add_subcommand("run", "write text with a model");
  run->footer("The text goes to stdout as it comes, a line with the speeds to stderr.\n"
              "Sampling that is not set follows the model's own recommendation.\n\n"
              "  run m.plan -p \"Once upon a time\" -n 64\n"
              "  run m.plan -p \"What is a compiler?\" --chat --temperature 0.7 --seed 1\n"
              "  run m.plan --prompt-ids 1,2,3 --temperature 0 --json");
  auto path = addPlan(*run, "the model, compiled");
  auto o = std::make_shared<RunOptions>();

  auto *text = run->add_option("-p,--prompt", o->prompt, "the text to go on with")
                   ->type_name("TEXT")
                   ->group("Prompt");
  run->add_option("--prompt-ids", o->promptIds, "token ids instead of a text: 1,2,3")
      ->delimiter(',')
      // An empty text would be read as the number 0.
      ->check([](const std::string &id) { return id.empty() ? "needs at least one id" : ""; })
      ->type_name("IDS")
      ->group("Prompt")
      ->excludes(text);
  run->add_flag("--chat", o->chat, "the text is a user's message to a chat model")->group("Prompt");
  run->add_option("--system", o->system, "with --chat: the system's message")
      ->type_name("TEXT")
      ->group("Prompt");

  run->add_option("-n,--max-tokens,--predict", o->newTokens,
                  "new tokens at most; -1: until the context is full")
      ->check(CLI::Range(int64_t(-1), INT64_MAX))
      ->type_name("N")
      ->capture_default_str()
      ->group("Output");
  run->add_option("--stop", o->stop, "text that ends the output; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->group("Output");
  run->add_flag("--ignore-eos", o->ignoreEos, "go on after an end token, which is output like any")
      ->group("Output");
  run->add_option("--logprobs", o->logprobs,
                  "with --json: log-probabilities of each token and of the N likeliest")
      ->check(CLI::Range(0, 20))
      ->type_name("N")
      ->group("Output");
  run->add_option("--logits-out", o->logitsOut,
                  "write the logits of every prompt position: f32 [tokens, vocabulary]")
      ->type_name("FILE.npy")
      ->group("Output");
  run->add_flag("--json", o->json,
                "print one JSON object: ids, text, finish_reason, timings; of a graph: outputs, "
                "timings")
      ->group("Output");
  run->add_option(
         "--input", o->inputs,
         "an input of a graph that is no decoder; a sequence: once for each of its tensors")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false)
      ->group("Graph");
  run->add_option("--output-dir", o->outputDir, "write the graph's outputs to DIR/NAME.npy")
      ->type_name("DIR")
      ->group("Graph");

  run->add_option("--temperature", o->temperature, "0: always the likeliest token")
      ->type_name("T")
      ->group("Sampling");
  run->add_option("--top-k", o->topK, "only the K likeliest tokens; 0: all")
      ->type_name("K")
      ->group("Sampling");
  run->add_option("--top-p", o->topP, "only the likeliest tokens that together reach P")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--min-p", o->minP, "only tokens at least P times as likely as the likeliest")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--repetition-penalty,--repeat-penalty", o->repetitionPenalty,
                  "above 1: tokens of prompt and output become less likely")
      ->type_name("R")
      ->group("Sampling");
  run->add_option("--presence-penalty", o->presencePenalty,
                  "taken from the logits of tokens of the output")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--frequency-penalty", o->frequencyPenalty,
                  "the same for each time they stand there")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--typical-p,--typical", o->typicalP,
                  "only tokens about as surprising as is expected, up to P together")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--dry-multiplier", o->dryMultiplier,
                  "above 0: against going on with what stood in the text before (DRY)")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--dry-base", o->dryBase, "how the DRY penalty grows with the repeat's length")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--dry-allowed-length", o->dryAllowedLength, "tokens that may repeat for free")
      ->type_name("N")
      ->group("Sampling");
  run->add_option("--xtc-probability", o->xtcProbability,
                  "how often the likeliest tokens but one are left out (XTC)")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--xtc-threshold", o->xtcThreshold, "from which probability a token is likely")
      ->type_name("P")
      ->group("Sampling");
  run->add_option("--mirostat", o->mirostat, "2: steer the surprise instead of filtering; 0: off")
      ->type_name("MODE")
      ->group("Sampling");
  run->add_option("--mirostat-tau,--mirostat-ent", o->mirostatTau, "the surprise wanted, in bits")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--mirostat-eta,--mirostat-lr", o->mirostatEta, "how fast it is steered")
      ->type_name("X")
      ->group("Sampling");
  run->add_option("--min-tokens", o->minTokens, "no end token before so many tokens")
      ->type_name("N")
      ->group("Sampling");
  run->add_option("--json-schema", o->jsonSchema,
                  "the answer is JSON that this schema accepts; @FILE reads it from a file")
      ->type_name("JSON")
      ->group("Output");
  run->add_option("--regex", o->regex, "the answer matches this regular expression as a whole")
      ->type_name("REGEX")
      ->group("Output");
  run->add_option("--grammar", o->grammar, "the answer follows this GBNF grammar; or @FILE")
      ->type_name("GBNF")
      ->group("Output");
  addSpeculationFlag(*run, o->speculativeConfig);
  run->add_option("-s,--seed", o->seed, "the same seed gives the same text")
      ->type_name("S")
      ->capture_default_str()
      ->group("Sampling");

  addDeviceFlag(*run, o->device);
  addMachineFlags(*run, o->threads);
  addStepFlags(*run, o->maxBatchedTokens, o->blockSize);
  run->add_option("--activations", o->activations,
                  "refuse a plan that was not compiled with these activations")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->type_name("TYPE")
      ->group("Machine");
  whenCalled(*run, path, std::move(resolve), status,
             [o](const std::string &plan) { return runMain(plan, *o, std::cout, std::cerr); });
  return run;
}

} // namespace llmc::tools

#include "tools/common/Commands.h"

#include "runtime/engine/SelfTest.h"
#include "tools/common/CommandFlags.h"
#include "tools/common/Config.h"
#include "tools/common/Eval.h"
#include "tools/common/Explain.h"
#include "tools/common/HelpFormatter.h"
#include "tools/common/Inspect.h"
#include "tools/common/Verify.h"

#include <algorithm>
#include <csignal>

namespace llmc::tools {

PlanResolver plansOnly() {
  return [](const std::string &path) -> llmrt::Result<std::string> { return path; };
}

CLI::App *addEvalCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *eval = app.add_subcommand("eval", "measure how well a plan predicts a text");
  eval->footer("Perplexity, and the Kullback-Leibler divergence (nats a token) from a reference: "
               "what\nquantization costs.\n\n"
               "  eval int4.plan --text book.txt --reference f32.plan");
  auto path = addPlan(*eval, "the model, compiled");
  auto o = std::make_shared<EvalOptions>();
  auto *text = eval->add_option("--text", o->text, "a text file")->type_name("FILE")->group("Text");
  eval->add_option("--tokens-file", o->tokensFile,
                   "token ids instead: a JSON list, or an .npy file of integers")
      ->type_name("FILE")
      ->group("Text")
      ->excludes(text);
  eval->add_option("--max-tokens", o->maxTokens, "of the text at most; default: all")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->group("Text");
  eval->add_option("--context", o->context,
                   "tokens a window, each evaluated on its own; default 512, or the model's "
                   "context if that is less")
      ->check(CLI::Range(int64_t(2), int64_t(1) << 30))
      ->type_name("N")
      ->group("Text");
  eval->add_option("--reference", o->reference, "compare with this plan's distributions")
      ->type_name("PLAN")
      ->group("Reference");
  eval->add_option("--chunk", o->chunk, "tokens a step: so many rows of logits are in memory")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->capture_default_str()
      ->group("Machine");
  addMachineFlags(*eval, o->threads);
  eval->add_flag("--json", o->json, "print one JSON object: perplexity, kl, same_top")
      ->group("Output");
  whenCalled(*eval, path, std::move(resolve), status,
             [o](const std::string &plan) { return evalMain(plan, *o, std::cout, std::cerr); });
  return eval;
}

CLI::App *addExplainCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *explain =
      app.add_subcommand("explain", "show, kernel by kernel, where the time of a step goes");
  explain->footer("Each kernel's memory traffic and operations, its time by the roofline, and the "
                  "time it takes.\n\n"
                  "  explain m.plan --context 1024 --tokens 256 -t 2");
  auto path = addPlan(*explain, "the model, compiled");
  auto o = std::make_shared<ExplainOptions>();
  explain
      ->add_option("--context", o->context,
                   "tokens in the cache when a token is decoded; default 512, or what fits")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 30))
      ->type_name("N")
      ->group("Steps");
  explain->add_option("--tokens", o->tokens, "explain a prompt of so many tokens, too")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 30))
      ->type_name("N")
      ->group("Steps");
  addMachineFlags(*explain, o->threads);
  explain
      ->add_flag("--measure", o->measure,
                 "measure this machine's limits for the roofline, instead of defaults")
      ->group("Machine");
  explain
      ->add_option("--gpu", o->gpus,
                   "explain the CUDA kernels for a GPU (a100, h200, rtx4090), which need not be "
                   "there: nothing runs")
      ->delimiter(',')
      ->check(CLI::IsMember({"a100", "h200", "rtx4090"}))
      ->group("Machine");
  explain->add_flag("--json", o->json, "print one JSON object")->group("Output");
  whenCalled(*explain, path, std::move(resolve), status, [o](const std::string &plan) {
    return (o->gpus.empty() ? explainMain : explainCudaMain)(plan, *o, std::cout, std::cerr);
  });
  return explain;
}

CLI::App *addInspectCommand(CLI::App &app, PlanResolver resolve, int &status) {
  CLI::App *inspect = app.add_subcommand("inspect", "show what a plan holds, needs and can reach");
  auto path = addPlan(*inspect, "the plan");
  auto o = std::make_shared<InspectOptions>();
  inspect->add_flag("--json", o->json, "print one JSON object")->group("Output");
  inspect->add_option("--context", o->context, "tokens in the cache when a token is decoded")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->capture_default_str()
      ->group("Prediction");
  inspect->add_option("--prompt", o->prompt, "tokens of the prompt")
      ->check(CLI::PositiveNumber)
      ->type_name("N")
      ->capture_default_str()
      ->group("Prediction");
  inspect->add_flag("--measure", o->measure, "measure this machine's limits, instead of defaults")
      ->group("Prediction");
  auto limit = [&](const char *flag, double &value, const char *what) {
    inspect->add_option(flag, value, what)
        ->check(CLI::PositiveNumber)
        ->type_name("X")
        ->group("Prediction");
  };
  limit("--bandwidth", o->bandwidth, "bytes a second that the memory gives");
  limit("--int-operations", o->intOperations, "int8 operations a second");
  limit("--float-operations", o->floatOperations, "f32 operations a second");
  addMachineFlags(*inspect, o->threads);
  whenCalled(*inspect, path, std::move(resolve), status,
             [o](const std::string &plan) { return inspectMain(plan, *o, std::cout, std::cerr); });
  return inspect;
}

/// Runs the test of a plan that was verified.
static int selfTestMain(const std::string &path, std::ostream &out, std::ostream &err) {
  auto plan = llmrt::Plan::open(path);
  llmrt::Status status = plan ? llmrt::checkSelfTest(*plan) : plan.status();
  if (!status) {
    err << "error: " << path << ": " << status.message() << '\n';
    return 1;
  }
  const llmrt::fbs::SelfTest &test = *(*plan)->head().self_test();
  out << "self-test: " << test.prompt()->size() << " prompt tokens, " << test.tokens()->size()
      << " new tokens: ok\n";
  return 0;
}

CLI::App *addVerifyCommand(CLI::App &app, int &status) {
  CLI::App *verify =
      app.add_subcommand("verify", "check every part of a plan, weights and code too");
  auto path = addPlan(*verify, "the plan");
  verify->footer(
      "A plan holds machine code: --self-test runs it, and is for plans that you trust.");
  auto run = std::make_shared<bool>(false);
  verify->add_flag(
      "--self-test", *run,
      "run the plan on this machine, too: it must get the tokens and the bits of every "
      "logit that the compiler recorded");
  whenCalled(*verify, path, plansOnly(), status, [run](const std::string &plan) {
    const int verified = verifyMain(plan, std::cout, std::cerr);
    return verified || !*run ? verified : selfTestMain(plan, std::cout, std::cerr);
  });
  return verify;
}

void readFlagsFromEnvironment(CLI::App &command) {
  command.add_option("--config", "a YAML file of flags and their values: max-num-seqs: 8")
      ->type_name("FILE.yaml");
  for (CLI::Option *option : command.get_options()) {
    if (option->get_lnames().empty() || option->get_lnames()[0] == "help")
      continue;
    option->envname(environmentName(option->get_lnames()[0]));
  }
}

int runTool(CLI::App &app, int argc, char **argv, int &status) {
  // A file size limit is an error of write(), with a message, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    auto formatter = std::make_shared<HelpFormatter>();
    app.formatter(formatter);
    for (CLI::App *command : app.get_subcommands([](CLI::App *) { return true; }))
      command->formatter(formatter);
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (llmrt::Status read = addConfiguredFlags(app, arguments); !read) {
      std::cerr << "error: " << read.message() << std::endl;
      return 2;
    }
    std::reverse(arguments.begin(), arguments.end()); // as CLI11 takes them
    app.parse(std::move(arguments));
    return status;
  } catch (const CLI::Success &help) { // --help, --version
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    std::string program = app.get_name();
    for (const CLI::App *called : app.get_subcommands())
      program += " " + called->get_name();
    std::cerr << "error: " << error.what() << "\nSee " << program << " --help." << std::endl;
    return 2;
  } catch (const std::bad_alloc &) {
    std::cerr << "error: out of memory" << std::endl;
  } catch (const std::exception &error) {
    std::cerr << "error: unexpected: " << error.what() << std::endl;
  }
  return 1;
}

} // namespace llmc::tools

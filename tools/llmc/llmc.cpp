// llmc: compiles language models to plans, and runs, measures and inspects them.
#include "tools/common/Commands.h"
#include "tools/common/Completion.h"
#include "tools/common/Serve.h"
#include "tools/llmc/CompileCommand.h"
#include "tools/llmc/LoadCompiler.h"

using namespace llmc::tools;

/// The compile flags of a command that takes models as well as plans.
struct ModelFlags {
  llmc::CompileOptions options;
  CLI::App *command = nullptr;

  PlanResolver resolver() {
    return [this](const std::string &model) {
      if (CLI::Option *flag = command->get_option("--activations"); flag->count())
        options.activations = flag->as<std::string>();
      return planOf(model, options);
    };
  }
  /// Adds the flags to \p added, which resolves with resolver().
  CLI::App *on(CLI::App *added) {
    command = added;
    addCompileFlags(*added, options);
    return added;
  }
};

int main(int argc, char **argv) {
  CLI::App app("Compiles language models ahead of time and runs them.", "llmc");
  app.set_version_flag("--version", LLMC_VERSION);
  app.require_subcommand(1);
  int status = 0;
  ModelFlags run, serve, bench, inspect;
  for (CLI::App *command :
       {addCompileCommand(app, status), run.on(addRunCommand(app, run.resolver(), status)),
        serve.on(addServeCommand(app, serve.resolver(), status)),
        bench.on(addBenchCommand(app, bench.resolver(), status)),
        addEvalCommand(app, plansOnly(), status), addExplainCommand(app, plansOnly(), status),
        inspect.on(addInspectCommand(app, inspect.resolver(), status)),
        addVerifyCommand(app, status)})
    readFlagsFromEnvironment(*command);
  addCompletionCommand(app, status);
  return runTool(app, argc, argv, status);
}

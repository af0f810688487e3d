// llmc: compiles language models to plans, and runs, measures and inspects them.
#include "tools/common/Commands.h"
#include "tools/llmc/CompileCommand.h"

int main(int argc, char **argv) {
  using namespace llmc::tools;
  CLI::App app("Compiles language models ahead of time and runs them.", "llmc");
  app.set_version_flag("--version", LLMC_VERSION);
  app.require_subcommand(1);
  int status = 0;
  for (CLI::App *command :
       {addCompileCommand(app, status), addRunCommand(app, plansOnly(), status),
        addBenchCommand(app, plansOnly(), status), addInspectCommand(app, plansOnly(), status),
        addVerifyCommand(app, status)})
    readFlagsFromEnvironment(*command);
  return runTool(app, argc, argv, status);
}

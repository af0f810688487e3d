// llmrt: runs, measures and inspects plans on hosts without the compiler.
#include "tools/common/Commands.h"
#include "tools/common/Completion.h"
#include "tools/common/Serve.h"

#include <llmrt/llmrt.h>

int main(int argc, char **argv) {
  using namespace llmc::tools;
  CLI::App app("Runs language models that llmc compiled.", "llmrt");
  app.set_version_flag("--version", std::to_string(LLMRT_VERSION_MAJOR) + "." +
                                        std::to_string(LLMRT_VERSION_MINOR) + "." +
                                        std::to_string(LLMRT_VERSION_PATCH));
  app.require_subcommand(1);
  int status = 0;
  for (CLI::App *command :
       {addRunCommand(app, plansOnly(), status), addServeCommand(app, plansOnly(), status),
        addBenchCommand(app, plansOnly(), status), addEvalCommand(app, plansOnly(), status),
        addExplainCommand(app, plansOnly(), status), addInspectCommand(app, plansOnly(), status),
        addVerifyCommand(app, status)})
    readFlagsFromEnvironment(*command);
  addCompletionCommand(app, status);
  return runTool(app, argc, argv, status);
}

// The scripts are run by the shell itself, where it is bash.
#include "tools/common/Completion.h"
#include "tools/common/Commands.h"

#include <array>
#include <cstdio>
#include <gtest/gtest.h>

using namespace llmc::tools;

namespace {

std::string script(const char *shell) {
  CLI::App app("", "llmrt");
  int status = 0;
  addRunCommand(app, plansOnly(), status);
  addVerifyCommand(app, status);
  return completionScript(app, shell);
}

/// What bash would offer after \p words, the last of which is begun.
std::string offered(std::vector<std::string> words) {
  std::string line = "COMP_WORDS=(";
  for (const std::string &word : words)
    line += "'" + word + "' ";
  std::string program = script("bash") + line +
                        ")\nCOMP_CWORD=" + std::to_string(words.size() - 1) +
                        "\n_llmrt_complete\necho \"${COMPREPLY[*]}\"\n";
  std::string path = std::string(std::tmpnam(nullptr)) + ".sh";
  std::FILE *file = std::fopen(path.c_str(), "w");
  std::fwrite(program.data(), 1, program.size(), file);
  std::fclose(file);
  std::FILE *pipe = ::popen(("bash " + path + " 2>&1").c_str(), "r");
  std::array<char, 4096> out{};
  size_t n = std::fread(out.data(), 1, out.size(), pipe);
  ::pclose(pipe);
  std::remove(path.c_str());
  return std::string(out.data(), n ? n - 1 : 0);
}

TEST(Completion, Bash) {
  EXPECT_EQ(offered({"llmrt", "r"}), "run");
  EXPECT_EQ(offered({"llmrt", "run", "--ignore"}), "--ignore-eos");
  EXPECT_EQ(offered({"llmrt", "run", "--activations", ""}), "f32 int8");
  EXPECT_EQ(offered({"llmrt", "verify", "--ignore"}), "");
}

TEST(Completion, FishDescribesEveryFlag) {
  std::string text = script("fish");
  EXPECT_NE(text.find("-n '__fish_seen_subcommand_from run' -l temperature -r -d "),
            std::string::npos);
  EXPECT_NE(text.find("a user\\'s message"), std::string::npos);
}

} // namespace

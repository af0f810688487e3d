#include "tools/common/Completion.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

namespace llmc::tools {
namespace {

std::vector<const CLI::App *> subcommands(const CLI::App &app) {
  return app.get_subcommands([](const CLI::App *) { return true; });
}

/// "--prompt -p ..." of one command.
std::string flagsOf(const CLI::App &command) {
  std::string flags;
  for (const CLI::Option *option : command.get_options()) {
    for (const std::string &name : option->get_lnames())
      flags += " --" + name;
    for (const std::string &name : option->get_snames())
      flags += " -" + name;
  }
  return flags.empty() ? flags : flags.substr(1);
}

/// The words of a flag that takes one of a set: CLI11 spells its check "{f32,int8}".
std::string choicesOf(const CLI::Option &option) {
  std::string type = option.get_type_name();
  size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos || close < open)
    return "";
  std::string words = type.substr(open + 1, close - open - 1);
  std::replace(words.begin(), words.end(), ',', ' ');
  return words;
}

std::string bashScript(const CLI::App &app) {
  const std::string &name = app.get_name();
  std::string function = "_" + name + "_complete", names, cases, values;
  for (const CLI::App *command : subcommands(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    cases += "    " + command->get_name() + ") words='" + flagsOf(*command) + "' ;;\n";
    for (const CLI::Option *option : command->get_options())
      if (std::string choices = choicesOf(*option); !choices.empty())
        for (const std::string &flag : option->get_lnames())
          values += "    " + command->get_name() + ":--" + flag + ") COMPREPLY=($(compgen -W '" +
                    choices + "' -- \"$current\")); return ;;\n";
  }
  return function +
         "() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" words=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         names + " --help --version' -- \"$current\"))\n    return\n  fi\n" +
         "  case \"${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}\" in\n" + values +
         "    *) ;;\n  esac\n  case \"${COMP_WORDS[1]}\" in\n" + cases +
         "  esac\n"
         "  case \"$current\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
         "  esac\n}\n"
         "complete -o filenames -F " +
         function + " " + name + "\n";
}

/// Inside fish's single quotes only these two need a backslash.
std::string fishQuoted(const std::string &text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'' || c == '\\')
      quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fishScript(const CLI::App &app) {
  std::string script, start = "complete -c " + app.get_name();
  for (const CLI::App *command : subcommands(app)) {
    script += start + " -n __fish_use_subcommand -f -a " + command->get_name() + " -d " +
              fishQuoted(command->get_description()) + "\n";
    for (const CLI::Option *option : command->get_options()) {
      std::string line;
      for (const std::string &name : option->get_lnames())
        line += " -l " + name;
      for (const std::string &name : option->get_snames())
        line += " -s " + name;
      if (line.empty())
        continue;
      if (std::string choices = choicesOf(*option); !choices.empty())
        line += " -x -a " + fishQuoted(choices);
      else if (option->get_type_size() > 0)
        line += " -r";
      script += start + " -n '__fish_seen_subcommand_from " + command->get_name() + "'" + line +
                " -d " + fishQuoted(option->get_description()) + "\n";
    }
  }
  return script;
}

} // namespace

std::string completionScript(const CLI::App &app, const std::string &shell) {
  if (shell == "fish")
    return fishScript(app);
  // zsh reads bash's completions through its own emulation.
  return (shell == "zsh" ? "autoload -Uz bashcompinit && bashcompinit\n" : "") + bashScript(app);
}

CLI::App *addCompletionCommand(CLI::App &app, int &status) {
  CLI::App *completion = app.add_subcommand("completion", "print a script for your shell");
  completion->footer("  source <(" + app.get_name() + " completion bash)\n  " + app.get_name() +
                     " completion fish | source");
  auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  completion->callback([&app, &status, shell] {
    std::cout << completionScript(app, *shell) << std::flush;
    status = std::cout.good() ? 0 : 1;
  });
  return completion;
}

} // namespace llmc::tools

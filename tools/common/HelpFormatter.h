//===- HelpFormatter.h - help texts for people ------------------------------===//
#ifndef LLMC_TOOLS_COMMON_HELPFORMATTER_H
#define LLMC_TOOLS_COMMON_HELPFORMATTER_H

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

namespace llmc::tools {

/// CLI11's layout without its notes on checks and environment variables behind every flag: a flag,
/// what it takes, what it does, its default. One sentence says how the environment sets flags.
class HelpFormatter : public CLI::Formatter {
public:
  HelpFormatter() {
    column_width(34);
    label("Positionals", "Arguments");
  }

  std::string make_option_opts(const CLI::Option *option) const override {
    std::string type = option->get_type_name();
    type.resize(std::min(type.find(':'), type.size())); // the names of checks follow
    std::string text = type.empty() || option->get_type_size() == 0 ? "" : " " + type;
    if (!option->get_default_str().empty())
      text += " (" + option->get_default_str() + ")";
    return text;
  }

  std::string make_usage(const CLI::App *app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, name);
    size_t blank = usage.find_first_not_of('\n');
    return blank == std::string::npos ? usage : usage.substr(blank);
  }

  /// One empty line between parts, not two.
  std::string make_help(const CLI::App *app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help = CLI::Formatter::make_help(app, name, mode);
    for (size_t at; (at = help.find("\n\n\n")) != std::string::npos;)
      help.erase(at, 1);
    return help;
  }

  std::string make_footer(const CLI::App *app) const override {
    std::string footer = app->get_footer();
    if (footer.empty())
      return "";
    return "\n" + footer +
           "\n\nEvery flag can be set by LLMC_ARG_<FLAG>, as LLMC_ARG_THREADS=2, and by the file of "
           "--config, as threads: 2.\nThe command line wins over the environment, the environment "
           "over the file.\n";
  }
};

} // namespace llmc::tools

#endif // LLMC_TOOLS_COMMON_HELPFORMATTER_H

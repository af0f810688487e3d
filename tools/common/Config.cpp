#include "tools/common/Config.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <yaml-cpp/yaml.h>

namespace llmc::tools {

using llmrt::invalidArgument;
using llmrt::Status;

namespace {

constexpr size_t largestFile = 1 << 20;

/// Levenshtein's distance.
size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string dashed(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

/// The flag of \p command that is called \p name, or null.
CLI::Option *findFlag(CLI::App &command, const std::string &name) {
  for (CLI::Option *option : command.get_options())
    for (const std::string &own : option->get_lnames())
      if (own == name)
        return option;
  return nullptr;
}

std::string similarFlags(const CLI::App &command, const std::string &name) {
  std::vector<std::pair<size_t, std::string>> near;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &own : option->get_lnames()) {
      size_t distance = editDistance(name, own);
      bool part = name.size() > 2 && own.find(name) != std::string::npos;
      if (own != "help" && own != "config" && (part || distance <= 1 + own.size() / 4))
        near.emplace_back(part ? 0 : distance, own);
    }
  std::sort(near.begin(), near.end());
  near.resize(std::min<size_t>(near.size(), 3));
  std::string text;
  for (const auto &[distance, own] : near)
    text += (text.empty() ? "; did you mean " : " or ") + own;
  return text.empty() ? "; see --help for the flags" : text + "?";
}

/// A mapping as JSON, for flags that take an object. Scalars stay texts unless they are JSON.
nlohmann::ordered_json toJson(const YAML::Node &node, int depth) {
  if (depth > 32)
    return nullptr;
  if (node.IsSequence()) {
    auto list = nlohmann::ordered_json::array();
    for (const YAML::Node &element : node)
      list.push_back(toJson(element, depth + 1));
    return list;
  }
  if (node.IsMap()) {
    auto object = nlohmann::ordered_json::object();
    for (const auto &member : node)
      object[member.first.as<std::string>()] = toJson(member.second, depth + 1);
    return object;
  }
  if (node.IsNull())
    return nullptr;
  auto json = nlohmann::ordered_json::parse(node.Scalar(), nullptr, false);
  bool quoted = node.Tag() == "!"; // how yaml-cpp marks them
  return quoted || json.is_discarded() || json.is_structured()
             ? nlohmann::ordered_json(node.Scalar())
             : json;
}

/// Whether the command line has the flag, whose values would otherwise be added to it.
bool isGiven(const CLI::Option &option, const std::vector<std::string> &arguments) {
  for (const std::string &argument : arguments) {
    for (const std::string &name : option.get_lnames())
      if (argument == "--" + name || argument.starts_with("--" + name + "="))
        return true;
    for (const std::string &name : option.get_snames())
      if (argument.starts_with("-" + name))
        return true;
  }
  return false;
}

/// Adds the arguments that one key stands for.
Status addFlag(CLI::Option &option, const std::string &flag, const YAML::Node &value,
               const std::vector<std::string> &given, std::vector<std::string> &added) {
  std::string name = "--" + flag;
  if (value.IsNull() || std::getenv(environmentName(option.get_lnames()[0]).c_str()))
    return Status::ok();
  bool takesValue = option.get_items_expected_max() > 0;
  bool several = option.get_items_expected_max() > 1 && takesValue;
  if (!takesValue) {
    bool on = false;
    if (!value.IsScalar() || !YAML::convert<bool>::decode(value, on))
      return invalidArgument(flag + " must be true or false");
    if (isGiven(option, given))
      return Status::ok();
    added.push_back(name + "=" + (on ? "true" : "false"));
    return Status::ok();
  }
  if (value.IsMap()) {
    added.push_back(name + "=" + toJson(value, 0).dump());
  } else if (value.IsScalar()) {
    if (!several || !isGiven(option, given))
      added.push_back(name + "=" + value.Scalar());
  } else {
    if (!several)
      return invalidArgument(flag + " takes one value, not a list");
    for (const YAML::Node &element : value) {
      if (!element.IsScalar())
        return invalidArgument(flag + " must be a list of plain values");
      if (!isGiven(option, given))
        added.push_back(name + "=" + element.Scalar());
    }
  }
  if (!several)
    option.multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return Status::ok();
}

Status readFile(const std::string &path, YAML::Node &root) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    return invalidArgument(path + ": the configuration can't be read");
  if (text.str().size() > largestFile)
    return invalidArgument(path + ": a configuration of more than 1 MiB is none");
  try {
    root = YAML::Load(text.str());
  } catch (const YAML::Exception &error) {
    return invalidArgument(path + ": line " + std::to_string(error.mark.line + 1) + ": " +
                           error.msg);
  }
  if (!root.IsMap() && !root.IsNull())
    return invalidArgument(path + ": must be a mapping of flags and values");
  return Status::ok();
}

/// The file that the command line or the environment names; empty: none.
std::string configPath(const std::vector<std::string> &arguments) {
  constexpr std::string_view flag = "--config";
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == flag && i + 1 < arguments.size())
      return arguments[i + 1];
    if (arguments[i].starts_with(std::string(flag) + "="))
      return arguments[i].substr(flag.size() + 1);
  }
  const char *named = std::getenv("LLMC_ARG_CONFIG");
  return named ? named : "";
}

} // namespace

std::string environmentName(const std::string &flag) {
  std::string name = "LLMC_ARG_" + flag;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

Status addConfiguredFlags(CLI::App &app, std::vector<std::string> &arguments) {
  if (arguments.empty())
    return Status::ok();
  CLI::App *command = nullptr;
  for (CLI::App *candidate : app.get_subcommands([](CLI::App *) { return true; }))
    if (candidate->get_name() == arguments[0])
      command = candidate;
  std::string path = configPath(arguments);
  if (!command || path.empty() || !findFlag(*command, "config"))
    return Status::ok();
  YAML::Node root;
  LLMRT_RETURN_IF_ERROR(readFile(path, root));
  std::vector<std::string> added;
  for (const auto &member : root) {
    if (!member.first.IsScalar())
      return invalidArgument(path + ": a key is no plain text");
    std::string name = dashed(member.first.Scalar());
    CLI::Option *option = findFlag(*command, name);
    if (!option || name == "help" || name == "config")
      return invalidArgument(path + ": line " + std::to_string(member.first.Mark().line + 1) +
                             ": '" + member.first.Scalar() + "' is no flag of " +
                             command->get_name() + similarFlags(*command, name));
    if (Status status = addFlag(*option, name, member.second, arguments, added); !status)
      return status.withContext(path + ": line " + std::to_string(member.first.Mark().line + 1));
  }
  // Before the user's own: of a flag that is there twice the last one counts.
  arguments.insert(arguments.begin() + 1, added.begin(), added.end());
  return Status::ok();
}

} // namespace llmc::tools

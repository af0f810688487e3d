#include "tools/common/InspectGraph.h"

#include "runtime/device/cpu/GraphExecutor.h"

#include <nlohmann/json.hpp>

namespace llmc::tools {

using namespace llmrt;

namespace {

std::string typeText(const fbs::ValueType &type) {
  std::string text = graphTypeName(type.type());
  if (type.kind() == fbs::ValueKind::Sequence)
    return "sequence of " + text;
  if (type.has_rank()) {
    text += "[";
    for (uint32_t i = 0; i < type.dims()->size(); ++i) {
      const fbs::Dimension &d = *type.dims()->Get(i);
      text += (i ? ", " : "") + (d.size() >= 0        ? std::to_string(d.size())
                                 : d.symbol()->size() ? d.symbol()->str()
                                                      : std::string("?"));
    }
    text += "]";
  }
  return (type.kind() == fbs::ValueKind::Optional
              ? std::string(type.of_sequence() ? "optional sequence of " : "optional ")
              : std::string()) +
         text;
}

nlohmann::ordered_json typeJson(const fbs::ValueType &type) {
  nlohmann::ordered_json json{{"name", type.name()->str()},
                              {"kind", type.kind() == fbs::ValueKind::Tensor     ? "tensor"
                                       : type.kind() == fbs::ValueKind::Sequence ? "sequence"
                                                                                 : "optional"},
                              {"type", graphTypeName(type.type())},
                              {"shape", nullptr}};
  if (type.has_rank()) {
    json["shape"] = nlohmann::ordered_json::array();
    for (const fbs::Dimension *d : *type.dims())
      if (d->size() >= 0)
        json["shape"].push_back(d->size());
      else if (d->symbol()->size())
        json["shape"].push_back(d->symbol()->str());
      else
        json["shape"].push_back(nullptr);
  }
  return json;
}

} // namespace

void printGraph(const Plan &plan, bool json, std::ostream &out) {
  const fbs::Plan &head = plan.head();
  uint64_t weightBytes = 0;
  for (const fbs::Weight *weight : *head.weights())
    weightBytes += weight->size();
  if (json) {
    nlohmann::ordered_json j;
    j["model"] = {{"name", head.model()->name()->str()},
                  {"architecture", head.model()->architecture()->str()},
                  {"parameters", head.model()->parameters()}};
    j["entry"] = "main";
    j["inputs"] = nlohmann::ordered_json::array();
    j["outputs"] = nlohmann::ordered_json::array();
    for (const fbs::ValueType *type : *head.main()->inputs())
      j["inputs"].push_back(typeJson(*type));
    for (const fbs::ValueType *type : *head.main()->outputs())
      j["outputs"].push_back(typeJson(*type));
    j["nodes"] = head.main()->nodes()->size();
    j["weights"] = {{"count", head.weights()->size()}, {"bytes", weightBytes}};
    j["code"] = nlohmann::ordered_json::array();
    for (const fbs::CodeModule *module : *head.modules())
      j["code"].push_back(
          {{"level", module->level()->str()}, {"bytes", plan.segment(module->segment()).size()}});
    out << j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    return;
  }
  out << head.model()->name()->string_view() << ": a graph of " << head.main()->nodes()->size()
      << " nodes, " << head.weights()->size() << " constants of " << weightBytes << " bytes\n";
  for (const fbs::ValueType *type : *head.main()->inputs())
    out << "  input   " << type->name()->string_view() << "  " << typeText(*type) << '\n';
  for (const fbs::ValueType *type : *head.main()->outputs())
    out << "  output  " << type->name()->string_view() << "  " << typeText(*type) << '\n';
  for (const fbs::CodeModule *module : *head.modules())
    out << "  code    " << module->level()->string_view() << "  "
        << plan.segment(module->segment()).size() << " bytes\n";
}

} // namespace llmc::tools

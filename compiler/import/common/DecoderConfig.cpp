#include "compiler/import/common/DecoderConfig.h"

#include <cmath>

using namespace llmrt;

namespace llmc {
namespace {

Status fail(const std::string &why) { return invalidFile("the configuration " + why); }

Status checkSizes(const DecoderConfig &c) {
  const struct {
    const char *what;
    uint64_t value, limit;
  } numbers[] = {{"layers", c.layers.size(), 10000},
                 {"the hidden size", c.hidden, uint64_t(1) << 20},
                 {"the intermediate size", c.mlp.intermediate, uint64_t(1) << 24},
                 {"attention heads", c.attention.heads, 65536},
                 {"key-value heads", c.attention.kvHeads, 65536},
                 {"the head size", c.attention.headSize, 65536},
                 {"the vocabulary size", c.vocabulary, uint64_t(1) << 31},
                 {"the context length", c.maxContext, uint64_t(1) << 31}};
  for (const auto &number : numbers)
    if (number.value == 0 || number.value > number.limit)
      return fail(std::string("has ") + std::to_string(number.value) + " for " + number.what +
                  "; 1 to " + std::to_string(number.limit) + " is possible");
  return Status::ok();
}

Status checkMixture(const MixtureForm &m) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  if (m.experts > 65536 || m.chosen == 0 || m.chosen > m.experts)
    return fail("chooses " + number(m.chosen) + " of " + number(m.experts) + " experts");
  if (m.intermediate == 0 || m.intermediate > uint64_t(1) << 24 ||
      m.sharedIntermediate > uint64_t(1) << 24)
    return fail("has experts of " + number(m.intermediate) + " and a shared one of " +
                number(m.sharedIntermediate) + " inner values");
  if (m.groups && (m.experts % m.groups != 0 || m.topGroups == 0 || m.topGroups > m.groups ||
                   m.chosen > m.topGroups * (m.experts / m.groups)))
    return fail("chooses " + number(m.chosen) + " experts from " + number(m.topGroups) + " of " +
                number(m.groups) + " groups of " + number(m.experts) + " experts");
  if (!std::isfinite(m.scale) || !(m.alpha >= 0) || !(m.limit >= 0) || !std::isfinite(m.alpha) ||
      !std::isfinite(m.limit))
    return fail("has a factor or limit of its experts that is no number");
  return Status::ok();
}

Status checkLatent(const LatentForm &l) {
  for (uint64_t size : {l.rank, l.nopeSize, l.ropeSize, l.valueSize})
    if (size == 0 || size > 65536)
      return fail("has a latent attention with a size of " + std::to_string(size));
  if (l.ropeSize % 2 != 0 || l.queryRank > 65536)
    return fail("has a latent attention of " + std::to_string(l.ropeSize) +
                " rotated values and a query rank of " + std::to_string(l.queryRank));
  return Status::ok();
}

/// A multiplier that is a number, and not 0.
bool isUsable(double factor) { return std::isfinite(factor) && factor != 0; }

} // namespace

Status DecoderConfig::check() const {
  LLMRT_RETURN_IF_ERROR(checkSizes(*this));
  if (mixture.experts)
    LLMRT_RETURN_IF_ERROR(checkMixture(mixture));
  if (attention.latent.rank)
    LLMRT_RETURN_IF_ERROR(checkLatent(attention.latent));
  if (attention.heads % attention.kvHeads != 0)
    return fail("has " + std::to_string(attention.heads) + " attention heads for " +
                std::to_string(attention.kvHeads) + " key-value heads; a multiple is needed");
  if (!(norm.eps >= 0) || !std::isfinite(norm.eps))
    return fail("has no usable epsilon for its norms");
  if (!isUsable(embeddingScale) || !isUsable(residualScale) || !isUsable(logitScale))
    return fail("has a multiplier that is 0 or no number");
  if (!(attention.softcap >= 0) || !std::isfinite(attention.softcap) || !(logitSoftcap >= 0) ||
      !std::isfinite(logitSoftcap))
    return fail("has a soft cap that isn't positive");
  if (!(attention.scale >= 0) || !std::isfinite(attention.scale))
    return fail("has a scale of the attention scores that isn't positive");
  if (learnedPositions > uint64_t(1) << 31)
    return fail("has " + std::to_string(learnedPositions) + " learned positions");
  if (learnedPositions && learnedPositions < maxContext)
    return fail("has a context of " + std::to_string(maxContext) + " tokens for " +
                std::to_string(learnedPositions) + " learned positions");
  for (const RopeParameters &rope : ropes) {
    if (rope.rotarySize > attention.headSize)
      return fail("rotates " + std::to_string(rope.rotarySize) + " values of heads of " +
                  std::to_string(attention.headSize));
    if (rope.hasLongContexts && rope.originalContext != ropes.front().originalContext)
      return unsupported("layers whose longrope factors change at different lengths are not "
                         "supported");
    if (attention.permutedHeads && rope.rotarySize != attention.headSize)
      return unsupported("a partial rotation with interleaved rows is not supported");
  }
  for (const DecoderLayer &layer : layers)
    if (layer.rope >= static_cast<int>(ropes.size()) || !(layer.attentionScale >= 0) ||
        !std::isfinite(layer.attentionScale))
      return internalError("a layer's rotation or scale is out of range");
  if (attention.qkv != QkvForm::Separate && attention.permutedHeads)
    return internalError("permuted heads in a joined matrix");
  return Status::ok();
}

Result<MlpActivation> activationNamed(const std::string &name) {
  static constexpr std::pair<const char *, MlpActivation> names[] = {
      {"silu", MlpActivation::Silu},          {"swish", MlpActivation::Silu},
      {"gelu", MlpActivation::Gelu},          {"gelu_new", MlpActivation::GeluTanh},
      {"gelu_fast", MlpActivation::GeluTanh}, {"gelu_pytorch_tanh", MlpActivation::GeluTanh},
      {"relu", MlpActivation::Relu}};
  std::string known;
  for (const auto &[spelling, activation] : names) {
    if (name == spelling)
      return activation;
    known += (known.empty() ? "" : ", ") + std::string(spelling);
  }
  return unsupported("activation '" + name + "' is not supported; supported: " + known);
}

std::vector<float> alibiSlopes(uint64_t heads) {
  uint64_t whole = 1;
  while (whole * 2 <= heads)
    whole *= 2;
  const double base = std::pow(2.0, -8.0 / static_cast<double>(whole));
  const double between = std::pow(2.0, -4.0 / static_cast<double>(whole));
  std::vector<float> slopes;
  for (uint64_t i = 0; i != heads; ++i)
    slopes.push_back(static_cast<float>(
        i < whole ? std::pow(base, static_cast<double>(i + 1))
                  : std::pow(between, static_cast<double>(2 * (i - whole) + 1))));
  return slopes;
}

} // namespace llmc

#include "compiler/import/common/RopeConfig.h"

#include <algorithm>
#include <cmath>
#include <numbers>

using namespace llmrt;

namespace llmc {
namespace {

Status fail(const std::string &why) { return invalidFile("rotary embedding: " + why); }

/// theta^(-2i / size) for each pair.
std::vector<float> plainFrequencies(double theta, uint64_t size) {
  std::vector<float> result(size / 2);
  for (uint64_t i = 0; i != result.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(size);
    result[i] = 1.0f / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
  }
  return result;
}

/// Llama 3.1: long waves are stretched by the factor, short ones kept, those between interpolated.
void scaleLlama3(const RopeParameters &p, std::vector<float> &frequencies) {
  const double original = static_cast<double>(p.originalContext);
  const double longest = original / p.lowFrequencyFactor;
  const double shortest = original / p.highFrequencyFactor;
  for (float &f : frequencies) {
    const double wave = 2 * std::numbers::pi / f;
    if (wave > longest) {
      f = static_cast<float>(f / p.factor);
    } else if (wave >= shortest) {
      const double smooth =
          (original / wave - p.lowFrequencyFactor) / (p.highFrequencyFactor - p.lowFrequencyFactor);
      f = static_cast<float>((1 - smooth) * f / p.factor + smooth * f);
    }
  }
}

/// YaRN (Peng et al., 2023): interpolates the dimensions that turn less than betaSlow times within
/// the original context, keeps those that turn more than betaFast times, and blends between.
void scaleYarn(const RopeParameters &p, std::vector<float> &frequencies) {
  const double size = static_cast<double>(p.rotarySize);
  const auto dimensionOf = [&](double turns) {
    return size *
           std::log(static_cast<double>(p.originalContext) / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(p.theta));
  };
  double low = dimensionOf(p.betaFast), high = dimensionOf(p.betaSlow);
  if (p.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high)
    high += 0.001; // no division by zero
  for (size_t i = 0; i != frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] =
        static_cast<float>(frequencies[i] / p.factor * ramp + frequencies[i] * (1 - ramp));
  }
}

double yarnScale(const RopeParameters &p) {
  if (p.attentionFactor)
    return *p.attentionFactor;
  const auto mscale = [&](double weight) {
    return p.factor <= 1 ? 1.0 : 0.1 * weight * std::log(p.factor) + 1.0;
  };
  if (p.mscale && p.mscaleAllDim && *p.mscale != 0 && *p.mscaleAllDim != 0)
    return mscale(*p.mscale) / mscale(*p.mscaleAllDim);
  return mscale(1);
}

/// LongRoPE (Ding et al., 2024), as Phi-3 has it.
Status scaleLong(const RopeParameters &p, RopeContext context, RopeTable &table) {
  const std::vector<float> &factors = context == RopeContext::Long ? p.longFactors : p.shortFactors;
  if (factors.size() != table.frequencies.size())
    return fail("scaling 'longrope' has " + std::to_string(factors.size()) + " factors; " +
                std::to_string(table.frequencies.size()) + " are needed");
  if (p.originalContext < 2)
    return fail("scaling 'longrope' needs original_max_position_embeddings");
  for (size_t i = 0; i != factors.size(); ++i) {
    if (!(factors[i] > 0) || !std::isfinite(factors[i]))
      return fail("longrope factor " + std::to_string(i) + " isn't positive");
    const double exponent = static_cast<float>(2 * i) / static_cast<float>(p.rotarySize);
    table.frequencies[i] = 1.0f / (factors[i] * static_cast<float>(std::pow(p.theta, exponent)));
  }
  if (p.attentionFactor)
    table.scale = *p.attentionFactor;
  else if (p.factor > 1)
    table.scale =
        std::sqrt(1 + std::log(p.factor) / std::log(static_cast<double>(p.originalContext)));
  return Status::ok();
}

} // namespace

void limitLongRope(RopeParameters &p, uint64_t wanted, uint64_t maxContext,
                   std::vector<std::string> &notes) {
  if (p.type != "longrope" || p.originalContext == 0 ||
      (wanted ? wanted : maxContext) <= p.originalContext)
    return;
  p.hasLongContexts = true;
  const std::string original = std::to_string(p.originalContext);
  notes.push_back("longrope: sequences of up to " + original +
                  " tokens take the short factors, longer ones the long factors; one that grows "
                  "over that has its tokens computed again once (--max-model-len " +
                  original + " avoids it)");
}

Result<RopeTable> resolveRope(const RopeParameters &p, RopeContext context) {
  if (!(p.theta > 0) || !std::isfinite(p.theta))
    return fail("the base is " + std::to_string(p.theta) + "; a positive number is needed");
  if (p.rotarySize == 0 || p.rotarySize % 2 != 0 || p.rotarySize > 65536)
    return fail(std::to_string(p.rotarySize) +
                " values of a head are rotated; an even number is needed");
  if (!(p.factor > 0) || !std::isfinite(p.factor))
    return fail("the scaling factor is " + std::to_string(p.factor) +
                "; a positive number is needed");
  RopeTable table{plainFrequencies(p.theta, p.rotarySize), 1.0};
  if ((p.type == "llama3" || p.type == "yarn") && p.originalContext == 0)
    return fail("scaling '" + p.type + "' needs original_max_position_embeddings");
  if (p.type == "linear") {
    for (float &f : table.frequencies)
      f = static_cast<float>(f / p.factor);
  } else if (p.type == "llama3") {
    if (!(p.lowFrequencyFactor > 0) || !(p.highFrequencyFactor > p.lowFrequencyFactor))
      return fail("scaling 'llama3' needs 0 < low_freq_factor < high_freq_factor");
    scaleLlama3(p, table.frequencies);
  } else if (p.type == "yarn") {
    if (!(p.betaFast > 0) || !(p.betaSlow > 0) || p.theta == 1)
      return fail("scaling 'yarn' needs positive beta_fast and beta_slow");
    scaleYarn(p, table.frequencies);
    table.scale = yarnScale(p);
  } else if (p.type == "longrope") {
    LLMRT_RETURN_IF_ERROR(scaleLong(p, context, table));
  } else if (p.type != "default" && p.type != "dynamic") {
    return unsupported(
        "rotary embedding: scaling '" + p.type +
        "' is not supported; default, linear, dynamic, llama3, yarn and longrope are");
  }
  if (!p.divisors.empty()) {
    if (p.divisors.size() != table.frequencies.size())
      return fail(std::to_string(p.divisors.size()) + " frequency divisors; " +
                  std::to_string(table.frequencies.size()) + " are needed");
    for (size_t i = 0; i != p.divisors.size(); ++i) {
      if (!(p.divisors[i] > 0))
        return fail("frequency divisor " + std::to_string(i) + " isn't positive");
      table.frequencies[i] /= p.divisors[i];
    }
  }
  return table;
}

} // namespace llmc

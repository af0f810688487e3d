#include "runtime/engine/DrawOnDevice.h"

#include "runtime/decode/Math.h"
#include "runtime/decode/Noise.h"

#include <algorithm>

namespace llmrt {
namespace {

/// Of one request; as many bans again.
constexpr size_t maxBiases = 1024;

bool isBiasedTwice(const std::vector<LogitBias> &biases) {
  std::vector<int32_t> ids;
  for (const LogitBias &b : biases)
    ids.push_back(b.id);
  std::sort(ids.begin(), ids.end());
  return std::adjacent_find(ids.begin(), ids.end()) != ids.end();
}

} // namespace

bool canDrawOnDevice(const RequestOptions &options) {
  const SamplingParams &p = options.sampling;
  return !p.needsHistory() && !p.usesDry() && p.badWords.empty() && p.typicalP >= 1 &&
         p.xtcProbability == 0 && p.mirostat == 0 && p.logprobs < 0 && !options.grammar &&
         options.beams.width == 0 && p.logitBias.size() <= maxBiases &&
         options.endIds.size() + options.stopIds.size() <= maxBiases && !isBiasedTwice(p.logitBias);
}

bool drawOnDevice(RowDraws &draws, int64_t index, const SamplingParams &params, uint64_t position,
                  std::span<const int32_t> banned, std::span<const int32_t> alsoBanned) {
  std::vector<LogitChange> &changes = draws.changes();
  if (changes.size() + params.logitBias.size() + banned.size() + alsoBanned.size() >
      RowDraws::maxChanges)
    return false;
  RowDraw &row = draws.row(index);
  row.firstChange = static_cast<int32_t>(changes.size());
  for (const LogitBias &b : params.logitBias)
    changes.push_back({b.id, b.bias});
  row.biases = static_cast<int32_t>(params.logitBias.size());
  const size_t firstBan = changes.size();
  for (std::span<const int32_t> ids : {banned, alsoBanned})
    for (int32_t id : ids) {
      bool known = std::any_of(changes.begin() + static_cast<ptrdiff_t>(firstBan), changes.end(),
                               [id](const LogitChange &c) { return c.id == id; });
      if (id >= 0 && id < draws.vocabulary() && !known)
        changes.push_back({id, -std::numeric_limits<float>::infinity()});
    }
  row.bans = static_cast<int32_t>(changes.size() - firstBan);
  row.onDevice = true;
  draws.setAny(true);
  if (Sampler::isGreedy(params))
    return true;
  row.noiseKey = PositionNoise(params.seed, params.stream, position).key();
  row.scale = 1.0 / static_cast<double>(params.temperature);
  if (params.minP > 0)
    row.floor = fixedLog(static_cast<double>(params.minP));
  row.topK = params.topK > 0 && params.topK < draws.vocabulary() ? params.topK : 0;
  row.topP = params.topP;
  return true;
}

} // namespace llmrt

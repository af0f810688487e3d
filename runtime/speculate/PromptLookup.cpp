#include "runtime/speculate/PromptLookup.h"

#include <algorithm>

namespace llmrt {

Status PromptLookup::propose(std::span<DraftRequest> requests) {
  for (DraftRequest &request : requests) {
    std::span<const int32_t> tokens = request.tokens;
    int64_t n = static_cast<int64_t>(tokens.size()), best = 0, follows = 0;
    int64_t other = 0, otherFollows = -1; // where something else followed than at the best place
    // One pass backwards over the places where the last token stood before: no index, so nothing
    // that an edited text could leave behind.
    for (int64_t end = n - 2; end >= 0 && best < most_; --end) {
      if (tokens[size_t(end)] != tokens[size_t(n - 1)])
        continue;
      int64_t length = 1;
      while (length < most_ && length <= end &&
             tokens[size_t(end - length)] == tokens[size_t(n - 1 - length)])
        ++length;
      if (best > 0 && tokens[size_t(end + 1)] == tokens[size_t(follows)]) {
        if (length > best)
          best = length, follows = end + 1;
      } else if (length > best) {
        other = best, otherFollows = best > 0 ? follows : -1;
        best = length, follows = end + 1;
      } else if (length > other) {
        other = length, otherFollows = end + 1;
      }
    }
    if (best >= least_)
      guessRepeat(request, follows, best, wantsSecondChoice(request, best) ? otherFollows : -1);
  }
  return Status::ok();
}

} // namespace llmrt

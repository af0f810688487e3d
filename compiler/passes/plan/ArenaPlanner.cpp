//===- ArenaPlanner.cpp - which buffers share memory -------------------------------===//
//
// Linear scan over the commands. Sizes are affine in T, S, R and Q, so "the best fit" has no single
// answer; a free slot of the same shape of formula (tokens or logit rows) and the nearest size is
// taken, and grows where it is too small. A slot's size is the largest of its buffers', term by
// term.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/plan/ArenaPlanner.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace llmc::plan;

namespace {

struct Size {
  int64_t terms[5];
  explicit Size(AffineAttr a)
      : terms{a.getConstant(), a.getPerToken(), a.getPerSequence(), a.getPerRow(), a.getPerTile()} {
  }

  /// Which terms there are, as bits.
  unsigned shape() const {
    unsigned bits = 0;
    for (int i = 0; i < 5; ++i)
      bits |= (terms[i] != 0) << i;
    return bits;
  }
  int64_t weight() const { return terms[0] + terms[1] + terms[2] + terms[3] + terms[4]; }
  void growTo(const Size &other) {
    for (int i = 0; i < 5; ++i)
      terms[i] = std::max(terms[i], other.terms[i]);
  }
};

struct Life {
  int64_t first = -1, last = -1;
};

} // namespace

void llmc::planArena(ProgramOp program) {
  llvm::MapVector<Operation *, Life> lives;
  int64_t now = 0;
  for (Operation &op : program.getBody().front()) {
    auto command = dyn_cast<CommandOp>(op);
    if (!command)
      continue;
    for (Value binding : command.getBindings()) {
      auto buffer = binding.getDefiningOp<BufferOp>();
      if (!buffer)
        continue;
      Life &life = lives[buffer];
      if (life.first < 0)
        life.first = now;
      life.last = now;
    }
    ++now;
  }

  struct Slot {
    Size size;
    int64_t busyUntil;
  };
  SmallVector<Slot> slots;
  Builder builder(program.getContext());
  // Buffers in the order of their first use: MapVector keeps it.
  for (auto &[op, life] : lives) {
    auto buffer = cast<BufferOp>(op);
    Size size(buffer.getSize());
    Slot *best = nullptr;
    for (Slot &slot : slots) {
      if (slot.busyUntil >= life.first || slot.size.shape() != size.shape())
        continue;
      auto distance = [&](const Slot &s) { return std::abs(s.size.weight() - size.weight()); };
      if (!best || distance(slot) < distance(*best))
        best = &slot;
    }
    if (!best)
      best = &slots.emplace_back(Slot{size, 0});
    best->size.growTo(size);
    best->busyUntil = life.last;
    buffer.setSlotAttr(builder.getI64IntegerAttr(best - slots.data()));
  }
}

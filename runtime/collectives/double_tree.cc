// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <vector>

#include "runtime/base/parts.h"
#include "runtime/collectives/algorithms.h"
#include "runtime/collectives/reducing.h"
#include "runtime/collectives/schedule.h"
#include "runtime/collectives/timetable.h"

namespace railhead::collectives {
namespace {

// A rank's place in one of the trees: the numbers from 1 on in order, a number's height being that
// of its lowest bit; the second tree is the first, one rank further.
class Place {
 public:
  Place(int rank, int world_size, int tree)
      : ranks_(world_size), shift_(tree), number_((rank + tree) % world_size + 1) {
    const int low = number_ & -number_;
    if (number_ != static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks_)))) {
      const int up = (number_ - low) | (2 * low);
      parent_ = RankOf(up <= ranks_ ? up : number_ - low);
    }
    for (const int side : {-1, 1}) {
      // On the far side some numbers do not exist; the highest that does is the child.
      for (int step = low / 2; step > 0; step /= 2) {
        const int child = number_ + side * step;
        if (child > ranks_) continue;
        children_.push_back({RankOf(child), Height(child)});
        break;
      }
    }
    // In the order in which they are ready.
    std::stable_sort(children_.begin(), children_.end(),
                     [](const Child& a, const Child& b) { return a.height < b.height; });
  }

  struct Child {
    int rank;
    int height;
  };

  int parent() const { return parent_; }  // -1: the root
  const std::vector<Child>& children() const { return children_; }
  // A parent's is larger than its children's.
  int height() const { return Height(number_); }

 private:
  static int Height(int number) { return std::countr_zero(static_cast<unsigned>(number)); }
  int RankOf(int number) const { return (number - 1 - shift_ + ranks_) % ranks_; }

  int ranks_;
  int shift_;
  int number_;
  int parent_ = -1;
  std::vector<Child> children_;
};

class AllReduce final : public Schedule {
 public:
  AllReduce(int rank, const Operation& all)
      : whole_(all.reduction),
        partial_(Partial(all.reduction)),
        send_(all.send),
        receive_(all.receive) {
    const size_t element = reduce::SizeOf(all.reduction.type);
    const Parts halves(2, all.count);
    std::vector<Step> steps;
    for (int tree = 0; tree < 2; ++tree) {
      const Range half = halves[static_cast<size_t>(tree)];
      AddTree(Place(rank, all.ranks, tree), tree, all.ranks,
              {half.begin * element, half.size * element}, steps);
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return a.time < b.time; });
    Number(steps);
  }

  size_t sends() const override { return sends_.size(); }
  size_t receives() const override { return receives_.size(); }
  Outgoing Send(size_t n) const override { return sends_[n]; }
  Incoming Receive(size_t n) const override { return receives_[n]; }

 private:
  // A message of this rank, before it has a number.
  struct Step {
    int time;  // later than that of every message it waits for, on whatever rank
    bool sends;
    int line;  // tree and segment
    bool up;
    int peer;
    Range range;  // bytes
    bool first;   // of the children's
    bool last;    // of the children's, at the root
    bool has_children;
    bool is_root;
  };

  // Segment s goes up from a child of height h at time s + h. No height is more than `top`; so at
  // s + 2 top + 1 - h it can come down to that child.
  static void AddTree(const Place& place, int tree, int world_size, Range half,
                      std::vector<Step>& steps) {
    const int top = static_cast<int>(std::bit_width(static_cast<unsigned>(world_size))) - 1;
    const Train train(half.size);
    for (size_t s = 0; s < train.size(); ++s) {
      const auto segment = static_cast<int>(s);
      const Range range = {half.begin + train.At(s).begin, train.At(s).size};
      Step step{};
      step.line = 2 * segment + tree;
      step.range = range;
      step.has_children = !place.children().empty();
      step.is_root = place.parent() < 0;
      for (size_t c = 0; c < place.children().size(); ++c) {
        const Place::Child& child = place.children()[c];
        step.time = segment + child.height;
        step.up = true;
        step.sends = false;
        step.peer = child.rank;
        step.first = c == 0;
        step.last = step.is_root && c + 1 == place.children().size();
        steps.push_back(step);
        step.time = segment + 2 * top + 1 - child.height;
        step.up = false;
        step.sends = true;
        steps.push_back(step);
      }
      if (step.is_root) continue;
      step.peer = place.parent();
      step.time = segment + place.height();
      step.up = true;
      step.sends = true;
      steps.push_back(step);
      step.time = segment + 2 * top + 1 - place.height();
      step.up = false;
      step.sends = false;
      steps.push_back(step);
    }
  }

  // Gives each message its number, and so what it waits for: the last one that this rank received
  // of its segment.
  void Number(const std::vector<Step>& steps) {
    std::vector<size_t> received;  // by line
    for (const Step& step : steps) {
      const auto line = static_cast<size_t>(step.line);
      if (line >= received.size()) received.resize(line + 1, kNothing);
      if (step.sends) {
        const std::byte* const from = step.up && !step.has_children ? send_ : receive_;
        Outgoing outgoing = To(step.peer, from + step.range.begin, step.range.size);
        outgoing.needs = received[line];
        sends_.push_back(outgoing);
        continue;
      }
      Incoming incoming = From(step.peer, receive_ + step.range.begin, step.range.size);
      incoming.needs = received[line];
      if (step.up) {
        incoming.buffer.operand = (step.first ? send_ : receive_) + step.range.begin;
        incoming.buffer.reduction = step.last ? &whole_ : &partial_;
      }
      received[line] = receives_.size();
      receives_.push_back(incoming);
    }
  }

  const reduce::Reduction whole_;
  const reduce::Reduction partial_;
  const std::byte* const send_;
  std::byte* const receive_;
  std::vector<Outgoing> sends_;
  std::vector<Incoming> receives_;
};

}  // namespace

absl::Status DoubleTreeAllReduce(Messenger& messenger, int rank, const Operation& operation) {
  if (ReducedAlone(operation)) return absl::OkStatus();
  return Run(messenger, AllReduce(rank, operation));
}

}  // namespace railhead::collectives

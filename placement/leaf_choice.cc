// SPDX-License-Identifier: Apache-2.0
#include "placement/leaf_choice.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "fabric/model/fabric_model.h"

namespace railhead::placement {
namespace {

using Cost = int64_t;
// More than any cost, and less than half of the type's maximum, so that two can be added.
constexpr Cost kImpossible = Cost{1} << 61;
constexpr int kNone = -1;

// Maximum number of additions: they take some tens of seconds.
constexpr double kMostWork = 2e10;

absl::Status CheckWork(const std::vector<LeafOffer>& offers, int pods) {
  double all = 0;
  double largest = 0;
  for (const LeafOffer& offer : offers) {
    all += std::max(offer.room, 0);
    largest = std::max(largest, static_cast<double>(offer.room));
  }
  if (all * std::min(all, pods + largest) / 2 <= kMostWork) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("an exact comparison of ", static_cast<int64_t>(all), " free places for ", pods,
                   " pods would take minutes; request fewer pods with more GPUs each"));
}

// Returns the cost of one domain of each level: more than the sum of all later criteria.
absl::StatusOr<std::vector<Cost>> UnitCosts(const Tree& tree, const std::vector<LeafOffer>& offers,
                                            int pods) {
  Cost below = 0;
  for (const LeafOffer& offer : offers) below += offer.room > 0 ? std::abs(offer.cost) : 0;
  std::vector<Cost> units(tree.size());
  for (size_t level = tree.size(); level-- > 0;) {
    units[level] = below + 1;
    const Cost most = std::min<Cost>(static_cast<Cost>(tree[level].size()), pods) + 1;
    Cost all = 0;
    if (__builtin_mul_overflow(units[level], most, &all) || all + below >= kImpossible) {
      return absl::ResourceExhaustedError(
          "the fabric has too many levels and domains for an exact comparison; remove levels that "
          "are irrelevant to placement");
    }
    below += all;
  }
  return units;
}

class Chooser {
 public:
  Chooser(const Tree& tree, const std::vector<LeafOffer>& offers, std::vector<Cost> units, int pods,
          int single_levels)
      : tree_(tree),
        offers_(offers),
        units_(std::move(units)),
        pods_(static_cast<size_t>(pods)),
        single_levels_(static_cast<size_t>(single_levels)) {
    size_t largest = 1;
    for (const LeafOffer& offer : offers) {
      largest = std::max(largest, static_cast<size_t>(offer.room));
    }
    most_ = pods_ + largest - 1;
  }

  std::optional<std::vector<int>> Choose() {
    const int root = Children(0, 0, static_cast<int>(tree_[0].size()));
    if (root == kNone) return std::nullopt;
    const std::vector<Cost>& cost = tables_[static_cast<size_t>(root)].cost;
    size_t best = 0;
    for (size_t room = pods_; room < cost.size(); ++room) {
      if (cost[room] < kImpossible && (best == 0 || cost[room] < cost[best])) best = room;
    }
    if (best == 0) return std::nullopt;
    Goals goals(cost.size(), 0);
    goals[best] = 1;
    Take(root, goals);
    return std::move(taken_);
  }

 private:
  // The cheapest way to each amount of room in some part of the tree; cost[0] is 0. The part is one
  // leaf, or two other parts of which both or only one may be used.
  struct Table {
    int leaf = kNone;
    int left = kNone;
    int right = kNone;
    bool only_one = false;
    Cost unit = 0;  // cost of the domains that begin here, if they are used
    std::vector<Cost> cost;
  };
  using Goals = std::vector<char>;  // whether each amount of room is acceptable

  int Add(Table table) {
    tables_.push_back(std::move(table));
    return static_cast<int>(tables_.size()) - 1;
  }

  // Returns the table of a domain; -1 if it has no room.
  int Domain(size_t level, int index) {
    const fabric::FabricDomain& domain = tree_[level][static_cast<size_t>(index)];
    const int id = level + 1 == tree_.size()
                       ? Leaf(index)
                       : Children(level + 1, domain.first, domain.first + domain.count);
    if (id == kNone) return kNone;
    Table& table = tables_[static_cast<size_t>(id)];
    table.unit += units_[level];
    for (size_t room = 1; room < table.cost.size(); ++room) {
      if (table.cost[room] < kImpossible) table.cost[room] += units_[level];
    }
    return id;
  }

  int Leaf(int index) {
    const LeafOffer& offer = offers_[static_cast<size_t>(index)];
    if (offer.room <= 0) return kNone;
    Table table;
    table.leaf = index;
    table.cost.assign(static_cast<size_t>(offer.room) + 1, kImpossible);
    table.cost.front() = 0;
    table.cost.back() = offer.cost;
    return Add(std::move(table));
  }

  // Joins domains first to end - 1 of a level, by halves, so that tables of similar size are
  // joined.
  int Children(size_t level, int first, int end) {
    if (end - first == 0) return kNone;
    if (end - first == 1) return Domain(level, first);
    const int middle = first + (end - first) / 2;
    const int left = Children(level, first, middle);
    const int right = Children(level, middle, end);
    if (left == kNone || right == kNone) return left == kNone ? right : left;
    Table table;
    table.left = left;
    table.right = right;
    table.only_one = level < single_levels_;
    const std::vector<Cost>& a = tables_[static_cast<size_t>(left)].cost;
    const std::vector<Cost>& b = tables_[static_cast<size_t>(right)].cost;
    table.cost = table.only_one ? Least(a, b) : Sum(a, b);
    return Add(std::move(table));
  }

  static std::vector<Cost> Least(const std::vector<Cost>& a, const std::vector<Cost>& b) {
    std::vector<Cost> cost(std::max(a.size(), b.size()), kImpossible);
    std::copy(a.begin(), a.end(), cost.begin());
    for (size_t room = 0; room < b.size(); ++room) cost[room] = std::min(cost[room], b[room]);
    return cost;
  }

  std::vector<Cost> Sum(const std::vector<Cost>& a, const std::vector<Cost>& b) const {
    std::vector<Cost> cost(std::min(a.size() + b.size() - 1, most_ + 1), kImpossible);
    for (size_t i = 0; i < std::min(a.size(), cost.size()); ++i) {
      if (a[i] >= kImpossible) continue;
      const Cost base = a[i];
      const size_t count = std::min(b.size(), cost.size() - i);
      Cost* const out = cost.data() + i;
      for (size_t j = 0; j < count; ++j) out[j] = std::min(out[j], base + b[j]);
    }
    return cost;
  }

  // Takes the first set of leaves that reaches one of the goals at its cost, and returns that goal.
  size_t Take(int id, const Goals& goals) {
    const Table& table = tables_[static_cast<size_t>(id)];
    if (std::find(goals.begin() + 1, goals.end(), 1) == goals.end()) return 0;
    if (table.leaf != kNone) {
      taken_.push_back(table.leaf);
      return goals.size() - 1;
    }
    const std::vector<Cost>& left = tables_[static_cast<size_t>(table.left)].cost;
    const std::vector<Cost>& right = tables_[static_cast<size_t>(table.right)].cost;
    // Calls `pair` with each way to divide a goal between the two that keeps its cost.
    const auto for_each = [&](size_t first_left, size_t end_left, auto pair) {
      for (size_t room = 0; room < goals.size(); ++room) {
        if (goals[room] == 0) continue;
        const Cost wanted = table.cost[room] - (room > 0 ? table.unit : 0);
        for (size_t i = first_left; i < std::min({end_left, room + 1, left.size()}); ++i) {
          const size_t j = room - i;
          if (j >= right.size() || (table.only_one && i > 0 && j > 0)) continue;
          if (left[i] + right[j] == wanted) pair(i, j);
        }
      }
    };
    Goals left_goals(left.size(), 0);
    for_each(0, left.size(), [&](size_t i, size_t) { left_goals[i] = 1; });
    const size_t in_left = Take(table.left, left_goals);
    Goals right_goals(right.size(), 0);
    for_each(in_left, in_left + 1, [&](size_t, size_t j) { right_goals[j] = 1; });
    return in_left + Take(table.right, right_goals);
  }

  const Tree& tree_;
  const std::vector<LeafOffer>& offers_;
  const std::vector<Cost> units_;
  const size_t pods_;
  const size_t single_levels_;
  size_t most_ = 0;  // maximum relevant room
  std::vector<Table> tables_;
  std::vector<int> taken_;
};

// Returns whether there is room, without choosing leaves.
bool HasRoom(const Tree& tree, const std::vector<LeafOffer>& offers, int pods, int single_levels) {
  std::vector<int64_t> room(offers.size());
  for (size_t i = 0; i < offers.size(); ++i) room[i] = std::max(offers[i].room, 0);
  for (size_t level = tree.size(); level-- > static_cast<size_t>(std::max(single_levels, 1));) {
    std::vector<int64_t> outer(tree[level - 1].size());
    for (size_t i = 0; i < room.size(); ++i) {
      outer[static_cast<size_t>(tree[level][i].parent)] += room[i];
    }
    room = std::move(outer);
  }
  int64_t most = 0;
  for (const int64_t domain : room) {
    most = single_levels > 0 ? std::max(most, domain) : most + domain;
  }
  return most >= pods;
}

// The tree and offers with the domains of each level, except leaves, sorted by room, least first:
// this order decides between equal sets.
struct ByRoom {
  Tree tree;
  std::vector<LeafOffer> offers;
  std::vector<int> leaf;  // its index before
};

ByRoom OrderByRoom(const Tree& tree, const std::vector<LeafOffer>& offers) {
  std::vector<std::vector<int64_t>> rooms(tree.size());  // [level][domain]
  for (const LeafOffer& offer : offers) rooms.back().push_back(std::max(offer.room, 0));
  for (size_t level = tree.size() - 1; level-- > 0;) {
    for (const fabric::FabricDomain& domain : tree[level]) {
      int64_t room = 0;
      for (int i = domain.first; i < domain.first + domain.count; ++i) {
        room += rooms[level + 1][static_cast<size_t>(i)];
      }
      rooms[level].push_back(room);
    }
  }
  ByRoom ordered;
  ordered.tree.resize(tree.size());
  std::vector<std::pair<int, int>> around = {{0, static_cast<int>(tree[0].size())}};
  for (size_t level = 0; level < tree.size(); ++level) {
    std::vector<std::pair<int, int>> inside;
    for (size_t i = 0; i < around.size(); ++i) {
      const auto [first, count] = around[i];
      std::vector<int> order(static_cast<size_t>(count));
      std::iota(order.begin(), order.end(), first);
      const bool leaves = level + 1 == tree.size();
      if (!leaves) {
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
          return rooms[level][static_cast<size_t>(a)] < rooms[level][static_cast<size_t>(b)];
        });
      }
      if (level > 0) {
        ordered.tree[level - 1][i].first = static_cast<int>(ordered.tree[level].size());
      }
      for (const int domain : order) {
        const fabric::FabricDomain& before = tree[level][static_cast<size_t>(domain)];
        ordered.tree[level].push_back({"", static_cast<int>(i), 0, before.count});
        inside.emplace_back(before.first, before.count);
        if (leaves) {
          ordered.leaf.push_back(domain);
          ordered.offers.push_back(offers[static_cast<size_t>(domain)]);
        }
      }
    }
    around = std::move(inside);
  }
  return ordered;
}

}  // namespace

absl::StatusOr<std::optional<std::vector<int>>> ChooseLeaves(const Tree& tree,
                                                             const std::vector<LeafOffer>& offers,
                                                             int pods, int single_levels) {
  if (!HasRoom(tree, offers, pods, single_levels)) return std::nullopt;
  absl::Status status = CheckWork(offers, pods);
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<Cost>> units = UnitCosts(tree, offers, pods);
  if (!units.ok()) return units.status();
  if (tree.size() == 1) {
    return Chooser(tree, offers, *std::move(units), pods, single_levels).Choose();
  }
  const ByRoom ordered = OrderByRoom(tree, offers);
  std::optional<std::vector<int>> chosen =
      Chooser(ordered.tree, ordered.offers, *std::move(units), pods, single_levels).Choose();
  if (!chosen) return chosen;
  for (int& leaf : *chosen) leaf = ordered.leaf[static_cast<size_t>(leaf)];
  std::sort(chosen->begin(), chosen->end());
  return chosen;
}

}  // namespace railhead::placement

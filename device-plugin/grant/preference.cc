// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/preference.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "device-plugin/devices/device_list.h"
#include "fabric/affinity.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using Cost = std::vector<int64_t>;

// Two slots of one HCA, which are nearer than any two devices.
constexpr int64_t kSame = static_cast<int64_t>(fabric::Level::kSys) + 1;

// Grows with the square, so that two near pairs are worse than one near and one far.
int64_t NearnessOf(const fabric::Hca& a, const fabric::Hca& b, bool same) {
  const int64_t level =
      same ? -1
           : static_cast<int64_t>(fabric::LevelBetween(fabric::Position{a.path, a.numa_node},
                                                       fabric::Position{b.path, b.numa_node}));
  const int64_t near = static_cast<int64_t>(fabric::Level::kSys) - level;
  return near * near;
}

// The devices of a snapshot by HCA, with distances and free slots. All slots of an HCA cost the
// same, so a choice is a number of slots of each HCA.
class Choices {
 public:
  Choices(const DeviceSnapshot& snapshot, const Wish& wish) {
    std::map<std::string, size_t> places;  // of HCAs, in hcas_
    for (const Device& device : snapshot.devices) {
      const auto [hca, is_new] = places.emplace(DeviceId(device.hca), hcas_.size());
      if (is_new) hcas_.push_back(&device.hca);
      hca_of_.push_back(hca->second);
      places_.emplace(device.id, devices_.size());
      devices_.push_back(&device);
    }
    free_slots_.assign(hcas_.size(), 0);
    for (const std::string& id : wish.available) {
      if (const size_t i = Find(id); i < devices_.size()) ++free_slots_[hca_of_[i]];
    }
    for (const auto& [id, others] : wish.load) {
      if (const size_t i = Find(id); i < devices_.size()) free_slots_[hca_of_[i]] -= others;
    }
    for (const fabric::Gpu& gpu : snapshot.inventory.gpus) {
      if (std::find(wish.gpus.begin(), wish.gpus.end(), gpu.pci_address) == wish.gpus.end()) {
        continue;
      }
      std::vector<int64_t>& row = to_gpu_.emplace_back();
      for (const fabric::Hca* hca : hcas_) {
        row.push_back(static_cast<int64_t>(fabric::LevelBetween(gpu, *hca)));
      }
    }
    for (size_t a = 0; a < hcas_.size(); ++a) {
      std::vector<int64_t>& row = nearness_.emplace_back();
      for (size_t b = 0; b < hcas_.size(); ++b) {
        row.push_back(NearnessOf(*hcas_[a], *hcas_[b], a == b));
      }
      int64_t least = kSame;
      for (const std::vector<int64_t>& to_hcas : to_gpu_) least = std::min(least, to_hcas[a]);
      to_nearest_gpu_.push_back(least);
    }
  }

  // The place of a device; devices().size() when the snapshot does not know it.
  size_t Find(absl::string_view id) const {
    const auto found = places_.find(id);
    return found == places_.end() ? devices_.size() : found->second;
  }
  const std::vector<const Device*>& devices() const { return devices_; }
  size_t hca_of(size_t device) const { return hca_of_[device]; }
  size_t hca_count() const { return hcas_.size(); }

 private:
  friend class Choice;

  std::vector<const Device*> devices_;
  std::map<absl::string_view, size_t> places_;  // of devices, by id
  std::vector<size_t> hca_of_;                  // [device]; a node has thousands of slots
  std::vector<const fabric::Hca*> hcas_;        // in the order of devices
  std::vector<int64_t> free_slots_;             // [HCA]
  std::vector<std::vector<int64_t>> to_gpu_;    // [GPU of the container][HCA]: Level
  std::vector<int64_t> to_nearest_gpu_;         // [HCA]: least of these
  std::vector<std::vector<int64_t>> nearness_;  // [HCA][HCA]
};

// A number of slots of each HCA, and what they cost together. Adding or removing one takes
// O(HCAs + GPUs), and so does the cost of a choice with one more.
class Choice {
 public:
  explicit Choice(const Choices& choices)
      : choices_(choices), count_(choices.hcas_.size(), 0), near_(choices.hcas_.size(), 0) {}

  void Add(size_t hca) { Change(hca, 1); }
  void Remove(size_t hca) { Change(hca, -1); }

  // Returns the cost if one slot of `hca` were added.
  Cost With(size_t hca) const {
    int64_t gpus = 0;
    for (size_t g = 0; g < choices_.to_gpu_.size(); ++g) {
      gpus += std::min(Least(g), choices_.to_gpu_[g][hca]);
    }
    return {gpus, hcas_ + HcaCost(hca, count_[hca] + 1) - HcaCost(hca, count_[hca]),
            together_ + near_[hca], slots_ - choices_.free_slots_[hca],
            rails_ + choices_.hcas_[hca]->rail};
  }
  Cost cost() const {
    int64_t gpus = 0;
    for (size_t g = 0; g < choices_.to_gpu_.size(); ++g) gpus += Least(g);
    return {gpus, hcas_, together_, slots_, rails_};
  }

 private:
  // Returns the distance of a GPU to the nearest chosen HCA.
  int64_t Least(size_t gpu) const { return least_.empty() ? kSame : least_[gpu]; }

  // Another slot of an HCA brings none nearer: any other HCA is better.
  int64_t HcaCost(size_t hca, int64_t count) const {
    if (count == 0 || choices_.to_gpu_.empty()) return 0;
    return choices_.to_nearest_gpu_[hca] + (count - 1) * kSame;
  }

  void Change(size_t hca, int64_t by) {
    const int64_t before = count_[hca];
    hcas_ += HcaCost(hca, before + by) - HcaCost(hca, before);
    // Pairs of the slot with the others.
    together_ += by > 0 ? near_[hca] : choices_.nearness_[hca][hca] - near_[hca];
    slots_ -= by * choices_.free_slots_[hca];
    rails_ += by * choices_.hcas_[hca]->rail;
    count_[hca] += by;
    for (size_t i = 0; i < near_.size(); ++i) near_[i] += by * choices_.nearness_[i][hca];
    if (before != 0 && count_[hca] != 0) return;
    least_.assign(choices_.to_gpu_.size(), kSame);
    for (size_t g = 0; g < least_.size(); ++g) {
      for (size_t i = 0; i < count_.size(); ++i) {
        if (count_[i] > 0) least_[g] = std::min(least_[g], choices_.to_gpu_[g][i]);
      }
    }
  }

  const Choices& choices_;
  std::vector<int64_t> count_;  // [HCA]
  std::vector<int64_t> near_;   // [HCA]: nearness to all chosen slots
  std::vector<int64_t> least_;  // [GPU]: distance to the nearest chosen HCA
  int64_t hcas_ = 0;
  int64_t together_ = 0;
  int64_t slots_ = 0;
  int64_t rails_ = 0;
};

// Chooses slots of HCAs one by one, and then exchanges them, until no exchange is cheaper.
class Search {
 public:
  // `free`: number of slots to choose from, of each HCA.
  Search(const Choices& choices, std::vector<size_t> free, StepLimit& limit)
      : choice_(choices), free_(std::move(free)), limit_(limit) {}

  // Adds a slot that stays whatever else is chosen.
  void Fix(size_t hca) { choice_.Add(hca); }

  // Returns the HCA of each of `size` slots; fewer if there are not enough.
  std::vector<size_t> Run(size_t size) {
    std::vector<size_t> chosen;
    while (chosen.size() < size) {
      const std::optional<size_t> best = Best(std::nullopt);
      if (!best.has_value()) break;
      Take(*best);
      chosen.push_back(*best);
    }
    // A greedy choice is not optimal. Each exchange decreases the cost.
    for (bool better = true; better;) {
      better = false;
      std::vector<bool> tried(free_.size(), false);  // since the last exchange
      for (size_t& place : chosen) {
        if (tried[place]) continue;
        const size_t before = place;
        Return(before);
        place = Best(before).value_or(before);
        Take(place);
        if (place == before) {
          tried[place] = true;
          continue;
        }
        better = true;
        tried.assign(free_.size(), false);
      }
    }
    return chosen;
  }

 private:
  // Returns the HCA with the cheapest next slot: `now` or the first of several. Beyond the limit
  // of steps, `now` or any HCA with a free slot.
  std::optional<size_t> Best(std::optional<size_t> now) {
    std::optional<size_t> best = now;
    std::optional<Cost> least;
    if (now.has_value()) least = choice_.With(*now);
    for (size_t hca = 0; hca < free_.size(); ++hca) {
      if (free_[hca] == 0 || hca == now) continue;
      if (best.has_value() && !limit_.Take()) break;
      Cost cost = choice_.With(hca);
      if (least.has_value() && *least <= cost) continue;
      least = std::move(cost);
      best = hca;
    }
    return best;
  }
  void Take(size_t hca) {
    --free_[hca];
    choice_.Add(hca);
  }
  void Return(size_t hca) {
    ++free_[hca];
    choice_.Remove(hca);
  }

  Choice choice_;
  std::vector<size_t> free_;
  StepLimit& limit_;
};

}  // namespace

bool StepLimit::Take() {
  constexpr size_t kLookEvery = 64;
  if (taken_ >= most_ || stopped_) return false;
  stopped_ = cancelled_ != nullptr && taken_ % kLookEvery == 0 && cancelled_();
  if (stopped_) return false;
  ++taken_;
  return true;
}

std::vector<std::string> Prefer(const DeviceSnapshot& snapshot, const Wish& wish) {
  StepLimit limit;
  return Prefer(snapshot, wish, limit);
}

std::vector<std::string> Prefer(const DeviceSnapshot& snapshot, const Wish& wish,
                                StepLimit& limit) {
  const Choices choices(snapshot, wish);
  std::vector<std::string> result;
  std::vector<std::string> unknown;
  std::vector<size_t> fixed;
  // In the snapshot's order: of equal choices the first one is taken.
  std::vector<std::set<size_t>> candidates(choices.hca_count());  // by HCA
  for (const std::string& id : wish.must_include) {
    if (const size_t i = choices.Find(id); i < choices.devices().size()) {
      fixed.push_back(i);
    } else {
      result.push_back(id);
    }
  }
  const std::set<std::string> included(wish.must_include.begin(), wish.must_include.end());
  for (const std::string& id : wish.available) {
    if (included.contains(id)) continue;
    if (const size_t i = choices.Find(id); i < choices.devices().size()) {
      candidates[choices.hca_of(i)].insert(i);
    } else {
      unknown.push_back(id);
    }
  }
  std::vector<size_t> free;
  free.reserve(candidates.size());
  for (const std::set<size_t>& of_hca : candidates) free.push_back(of_hca.size());
  Search search(choices, std::move(free), limit);
  for (const size_t i : fixed) {
    search.Fix(choices.hca_of(i));
    result.push_back(choices.devices()[i]->id);
  }
  std::set<size_t> chosen;
  for (const size_t hca : search.Run(wish.size - std::min(wish.size, result.size()))) {
    chosen.insert(candidates[hca].extract(candidates[hca].begin()));
  }
  for (const size_t i : chosen) result.push_back(choices.devices()[i]->id);
  for (size_t i = 0; i < unknown.size() && result.size() < wish.size; ++i) {
    result.push_back(unknown[i]);
  }
  return result;
}

bool IsAligned(const DeviceSnapshot& snapshot, const std::vector<std::string>& held,
               const std::vector<std::string>& gpus) {
  std::set<std::string> hcas;
  std::vector<std::string> one_slot_each;
  for (const std::string& id : held) {
    const Device* device = snapshot.Find(id);
    if (device == nullptr || hcas.insert(DeviceId(device->hca)).second) one_slot_each.push_back(id);
  }
  Wish wish{{}, {}, one_slot_each.size(), gpus};
  for (const Device& device : snapshot.devices) wish.available.push_back(device.id);
  const Cost best = CostOf(snapshot, wish, Prefer(snapshot, wish));
  const Cost mine = CostOf(snapshot, wish, one_slot_each);
  // The first two elements concern GPUs.
  return std::equal(mine.begin(), mine.begin() + 2, best.begin(), std::less_equal<>());
}

std::vector<int64_t> CostOf(const DeviceSnapshot& snapshot, const Wish& wish,
                            const std::vector<std::string>& chosen) {
  const Choices choices(snapshot, wish);
  Choice choice(choices);
  for (const std::string& id : chosen) {
    const size_t place = choices.Find(id);
    if (place < choices.devices().size()) choice.Add(choices.hca_of(place));
  }
  return choice.cost();
}

}  // namespace railhead::device_plugin

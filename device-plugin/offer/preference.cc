// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/offer/preference.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "device-plugin/offer/device_list.h"
#include "fabric/affinity.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

using Cost = std::vector<int64_t>;

// Two slots of one HCA, which are nearer than any two devices.
constexpr int64_t kSame = static_cast<int64_t>(fabric::Level::kSys) + 1;

// Distances and free slots for comparing choices, by index in `devices`.
class Choices {
 public:
  Choices(const DeviceSnapshot& snapshot, const Wish& wish) {
    std::map<std::string, size_t> places;  // of HCAs, in `hcas`
    std::vector<const fabric::Hca*> hcas;
    for (const Device& device : snapshot.devices) {
      const auto [hca, is_new] = places.emplace(DeviceId(device.hca), hcas.size());
      if (is_new) hcas.push_back(&device.hca);
      hca_of_.push_back(hca->second);
      places_.emplace(device.id, devices_.size());
      devices_.push_back(&device);
    }
    std::vector<int64_t> free_slots(hcas.size(), 0);
    for (const std::string& id : wish.available) {
      if (const size_t i = Find(id); i < devices_.size()) ++free_slots[hca_of_[i]];
    }
    for (size_t i = 0; i < devices_.size(); ++i) {
      const auto load = wish.load.find(devices_[i]->id);
      free_slots_.push_back(free_slots[hca_of_[i]] - (load == wish.load.end() ? 0 : load->second));
    }
    for (const fabric::Gpu& gpu : snapshot.inventory.gpus) {
      if (std::find(wish.gpus.begin(), wish.gpus.end(), gpu.pci_address) == wish.gpus.end()) {
        continue;
      }
      std::vector<int64_t>& row = to_gpu_.emplace_back();
      for (const fabric::Hca* hca : hcas) {
        row.push_back(static_cast<int64_t>(fabric::LevelBetween(gpu, *hca)));
      }
    }
    for (size_t a = 0; a < hcas.size(); ++a) {
      std::vector<int64_t>& row = nearness_.emplace_back();
      for (size_t b = 0; b < hcas.size(); ++b) row.push_back(Nearness(*hcas[a], *hcas[b], a == b));
    }
  }

  // The place of a device; devices().size() when the snapshot does not know it.
  size_t Find(absl::string_view id) const {
    const auto found = places_.find(id);
    return found == places_.end() ? devices_.size() : found->second;
  }
  const std::vector<const Device*>& devices() const { return devices_; }

  Cost CostOf(const std::vector<size_t>& chosen) const {
    int64_t gpus = 0;
    for (const std::vector<int64_t>& row : to_gpu_) {
      gpus += Least(chosen, [this, &row](size_t i) { return row[hca_of_[i]]; });
    }
    int64_t hcas = 0;
    int64_t together = 0;
    int64_t slots = 0;
    int64_t rails = 0;
    for (size_t k = 0; k < chosen.size(); ++k) {
      const size_t i = chosen[k];
      // Another slot of an HCA brings none nearer: any other HCA is better.
      const bool again =
          std::any_of(chosen.begin(), chosen.begin() + static_cast<std::ptrdiff_t>(k),
                      [this, i](size_t j) { return hca_of_[i] == hca_of_[j]; });
      if (again && !to_gpu_.empty()) {
        hcas += kSame;
      } else if (!to_gpu_.empty()) {
        int64_t least = kSame;
        for (const std::vector<int64_t>& row : to_gpu_) least = std::min(least, row[hca_of_[i]]);
        hcas += least;
      }
      for (size_t j = 0; j < k; ++j) together += nearness_[hca_of_[i]][hca_of_[chosen[j]]];
      slots -= free_slots_[i];
      rails += devices_[i]->hca.rail;
    }
    return {gpus, hcas, together, slots, rails};
  }

 private:
  // Grows with the square, so that two near pairs are worse than one near and one far.
  static int64_t Nearness(const fabric::Hca& a, const fabric::Hca& b, bool same) {
    const int64_t level =
        same ? -1
             : static_cast<int64_t>(fabric::LevelBetween(fabric::Position{a.path, a.numa_node},
                                                         fabric::Position{b.path, b.numa_node}));
    const int64_t near = static_cast<int64_t>(fabric::Level::kSys) - level;
    return near * near;
  }

  template <typename Function>
  static int64_t Least(const std::vector<size_t>& chosen, Function value) {
    int64_t least = kSame;
    for (const size_t i : chosen) least = std::min(least, value(i));
    return least;
  }

  std::vector<const Device*> devices_;
  std::map<absl::string_view, size_t> places_;  // of devices, by id
  std::vector<size_t> hca_of_;                  // [device]; a node has thousands of slots
  std::vector<int64_t> free_slots_;             // [device], of its HCA
  std::vector<std::vector<int64_t>> to_gpu_;    // [GPU of the container][HCA]: Level
  std::vector<std::vector<int64_t>> nearness_;  // [HCA][HCA]
};

// Puts the best of `candidates` and the current device at `chosen[place]`, by cost and by index in
// the snapshot.
Cost Improve(const Choices& choices, const std::vector<size_t>& candidates, size_t place,
             std::vector<size_t>& chosen) {
  size_t best = chosen[place];
  Cost least = choices.CostOf(chosen);
  for (const size_t candidate : candidates) {
    if (std::find(chosen.begin(), chosen.end(), candidate) != chosen.end()) continue;
    const size_t before = std::exchange(chosen[place], candidate);
    Cost cost = choices.CostOf(chosen);
    if (cost < least) {
      least = std::move(cost);
      best = candidate;
    }
    chosen[place] = before;
  }
  chosen[place] = best;
  return least;
}

}  // namespace

std::vector<std::string> Prefer(const DeviceSnapshot& snapshot, const Wish& wish) {
  const Choices choices(snapshot, wish);
  std::vector<std::string> result;
  std::vector<size_t> chosen;
  std::vector<size_t> candidates;
  std::vector<std::string> unknown;
  const auto sort_in = [&](const std::string& id, std::vector<size_t>& known,
                           std::vector<std::string>& rest) {
    const size_t place = choices.Find(id);
    if (place < choices.devices().size()) {
      known.push_back(place);
    } else {
      rest.push_back(id);
    }
  };
  for (const std::string& id : wish.must_include) sort_in(id, chosen, result);
  for (const std::string& id : wish.available) {
    if (std::find(wish.must_include.begin(), wish.must_include.end(), id) ==
        wish.must_include.end()) {
      sort_in(id, candidates, unknown);
    }
  }
  // Between equal choices the first one is taken.
  std::sort(candidates.begin(), candidates.end());

  const size_t fixed = chosen.size();
  const size_t room = wish.size > result.size() ? wish.size - result.size() : 0;
  while (chosen.size() < room) {
    const auto next = std::find_if(candidates.begin(), candidates.end(), [&chosen](size_t i) {
      return std::find(chosen.begin(), chosen.end(), i) == chosen.end();
    });
    if (next == candidates.end()) break;
    chosen.push_back(*next);
    Improve(choices, candidates, chosen.size() - 1, chosen);
  }
  // A greedy choice is not optimal: exchange devices until the cost no longer decreases. Each round
  // decreases it.
  Cost cost = choices.CostOf(chosen);
  for (bool better = true; better;) {
    better = false;
    for (size_t place = fixed; place < chosen.size(); ++place) {
      Cost now = Improve(choices, candidates, place, chosen);
      better = better || now < cost;
      cost = std::move(now);
    }
  }
  std::sort(chosen.begin() + static_cast<std::ptrdiff_t>(fixed), chosen.end());
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
  std::vector<size_t> places;
  for (const std::string& id : chosen) {
    if (const size_t place = choices.Find(id); place < choices.devices().size()) {
      places.push_back(place);
    }
  }
  return choices.CostOf(places);
}

}  // namespace railhead::device_plugin

// SPDX-License-Identifier: Apache-2.0
//
// Random histories of a node: its NICs, its kubelet with pods, and the agent's own functions.
// Everything changes in any order: names, numbers of device nodes, interfaces, the configuration,
// the kinds of containers; agent, kubelet and node restart. No HCA is given twice, no container
// opens another's HCA in silence, no rail moves, and nothing stays withheld at the end.
//
// RAILHEAD_HISTORIES=20000 runs that many; RAILHEAD_FIRST_HISTORY is the first seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "device-plugin/config/config.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/grant/allocation_record.h"
#include "device-plugin/grant/late_binding.h"
#include "device-plugin/holdings/holdings.h"
#include "device-plugin/offer/next_offer.h"
#include "device-plugin/offer/rail_map.h"
#include "device-plugin/offer/renumbering.h"
#include "device-plugin/offer/scan.h"
#include "fabric/hca_role.h"
#include "fabric/inventory.h"
#include "fabric/pod_rails.h"

namespace railhead::device_plugin {
namespace {

const Machine kMachine = {"node-1", "board-1"};
constexpr char kTwins[] = "0000:0f:00.0";  // a function with two devices

struct Nic {
  int key = 0;
  std::string guid;  // "" if it has none
  std::string pci;
  std::string name;
  std::string netdev;
  std::string physical = "";
  bool present = true;
  int uverbs = -1;          // number of its device node
  std::string seen_netdev;  // what the host sees now
  int bond = -1;            // key of the NIC whose device is now a bond with this one
};

// What a container has of a NIC.
struct Share {
  int nic = 0;
  std::string resource;
  bool exclusive = true;
};

struct Container {
  std::string name;
  bool listed = true;  // by kubelet with its devices: no ordinary init container
  bool runs = true;
  std::map<std::string, std::set<std::string>> ids;           // by resource
  std::map<std::string, std::vector<fabric::PodRail>> rails;  // rails.json of each resource
  std::vector<Share> shares;
};

struct Pod {
  std::vector<Container> containers;
  bool has_cgroup = true;
};

// An allocation that kubelet has stored.
struct Stored {
  int pod = 0;
  std::string container;
  std::string resource;
  std::set<std::string> ids;
};

struct Counts {
  int started = 0;
  int init_only = 0;
  int restarted = 0;
  int refused = 0;
  int told = 0;             // a container could open another NIC, and the agent reported it
  int widened = 0;          // containers that got more HCAs at a restart
  int configured = 0;       // configurations that changed
  int left_to_kubelet = 0;  // free again only at kubelet's next allocation
  int moved = 0;            // cards whose bus has another number
  int virtual_given = 0;
  int bonds = 0;
};

class History {
 public:
  History(unsigned seed, Counts& counts) : random_(seed), counts_(counts) {
    for (int i = 0; i < 4; ++i) {
      AddNic(absl::StrCat("0000:0", i + 1, ":00.0"), absl::StrCat("mlx5_", i),
             absl::StrCat("eth", i));
    }
    AddNic(kTwins, "twin0", "eth8");
    AddNic(kTwins, "twin1", "eth9");
    AddNic("", "siw0", "eth10");
    cdi_ = Any(2) == 0;
    if (Any(3) != 0) GiveGuids();
    if (Any(3) == 0) config_ = RandomConfig();
    Scan();
    SettleKubelet();
    Scan();
  }

  void Step() {
    switch (Any(21)) {
      case 0:
        Rename();
        break;
      case 1:
        for (Nic& nic : nics_) nic.present = nic.present && Any(3) != 0;
        break;
      case 2:
        for (Nic& nic : nics_) nic.present = true;
        break;
      case 3:
        MakeOrRemoveVirtualFunction();
        break;
      case 4:
        MoveInterface();
        break;
      case 5:
        RestartKubelet();
        break;
      case 6:
        if (!pods_.empty()) known_.insert(AnyPod());
        break;
      case 7:
        SettleKubelet();
        break;
      case 8:
        RestartAgent();
        break;
      case 9:
      case 10:
        if (!pods_.empty()) EndPod(AnyPod());
        break;
      case 11:
        Renumber();
        break;
      case 12:
      case 13:
        if (!pods_.empty()) RestartContainer(AnyPod());
        break;
      case 14:
      case 15:
        Configure();
        break;
      case 16:
        if (Any(4) == 0) Reboot();
        for (auto& [number, pod] : pods_) pod.has_cgroup = true;
        break;
      case 17:
        Bond();
        break;
      default:
        StartPod();
    }
    Scan();
  }

  // Everything is there, and no pod is.
  void ComeToRest() {
    for (auto& [number, pod] : pods_) pod.has_cgroup = true;
    Scan();
    while (!pods_.empty()) EndPod(pods_.begin()->first);
    std::erase_if(nics_, [](const Nic& nic) { return !nic.physical.empty(); });
    if (Any(2) == 0) EndBond();
    for (Nic& nic : nics_) nic.present = true;
    SettleKubelet();
    Scan();
    // Kubelet has not allocated anything since, so its checkpoint still has all these pods. Only
    // those that the agent has never seen run, nor listed, are left to kubelet.
    const bool some_unknown =
        std::any_of(stored_.begin(), stored_.end(), [this](const Stored& stored) {
          const auto pod = pods_by_uid_.find(absl::StrCat(stored.pod));
          return pod == pods_by_uid_.end() ||
                 (!pod->second.has_run && pod->second.name.second.empty());
        });
    if (some_unknown) {
      ++counts_.left_to_kubelet;
      stored_.clear();
      Scan();
    }
    const auto there = std::count_if(nics_.begin(), nics_.end(), IsHere);
    EXPECT_EQ(state_.rail_map.hcas.size(), static_cast<size_t>(there));
    for (const IdentityProblem& problem : state_.problems) {
      EXPECT_NE(problem.kind, IdentityProblem::kRailOrder) << problem.message;
    }
    for (size_t i = 0; i < state_.inventory.hcas.size(); ++i) {
      EXPECT_EQ(state_.inventory.hcas[i].rail, static_cast<int>(i));
    }
    EXPECT_TRUE(state_.rail_map.may_be.empty());
    const std::vector<std::vector<size_t>> shares = ShareOut(config_, state_.inventory.hcas);
    for (size_t r = 0; r < shares.size(); ++r) {
      for (const size_t i : shares[r]) {
        const fabric::Hca& hca = state_.inventory.hcas[i];
        const std::vector<Device>& devices =
            state_.devices[OfferedName(config_.resources[r], hca.rail)];
        EXPECT_TRUE(std::any_of(devices.begin(), devices.end(),
                                [&hca](const Device& device) {
                                  return device.hca.id == hca.id ||
                                         std::find(device.all.begin(), device.all.end(), hca) !=
                                             device.all.end();
                                }))
            << hca.id << " is not offered";
      }
    }
    for (const auto& [resource, devices] : state_.devices) {
      for (const Device& device : devices) {
        EXPECT_TRUE(device.hca.health.usable())
            << resource << " " << device.id << ": " << device.hca.health.Text();
      }
    }
  }

 private:
  size_t Any(size_t count) { return random_() % count; }

  int AnyPod() {
    auto pod = pods_.begin();
    std::advance(pod, static_cast<std::ptrdiff_t>(Any(pods_.size())));
    return pod->first;
  }

  void AddNic(const std::string& pci, const std::string& name, const std::string& netdev,
              const std::string& physical = "") {
    Nic nic;
    nic.key = next_key_;
    nic.pci = pci;
    nic.name = name;
    nic.netdev = nic.seen_netdev = netdev;
    nic.physical = physical;
    nic.uverbs = next_key_++;
    nics_.push_back(nic);
  }

  std::string FreeName() {
    while (true) {
      // Few, so that old names come back for other NICs.
      std::string name = absl::StrCat(Any(2) == 0 ? "mlx5_" : "rocep", Any(8));
      if (std::none_of(nics_.begin(), nics_.end(),
                       [&name](const Nic& nic) { return nic.name == name; })) {
        return name;
      }
    }
  }

  void Rename() {
    const size_t count = 1 + Any(nics_.size());
    for (size_t i = 0; i < count; ++i) {
      Nic& nic = nics_[Any(nics_.size())];
      // Where names alone distinguish devices, they do not take each other's.
      nic.name = nic.pci == kTwins ? absl::StrCat("twin", next_name_++)
                 : nic.pci.empty() ? absl::StrCat("siw", next_name_++)
                                   : FreeName();
    }
  }

  static std::string NodeOf(const Nic& nic) {
    return absl::StrCat("/dev/infiniband/uverbs", nic.uverbs);
  }

  // The driver finds the NICs in another order.
  void Renumber() {
    std::vector<int> numbers;
    for (const Nic& nic : nics_) numbers.push_back(nic.uverbs);
    if (Any(2) == 0) {
      std::shuffle(numbers.begin(), numbers.end(), random_);
    } else {
      std::swap(numbers[Any(numbers.size())], numbers[Any(numbers.size())]);
    }
    for (size_t i = 0; i < nics_.size(); ++i) nics_[i].uverbs = numbers[i];
  }

  static bool IsHere(const Nic& nic) { return nic.present && nic.bond < 0; }

  std::string NewGuid() { return absl::StrFormat("%016x", 0x0c42a10300000000U + ++guids_); }

  // Two may have the same.
  void GiveGuids() {
    for (Nic& nic : nics_) {
      if (Any(8) != 0) nic.guid = NewGuid();
    }
    if (Any(6) == 0) nics_[1].guid = nics_[0].guid;
  }

  bool IsKnownByGuid(const Nic& nic) const {
    return !nic.guid.empty() && std::count_if(nics_.begin(), nics_.end(), [&nic](const Nic& other) {
                                  return other.guid == nic.guid;
                                }) == 1;
  }

  void MakeOrRemoveVirtualFunction() {
    const auto virtual_one = std::find_if(nics_.begin(), nics_.end(), [this](const Nic& nic) {
      return !nic.physical.empty() && HolderOf(nic.key) < 0;
    });
    if (virtual_one != nics_.end() && Any(2) == 0) {
      nics_.erase(virtual_one);
      return;
    }
    std::string pci = nics_[Any(4)].pci;
    const std::string physical = pci;
    pci.back() = static_cast<char>('1' + Any(2));
    if (std::any_of(nics_.begin(), nics_.end(), [&](const Nic& nic) { return nic.pci == pci; })) {
      return;
    }
    AddNic(pci, FreeName(), absl::StrCat("ethv", next_key_), physical);
    if (Any(2) == 0) nics_.back().guid = NewGuid();
  }

  // The third and the fourth become one device, by the first's function.
  void Bond() {
    if (nics_[3].bond >= 0) return EndBond();
    nics_[3].bond = nics_[2].key;
    nics_[2].name = absl::StrCat("mlx5_bond_", Any(2));
    had_bond_ = true;
    ++counts_.bonds;
  }

  void EndBond() {
    if (nics_[3].bond < 0) return;
    nics_[3].bond = -1;
    nics_[2].name = FreeName();
  }

  // Whether both use one port.
  bool SharePort(int key, int other) const {
    if (key == other) return true;
    const Nic& a = ByKey(key);
    const Nic& b = ByKey(other);
    const auto is_of = [](const Nic& part, const Nic& nic) {
      return !part.physical.empty() && part.physical == nic.pci;
    };
    return is_of(a, b) || is_of(b, a) || a.bond == other || b.bond == key;
  }

  const Nic& ByKey(int key) const {
    return *std::find_if(nics_.begin(), nics_.end(),
                         [key](const Nic& nic) { return nic.key == key; });
  }

  // The buses have other numbers: each one more, or in another order.
  void MoveCards() {
    std::vector<std::string> addresses;
    const int shift = static_cast<int>(Any(3));
    for (int i = 0; i < 4; ++i) {
      if (!IsKnownByGuid(nics_[static_cast<size_t>(i)])) return;
      addresses.push_back(absl::StrFormat("0000:%02x:00.0", 1 + i + shift));
    }
    if (Any(3) == 0) std::swap(addresses[Any(4)], addresses[Any(4)]);
    // Its virtual functions are made anew.
    std::erase_if(nics_, [](const Nic& nic) { return !nic.physical.empty(); });
    for (size_t i = 0; i < 4; ++i) {
      counts_.moved += nics_[i].pci == addresses[i] ? 0 : 1;
      nics_[i].pci = addresses[i];
    }
    has_moved_ = true;
  }

  int HolderOf(int nic) const {
    for (const auto& [number, pod] : pods_) {
      for (const Container& container : pod.containers) {
        for (const Share& share : container.shares) {
          if (share.nic == nic) return number;
        }
      }
    }
    return -1;
  }

  void MoveInterface() {
    Nic& nic = nics_[Any(nics_.size())];
    if (HolderOf(nic.key) < 0) return;
    const char* const kSeen[] = {"", "net1", nic.netdev.c_str()};
    nic.seen_netdev = kSeen[Any(3)];
  }

  AgentConfig RandomConfig() {
    std::vector<std::string> names = {"rdma/hca", "rdma/fast", "rdma/all"};
    std::shuffle(names.begin(), names.end(), random_);
    names.resize(1 + Any(names.size()));
    AgentConfig config;
    config.resources.clear();
    for (size_t i = 0; i < names.size(); ++i) {
      ResourceConfig resource{.name = names[i]};
      if (i + 1 < names.size() || Any(3) == 0) {
        Selector selector;
        if (Any(4) == 0) {
          selector.names = {Any(2) == 0 ? "mlx5_*" : "rocep*"};
        } else {
          for (size_t n = 1 + Any(5); n > 0; --n) {
            selector.interfaces.push_back(absl::StrCat("eth", Any(11)));
          }
        }
        if (Any(3) == 0) selector = {.roles = {Any(2) == 0 ? "vf" : "bond"}};
        resource.selectors = {selector};
      }
      resource.all_hcas = Any(2) == 0;
      resource.slots = Any(3) == 0 ? 1 + static_cast<int>(Any(3)) : 1;
      resource.per_rail = !resource.all_hcas && Any(5) == 0;
      if (!resource.all_hcas && resource.slots == 1 && Any(5) == 0) {
        resource.device_ids = DeviceIds::kPciAddress;
      }
      config.resources.push_back(resource);
    }
    return config;
  }

  void Configure() {
    config_ = RandomConfig();
    ++counts_.configured;
  }

  void RestartKubelet() {
    known_.clear();
    seen_.clear();
    young_ = true;
  }

  void SettleKubelet() {
    for (const auto& [number, pod] : pods_) known_.insert(number);
    young_ = false;
  }

  void RestartAgent() {
    holdings_ = {};
    std::erase_if(pods_by_uid_, [](const auto& pod) { return !pod.second.has_run; });
    for (auto& [uid, pod] : pods_by_uid_) pod.name = {};
    const bool all_there =
        std::all_of(nics_.begin(), nics_.end(), [](const Nic& nic) { return nic.present; });
    OfferState state;
    // The map may be lost while everything is there to make it anew from.
    const bool twins_apart = pods_.empty();
    if (!all_there || !twins_apart || has_moved_ || Any(4) != 0) {
      state.rail_map = ParseRailMap(ToJson(state_.rail_map, kMachine), kMachine).value();
    } else {
      rails_before_.clear();
    }
    state.devices = state_.devices;  // kubelet knows them until it has a new list
    state_ = std::move(state);
    for (AllocationRecord& record : records_) {
      record = ParseAllocationRecord(ToJson(record)).value();
    }
  }

  void Reboot() {
    for (auto& [number, pod] : pods_) {
      pod.has_cgroup = false;
      for (Container& container : pod.containers) container.runs = false;
    }
    pods_by_uid_.clear();  // of another boot
    const bool holds_virtual = std::any_of(nics_.begin(), nics_.end(), [this](const Nic& nic) {
      return !nic.physical.empty() && HolderOf(nic.key) >= 0;
    });
    if (Any(2) == 0 && !holds_virtual) MoveCards();
    RestartKubelet();
    RestartAgent();
    Renumber();
  }

  Nic* NicOf(const fabric::Hca& hca) {
    const auto nic = std::find_if(nics_.begin(), nics_.end(), [&hca](const Nic& one) {
      return IsHere(one) && one.name == hca.name && one.pci == hca.pci_address;
    });
    return nic == nics_.end() ? nullptr : &*nic;
  }

  // The container gets this HCA.
  void Give(int number, Container& container, const std::string& resource, bool exclusive,
            const fabric::Hca& hca) {
    const Nic* nic = NicOf(hca);
    ASSERT_NE(nic, nullptr) << hca.id << " is healthy, and not there";
    for (const auto& [other, pod] : pods_) {
      if (other == number) continue;
      for (const Container& theirs : pod.containers) {
        for (const Share& share : theirs.shares) {
          if (!SharePort(share.nic, nic->key)) continue;
          // Two virtual functions of a NIC, or two shares, are not meant.
          const bool same = share.nic == nic->key;
          EXPECT_FALSE(!same || exclusive || share.exclusive || share.resource != resource)
              << hca.id << " is given as " << resource << " to pod " << number << ", and pod "
              << other << " has " << (same ? "it" : ByKey(share.nic).name) << " as "
              << share.resource;
        }
      }
    }
    container.shares.push_back({nic->key, resource, exclusive});
    counts_.virtual_given += nic->physical.empty() ? 0 : 1;
    container.rails[resource].push_back(RailOf(*nic, DeviceId(hca)));
  }

  static fabric::PodRail RailOf(const Nic& nic, const std::string& id) {
    fabric::PodRail rail;
    rail.id = id;
    rail.device = nic.name;
    rail.pci_address = nic.pci;
    rail.char_devices = {NodeOf(nic)};
    return rail;
  }

  // Kubelet allocates devices of the resource to a container of the pod. It prefers those that an
  // init container of the pod had.
  void Allocate(int number, Container& container, const std::string& resource, size_t count) {
    std::set<std::string> reusable;
    std::set<std::string> taken;
    for (const Stored& stored : stored_) {
      if (stored.resource != resource) continue;
      (stored.pod == number && stored.container == "init" ? reusable : taken)
          .insert(stored.ids.begin(), stored.ids.end());
    }
    std::vector<const Device*> free;
    for (const Device& device : state_.devices[resource]) {
      if (device.hca.health.usable() && !taken.contains(device.id)) free.push_back(&device);
    }
    std::shuffle(free.begin(), free.end(), random_);
    std::stable_partition(free.begin(), free.end(), [&reusable](const Device* device) {
      return reusable.contains(device->id);
    });
    free.resize(std::min(free.size(), count));
    if (free.empty()) return;
    std::vector<std::string> ids;
    for (const Device* device : free) {
      ids.push_back(device->id);
      const bool exclusive = WithoutSlot(device->id).empty();
      if (device->all.empty()) Give(number, container, resource, exclusive, device->hca);
      for (const fabric::Hca& hca : device->all) {
        Give(number, container, resource, exclusive, hca);
      }
    }
    made_ += absl::ToInt64Nanoseconds(absl::Seconds(1));
    DeviceSnapshot snapshot;
    snapshot.devices = state_.devices[resource];
    AllocationRecord record =
        NewRecord(absl::StrCat("hca-", made_), made_, resource, ids, BindNew(snapshot, ids));
    record.plain = !cdi_;
    records_.push_back(std::move(record));
    container.ids[resource] = {ids.begin(), ids.end()};
    stored_.push_back({number, container.name, resource, container.ids[resource]});
  }

  void StartPod() {
    std::vector<std::string> resources;
    for (const auto& [resource, devices] : state_.devices) resources.push_back(resource);
    if (resources.empty()) return;
    // Kubelet forgets pods that have ended.
    std::erase_if(stored_, [this](const Stored& stored) { return !pods_.contains(stored.pod); });
    const int number = next_pod_++;
    made_ += absl::ToInt64Nanoseconds(absl::Minutes(10));
    static const std::vector<std::vector<std::string>> kKinds = {
        {"main"}, {"main"}, {"init"}, {"init", "main"}, {"sidecar", "main"}};
    const std::vector<std::string>& kind = kKinds[Any(kKinds.size())];
    Pod& pod = pods_[number];
    pod.has_cgroup = Any(5) != 0;
    for (const std::string& name : kind) {
      Container container;
      container.name = name;
      container.listed = name != "init";
      for (size_t n = Any(6) == 0 ? 2 : 1; n > 0; --n) {
        const std::string& resource = resources[Any(resources.size())];
        if (!container.ids.contains(resource)) {
          Allocate(number, container, resource, 1 + Any(2));
        }
      }
      if (!container.ids.empty()) pod.containers.push_back(std::move(container));
    }
    if (pod.containers.empty()) {
      pods_.erase(number);
      return;
    }
    known_.insert(number);
    ++counts_.started;
    if (kind.size() == 1 && kind.front() == "init") ++counts_.init_only;
  }

  void EndPod(int number) {
    for (Nic& nic : nics_) {
      if (HolderOf(nic.key) == number) nic.seen_netdev = nic.netdev;
    }
    pods_.erase(number);
    known_.erase(number);
  }

  std::vector<AllocationRecord*> RecordsOf(const std::string& resource,
                                           const std::set<std::string>& ids) {
    std::vector<AllocationRecord*> found;
    for (AllocationRecord& record : records_) {
      if (record.resource == resource &&
          std::equal(ids.begin(), ids.end(), record.ids.begin(), record.ids.end())) {
        found.push_back(&record);
      }
    }
    return found;
  }

  void RestartContainer(int number) {
    Pod& pod = pods_.at(number);
    Container& container = pod.containers[Any(pod.containers.size())];
    ++counts_.restarted;
    if (cdi_) {
      StartWithCdi(number, container);
      return;
    }
    // Kubelet gives it the device nodes of its admission, if the agent agrees.
    container.runs = true;
    for (const auto& [resource, ids] : container.ids) {
      const Grant grant{absl::StrCat(number),
                        {"", "", container.name, {{resource, {ids.begin(), ids.end()}}}},
                        {},
                        container.rails[resource]};
      if (FindRenumbering(grant, state_.inventory).has_value()) container.runs = false;
    }
    if (!container.runs) ++counts_.refused;
  }

  // It gets the devices of now.
  void StartWithCdi(int number, Container& container) {
    for (const auto& [resource, ids] : container.ids) {
      DeviceSnapshot snapshot;
      snapshot.inventory = state_.inventory;
      snapshot.devices = state_.devices[resource];
      const std::vector<AllocationRecord*> records = RecordsOf(resource, ids);
      if (records.empty()) {
        ADD_FAILURE() << "the record of a container is lost: it can never start again";
        return;
      }
      Binding binding = records.back()->binding;
      if (std::any_of(ids.begin(), ids.end(), IsAllHcas)) {
        const Binding before = binding;
        binding = BindAll(snapshot, {ids.begin(), ids.end()}, binding);
        const bool exclusive = WithoutSlot(*ids.begin()).empty();
        for (const auto& [named, id] : binding) {
          if (before.contains(named)) continue;
          ++counts_.widened;
          const fabric::Hca* hca = snapshot.FindHca(id);
          ASSERT_NE(hca, nullptr);
          Give(number, container, resource, exclusive, *hca);
        }
      }
      std::vector<fabric::PodRail> rails;
      for (const auto& [named, id] : binding) {
        const fabric::Hca* hca = snapshot.FindHca(id);
        const Nic* nic = hca == nullptr ? nullptr : NicOf(*hca);
        if (nic == nullptr) {
          // It waits for its HCA.
          for (AllocationRecord* record : records) record->binding = binding;
          container.runs = false;
          ++counts_.refused;
          return;
        }
        rails.push_back(RailOf(*nic, id));
      }
      container.rails[resource] = rails;
      for (AllocationRecord* record : records) record->binding = binding;
    }
    container.runs = true;
  }

  // No container that runs can open a NIC that is not its own, unless the agent reports it and
  // withholds the NIC.
  void CheckDeviceNodes() {
    for (const auto& [number, pod] : pods_) {
      std::set<int> own;
      for (const Container& container : pod.containers) {
        for (const Share& share : container.shares) own.insert(share.nic);
      }
      for (const Container& container : pod.containers) {
        if (!container.runs || !container.listed) continue;
        for (const Nic& nic : nics_) {
          if (!IsHere(nic) || own.contains(nic.key) || !Opens(container, nic)) continue;
          CheckReported(number, nic);
        }
      }
    }
  }

  static bool Opens(const Container& container, const Nic& nic) {
    return std::any_of(container.rails.begin(), container.rails.end(), [&nic](const auto& file) {
      return std::any_of(
          file.second.begin(), file.second.end(),
          [&nic](const fabric::PodRail& rail) { return rail.char_devices.front() == NodeOf(nic); });
    });
  }

  void CheckReported(int number, const Nic& nic) {
    ++counts_.told;
    const auto hca = std::find_if(
        state_.inventory.hcas.begin(), state_.inventory.hcas.end(),
        [&nic](const fabric::Hca& one) { return one.present && one.name == nic.name; });
    ASSERT_NE(hca, state_.inventory.hcas.end());
    // The rail map reports that a pod may have it.
    if (hca->health.Has(fabric::Stage::kIdentity)) return;
    EXPECT_TRUE(
        std::any_of(state_.renumbered.begin(), state_.renumbered.end(),
                    [&hca](const Renumbering& one) { return one.hcas.contains(DeviceId(*hca)); }))
        << "pod " << number << " can open " << DeviceId(*hca) << ", and that is not reported";
    EXPECT_FALSE(hca->health.usable())
        << DeviceId(*hca) << " is offered, and pod " << number << " can open it";
  }

  Evidence Gather() {
    Evidence evidence;
    evidence.young = young_;
    evidence.own_pod = {"railhead", "agent"};
    evidence.listed.emplace();
    if (!young_ || !known_.empty()) evidence.listed->pods.insert(evidence.own_pod);
    evidence.running = {{"agent-uid"}};
    for (const auto& [number, pod] : pods_) {
      if (pod.has_cgroup) evidence.running->insert(absl::StrCat(number));
    }
    for (const int number : known_) {
      const std::string name = absl::StrCat("pod-", number);
      evidence.listed->pods.insert({"team", name});
      for (const Container& container : pods_.at(number).containers) {
        if (!container.listed) continue;
        ContainerDevices out{"team", name, container.name, {}};
        for (const auto& [resource, ids] : container.ids) {
          out.devices[resource] = {ids.begin(), ids.end()};
        }
        evidence.listed->containers.push_back(std::move(out));
      }
    }
    evidence.checkpoint.emplace();
    for (const Stored& stored : stored_) {
      evidence.checkpoint->push_back({absl::StrCat(stored.pod), stored.resource, stored.ids, "",
                                      stored.container, cdi_ ? "" : "stored"});
    }
    evidence.records = records_;
    evidence.seen = seen_;
    for (const auto& [resource, ids] : HeldByResource(evidence.listed->containers)) {
      seen_[resource].insert(ids.begin(), ids.end());
    }
    return evidence;
  }

  // What the containers were given that may run.
  std::vector<Grant> GrantsNow(const Evidence& evidence) {
    std::vector<Grant> grants;
    for (const auto& [number, pod] : pods_) {
      for (const Container& container : pod.containers) {
        for (const auto& [resource, ids] : container.ids) {
          grants.push_back({absl::StrCat(number),
                            {"", "", container.name, {{resource, {ids.begin(), ids.end()}}}},
                            {},
                            container.rails.at(resource)});
        }
      }
    }
    return LiveGrants(std::move(grants), evidence.listed->containers, holdings_.complete);
  }

  void Scan() {
    Evidence evidence = Gather();
    LearnPods(*evidence.checkpoint, evidence.listed, evidence.running, pods_by_uid_);
    evidence.pods = pods_by_uid_;
    holdings_ = Weigh(holdings_, evidence);
    if (holdings_.complete && Any(4) == 0) CollectRecords(evidence);
    device_plugin::Scan scan;
    for (const Nic& nic : nics_) {
      if (!IsHere(nic)) continue;
      fabric::Hca hca;
      hca.node_guid = nic.guid;
      hca.name = nic.name;
      hca.pci_address = nic.pci;
      hca.netdev = nic.seen_netdev;
      hca.vendor = "15b3";
      hca.ports = {{1, "ACTIVE", "Ethernet", 400, "LinkUp"}};
      hca.address = fabric::AddressKind::kRoutable;
      hca.physical_function = nic.physical;
      if (!nic.physical.empty()) hca.role = fabric::HcaRole::kVirtualFunction;
      if (nic.pci.empty()) hca.role = fabric::HcaRole::kSoftware;
      if (nic.key == nics_[3].bond) {
        hca.role = fabric::HcaRole::kBond;
        hca.netdev = "bond0";
        hca.slaves = {nic.netdev, nics_[3].netdev};
      }
      hca.char_devices = {NodeOf(nic)};
      scan.inventory.hcas.push_back(hca);
    }
    std::shuffle(scan.inventory.hcas.begin(), scan.inventory.hcas.end(), random_);
    now_ += std::chrono::hours(1);
    state_ = NextState(std::move(state_), {config_, scan, holdings_, GrantsNow(evidence), now_});
    CheckDeviceNodes();
    CheckDevices();
    const std::set<std::string> held = HeldHcas(holdings_);
    for (const auto& [number, pod] : pods_) {
      for (const Container& container : pod.containers) {
        for (const auto& [resource, rails] : container.rails) {
          EXPECT_TRUE(std::any_of(rails.begin(), rails.end(),
                                  [&held](const fabric::PodRail& rail) {
                                    return held.contains(rail.id) ||
                                           MayBeAmong(held, rail.device, rail.pci_address);
                                  }))
              << "the rails.json of pod " << number << " is removed";
        }
      }
    }
  }

  void CollectRecords(const Evidence& evidence) {
    Holdings held = holdings_;
    for (const CheckpointEntry& entry :
         EntriesInUse(*evidence.checkpoint, *evidence.listed, evidence.running, pods_by_uid_)) {
      Hold(entry.resource, entry.ids, {}, held);
    }
    AllocationRecords kept;
    for (size_t i = 0; i < records_.size(); ++i) {
      if (!IsGone(records_, i, held.by_resource)) kept.push_back(records_[i]);
    }
    records_ = std::move(kept);
  }

  // Rails do not change while any HCA is held; an HCA keeps its id.
  void CheckRails() {
    std::map<int, std::pair<std::string, int>> rails;
    for (const fabric::Hca& hca : state_.inventory.hcas) {
      const Nic* nic = hca.offered && hca.present ? NicOf(hca) : nullptr;
      // Some are known by their names only.
      if (nic == nullptr || nic->pci == kTwins || nic->pci.empty()) continue;
      rails[nic->key] = {hca.id, hca.rail};
      // The interface of a bond that has ended may be in a pod.
      if (nic->physical.empty() && (!had_bond_ || nic->key != nics_[2].key)) {
        EXPECT_EQ(hca.netdev, nic->netdev) << hca.id;
      }
    }
    for (const auto& [key, now] : rails) {
      const auto before = rails_before_.find(key);
      if (before == rails_before_.end()) continue;
      EXPECT_EQ(now.first, before->second.first) << "its id";
      const bool held = !holdings_.complete || !HeldHcas(holdings_).empty();
      if (held) {
        EXPECT_EQ(now.second, before->second.second) << now.first;
      }
    }
    rails_before_ = rails;
  }

  void CheckDevices() {
    std::map<std::string, std::set<std::string>> ids;
    for (const auto& [resource, devices] : state_.devices) {
      for (const Device& device : devices) {
        EXPECT_TRUE(ids[resource].insert(device.id).second) << resource << " " << device.id;
      }
    }
    std::set<int> rails;
    for (const fabric::Hca& hca : state_.inventory.hcas) {
      if (!hca.offered) continue;
      EXPECT_TRUE(rails.insert(hca.rail).second) << hca.rail;
    }
    CheckRails();
    EXPECT_LE(state_.rail_map.hcas.size(), 20U);
    // Kubelet would give what it holds for a pod once more, if it were no longer listed.
    for (const auto& [number, pod] : pods_) {
      for (const Container& container : pod.containers) {
        for (const auto& [resource, held] : container.ids) {
          for (const std::string& id : held) {
            EXPECT_TRUE(ids[resource].contains(id)) << resource << " " << id << " is lost";
          }
        }
      }
    }
  }

  std::mt19937 random_;
  Counts& counts_;
  bool cdi_ = false;
  AgentConfig config_;
  std::vector<Nic> nics_;  // the first four never go
  std::map<int, Pod> pods_;
  std::set<int> known_;  // pods that kubelet lists
  std::vector<Stored> stored_;
  std::map<std::string, std::set<std::string>> seen_;
  bool young_ = false;
  PodsByUid pods_by_uid_;
  AllocationRecords records_;
  Holdings holdings_;
  OfferState state_;
  TimePoint now_{std::chrono::hours(1)};
  int64_t made_ = 0;
  int next_pod_ = 0;
  int next_key_ = 0;
  int next_name_ = 2;
  unsigned guids_ = 0;
  bool had_bond_ = false;
  bool has_moved_ = false;                                   // a card, to another address
  std::map<int, std::pair<std::string, int>> rails_before_;  // id and rail, by NIC
};

unsigned FromEnvironment(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  unsigned number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) ? number : otherwise;
}

TEST(RandomHistories, NoHcaIsGivenTwiceNorOpenedInSilenceNoRailMovesAndNothingIsLeft) {
  constexpr unsigned kHistories = 400;
  const unsigned first = FromEnvironment("RAILHEAD_FIRST_HISTORY", 0);
  const unsigned count = FromEnvironment("RAILHEAD_HISTORIES", kHistories);
  Counts counts;
  for (unsigned seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    History history(seed, counts);
    for (int i = 0; i < 30; ++i) {
      history.Step();
      if (::testing::Test::HasFailure()) return;
    }
    history.ComeToRest();
    if (::testing::Test::HasFailure()) return;
  }
  if (count != kHistories) {
    std::cout << count << " histories: " << counts.started << " pods, " << counts.init_only
              << " with an init container only; " << counts.restarted << " containers restarted, "
              << counts.refused << " refused, " << counts.widened << " with more HCAs; "
              << counts.told << " device nodes of others reported; " << counts.configured
              << " configurations; " << counts.moved << " cards with other addresses; "
              << counts.virtual_given << " virtual functions given; " << counts.bonds
              << " bonds; left to kubelet " << counts.left_to_kubelet << "\n";
    return;
  }
  EXPECT_GT(counts.started, 500);
  EXPECT_GT(counts.init_only, 100);
  EXPECT_GT(counts.restarted, 300);
  EXPECT_GT(counts.refused, 50);
  EXPECT_GT(counts.told, 100);
  EXPECT_GT(counts.widened, 0);
  EXPECT_GT(counts.configured, 500);
  EXPECT_GT(counts.moved, 50);
  EXPECT_GT(counts.virtual_given, 50);
  EXPECT_GT(counts.bonds, 100);
}

}  // namespace
}  // namespace railhead::device_plugin

// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/files/allocation_store.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/devices/container_devices.h"
#include "device-plugin/devices/device_list.h"
#include "device-plugin/devices/rails_file_name.h"
#include "device-plugin/files/atomic_file.h"
#include "device-plugin/grant/allocation.h"
#include "device-plugin/grant/allocation_record.h"
#include "device-plugin/grant/cdi_spec.h"
#include "device-plugin/grant/late_binding.h"
#include "device-plugin/holdings/gpu_watch.h"
#include "device-plugin/offer/renumbering.h"
#include "fabric/inventory.h"

namespace railhead::device_plugin {
namespace {

constexpr char kRecordPrefix[] = "allocation-";
constexpr char kSpecPrefix[] = "railhead.io-hca_";  // as CDI recommends: vendor-class_name
constexpr char kSuffix[] = ".json";
constexpr char kNamePrefix[] = "hca-";

// Container runtimes detect a changed spec by inotify and need some time to read it.
constexpr std::chrono::milliseconds kRuntimeReads(100);

std::string Hex16(uint64_t number) { return absl::StrCat(absl::Hex(number, absl::kZeroPad16)); }

// "hca-<time>-<random>". Runtimes cache the meaning of a name, so it is never reused, even if the
// clock was wrong.
std::string NewName(int64_t made) {
  std::random_device random;
  const uint64_t chance = (uint64_t{random()} << 32) | random();
  return absl::StrCat(kNamePrefix, Hex16(static_cast<uint64_t>(made)), "-", Hex16(chance));
}

// Returns whether the agent created this file, complete or not, in the specs' directory. Other
// programs may write specs of the same kind there.
bool IsOurSpec(const std::string& path) {
  const auto is_hex = [](absl::string_view text) {
    return text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
  };
  const absl::string_view name = absl::string_view(path).substr(path.rfind('/') + 1);
  const absl::string_view rest = absl::StripPrefix(name, absl::StrCat(kSpecPrefix, kNamePrefix));
  constexpr size_t kHex = 16;
  return rest.size() > 2 * kHex && is_hex(rest.substr(0, kHex)) && rest[kHex] == '-' &&
         is_hex(rest.substr(kHex + 1, kHex)) &&
         absl::StartsWith(rest.substr(2 * kHex + 1), kSuffix);
}

// Returns the container that holds exactly these ids; null if there is none or more than one.
const ContainerDevices* HolderOf(const std::vector<ContainerDevices>& listed,
                                 const std::string& resource, const std::set<std::string>& ids) {
  const ContainerDevices* holder = nullptr;
  for (const ContainerDevices& container : listed) {
    const auto found = container.devices.find(resource);
    if (found == container.devices.end() ||
        std::set<std::string>(found->second.begin(), found->second.end()) != ids) {
      continue;
    }
    if (holder != nullptr) return nullptr;
    holder = &container;
  }
  return holder;
}

// Returns for each HCA the number of containers other than `self` that have it.
std::map<std::string, int64_t> LoadOf(const std::vector<ContainerDevices>& bound,
                                      const std::string& resource, const std::string& self) {
  std::map<std::string, int64_t> load;
  for (const ContainerDevices& container : bound) {
    const auto ids = container.devices.find(resource);
    if (ids == container.devices.end() || KeyOf(container) == self) continue;
    std::set<std::string> hcas;
    for (const std::string& id : ids->second) hcas.insert(WholeHca(id));
    for (const std::string& hca : hcas) ++load[hca];
  }
  return load;
}

// Returns the HCAs that these ids stand for as a group, as the resource has them now; none for ids
// of single HCAs.
std::set<std::string> MembersOf(const DeviceSnapshot& snapshot,
                                const std::vector<std::string>& ids) {
  std::set<std::string> members;
  for (const std::string& id : ids) {
    const Device* device = snapshot.Find(id);
    if (device == nullptr) continue;
    for (const fabric::Hca& hca : device->all) members.insert(DeviceId(hca));
  }
  return members;
}

std::set<std::string> HcasOf(const Binding& binding) {
  std::set<std::string> hcas;
  for (const auto& [named, hca] : binding) hcas.insert(hca);
  return hcas;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AllocationStore>> AllocationStore::Make(Options options,
                                                                       RailsFiles* files) {
  const std::string& dir = options.cdi_dir;
  struct stat info = {};
  if (!dir.empty() && (stat(dir.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
                       access(dir.c_str(), W_OK | X_OK) != 0)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--cdi-dir ", dir,
                     " is not a writable directory; mount the directory where "
                     "the host's container runtime looks for CDI specs there"));
  }
  std::unique_ptr<AllocationStore> store(new AllocationStore(std::move(options), files));
  store->Load();
  return store;
}

void AllocationStore::Load() {
  for (const std::string& path : ListFiles(options_.folder, kRecordPrefix, kSuffix)) {
    absl::StatusOr<AllocationRecord> record = ParseAllocationRecord(ReadFile(path).value_or(""));
    if (record.ok() && RecordPath(record->name) == path) {
      records_.push_back(*std::move(record));
    } else {
      spdlog::warn("{} is not a record of an allocation; ignoring it", path);
    }
  }
  std::sort(records_.begin(), records_.end(),
            [](const AllocationRecord& a, const AllocationRecord& b) { return a.made < b.made; });
}

std::string AllocationStore::RecordPath(const std::string& name) const {
  return absl::StrCat(options_.folder, "/", kRecordPrefix, name, kSuffix);
}

std::string AllocationStore::SpecPath(const std::string& name) const {
  return absl::StrCat(options_.cdi_dir, "/", kSpecPrefix, name, kSuffix);
}

std::vector<std::string> AllocationStore::OurFiles() const {
  std::vector<std::string> paths;
  if (enabled()) paths = ListFiles(options_.cdi_dir, kSpecPrefix, kSuffix);
  paths.erase(std::remove_if(paths.begin(), paths.end(), std::not_fn(IsOurSpec)), paths.end());
  for (std::string& path : ListFiles(options_.folder, kRecordPrefix, kSuffix)) {
    paths.push_back(std::move(path));
  }
  return paths;
}

// The record first: a spec without a record would never be removed.
absl::StatusOr<bool> AllocationStore::Write(const AllocationRecord& record,
                                            const Allocation& allocation) {
  const absl::StatusOr<std::string> rails = files_.Store(allocation.rails);
  if (!rails.ok()) return rails.status();
  if (absl::Status status = WriteFile(RecordPath(record.name), ToJson(record)); !status.ok()) {
    return status;
  }
  const std::string path = SpecPath(record.name);
  const std::string spec = ToCdiSpec(record.name, allocation, *rails);
  if (ReadFile(path) == spec) return false;
  if (absl::Status status = WriteFile(path, spec); !status.ok()) return status;
  return true;
}

absl::StatusOr<std::string> AllocationStore::Add(const DeviceSnapshot& snapshot,
                                                 const std::string& resource,
                                                 const std::vector<std::string>& ids) {
  const absl::StatusOr<Allocation> allocation = PlanAllocation(snapshot, options_.node, ids);
  if (!allocation.ok()) return allocation.status();
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t after = records_.empty() ? 0 : records_.back().made + 1;
  const int64_t made = std::max(absl::ToUnixNanos(absl::Now()), after);
  AllocationRecord record = NewRecord(NewName(made), made, resource, ids, MembersOf(snapshot, ids));
  if (const absl::StatusOr<bool> written = Write(record, *allocation); !written.ok()) {
    RemoveFile(RecordPath(record.name)).IgnoreError();
    return written.status();
  }
  records_.push_back(std::move(record));
  return absl::StrCat(kCdiKind, "=", records_.back().name);
}

std::vector<AllocationRecord*> AllocationStore::RecordsOf(const std::string& resource,
                                                          const std::set<std::string>& ids) {
  std::vector<AllocationRecord*> found;
  for (AllocationRecord& record : records_) {
    if (record.resource == resource &&
        std::set<std::string>(record.ids.begin(), record.ids.end()) == ids) {
      found.push_back(&record);
    }
  }
  return found;
}

std::vector<AllocationRecord*> AllocationStore::BesidesOf(const ContainerDevices& holder,
                                                          const std::string& resource) {
  std::vector<AllocationRecord*> besides;
  for (const auto& [other, ids] : holder.devices) {
    if (other == resource) continue;
    const std::vector<AllocationRecord*> records = RecordsOf(other, {ids.begin(), ids.end()});
    besides.insert(besides.end(), records.begin(), records.end());
  }
  return besides;
}

Binding AllocationStore::BindingOf(const AllocationRecord& record, const DeviceSnapshot& snapshot,
                                   const KubeletView& kubelet,
                                   const ContainerDevices* holder) const {
  if (std::any_of(record.ids.begin(), record.ids.end(), IsAllHcas)) {
    Binding members;
    for (const std::string& hca : MembersOf(snapshot, record.ids)) members[hca] = hca;
    return members.empty() ? record.binding : members;
  }
  const bool shared = std::none_of(record.ids.begin(), record.ids.end(),
                                   [](const std::string& id) { return WithoutSlot(id).empty(); });
  if (!shared) return record.binding;
  BindingWish wish{record.binding, record.settled, {}, {}};
  if (holder != nullptr) wish.gpus = GpusOf(*holder, snapshot.inventory.gpus, kubelet.gpu_uuids);
  if (kubelet.listed.has_value()) {
    wish.load = LoadOf(device_plugin::AsBound(records_, *kubelet.listed), record.resource,
                       holder == nullptr ? "" : KeyOf(*holder));
  }
  return Bind(snapshot, wish);
}

absl::Status AllocationStore::Prepare(const DeviceSnapshot& snapshot, const std::string& resource,
                                      const std::vector<std::string>& ids,
                                      const KubeletView& kubelet) {
  const std::set<std::string> wanted(ids.begin(), ids.end());
  const ContainerDevices* holder =
      kubelet.listed.has_value() ? HolderOf(*kubelet.listed, resource, wanted) : nullptr;
  const std::string told = absl::StrCat(resource, " ", absl::StrJoin(wanted, ", "));
  bool rewritten = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (kubelet.listed.has_value()) TakeList(*kubelet.listed, kubelet.asked_at);
    // An init container and a later container may have the same ids, and either may start now.
    const std::vector<AllocationRecord*> ours = RecordsOf(resource, wanted);
    if (ours.empty() && holder != nullptr) {
      spdlog::warn(
          "{} of {} were allocated before --cdi-dir was set, or their record is lost: "
          "its container starts with the devices that kubelet has stored",
          told, KeyOf(*holder));
      return absl::OkStatus();
    }
    if (ours.empty()) {
      return absl::NotFoundError(
          absl::StrCat("PreStartContainer: ", wanted.empty() ? "no devices" : told,
                       " were never allocated together to one container"));
    }
    AllocationRecord next = *ours.back();
    next.binding = BindingOf(next, snapshot, kubelet, holder);
    next.settled = next.settled || holder != nullptr;
    std::vector<AllocationRecord*> besides;
    if (holder != nullptr) {
      besides = BesidesOf(*holder, resource);
      next.others.clear();
      for (const AllocationRecord* other : besides) next.others.merge(HcasOf(other->binding));
    }
    std::set<std::string> all = HcasOf(next.binding);
    all.insert(next.others.begin(), next.others.end());
    const absl::StatusOr<Allocation> allocation = PlanForHcas(snapshot, options_.node, all);
    if (!allocation.ok()) {
      return absl::Status(
          allocation.status().code(),
          absl::StrCat("PreStartContainer: ", told, ": ", allocation.status().message()));
    }
    if (next.binding != ours.back()->binding) {
      spdlog::info("{} of {} are bound to {}", told,
                   holder == nullptr ? "a container" : KeyOf(*holder),
                   absl::StrJoin(HcasOf(next.binding), ", "));
    }
    for (AllocationRecord* record : ours) {
      next.name = record->name;
      next.made = record->made;
      *record = next;
      const absl::StatusOr<bool> written = Write(*record, *allocation);
      if (!written.ok()) return written.status();
      rewritten = rewritten || *written;
    }
    for (AllocationRecord* other : besides) {
      other->others = all;
      for (const std::string& own : HcasOf(other->binding)) other->others.erase(own);
      const absl::StatusOr<bool> written = Write(*other, *allocation);
      if (!written.ok()) return written.status();
      rewritten = rewritten || *written;
    }
  }
  if (rewritten) std::this_thread::sleep_for(kRuntimeReads);
  return absl::OkStatus();
}

AllocationRecords AllocationStore::records() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return records_;
}

std::vector<Grant> AllocationStore::Grants() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Grant> grants;
  if (!enabled()) return grants;
  for (const AllocationRecord& record : records_) {
    const std::string rails = RailsFileIn(ReadFile(SpecPath(record.name)).value_or(""));
    if (rails.empty()) continue;
    grants.push_back({"", {"", "", "", {{record.resource, record.ids}}}, {rails}, {}});
  }
  return grants;
}

void AllocationStore::Look(const std::vector<ContainerDevices>& listed, absl::Time asked_at) {
  const std::lock_guard<std::mutex> lock(mutex_);
  TakeList(listed, asked_at);
}

void AllocationStore::TakeList(const std::vector<ContainerDevices>& listed, absl::Time asked_at) {
  // The agent's check and the start of a container may request lists at the same time.
  if (asked_at < listed_asked_at_) return;
  listed_ = listed;
  listed_asked_at_ = asked_at;
}

std::vector<ContainerDevices> AllocationStore::AsBound(std::vector<ContainerDevices> listed) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return device_plugin::AsBound(records_, std::move(listed));
}

std::map<std::string, std::string> AllocationStore::BoundElsewhere(
    const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (listed_.has_value()) {
    return device_plugin::BoundElsewhere(records_, *listed_, resource);
  }
  std::vector<ContainerDevices> all;
  for (const AllocationRecord& record : records_) {
    all.push_back({"", "", "", {{record.resource, record.ids}}});
  }
  return device_plugin::BoundElsewhere(records_, all, resource);
}

bool AllocationStore::HasFilesUntil(absl::Time limit) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return AnyNotYoungerThan(OurFiles(), limit);
}

absl::Status AllocationStore::Collect(const std::map<std::string, std::set<std::string>>& held,
                                      absl::Time limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<std::string> keep;
  AllocationRecords kept;
  for (size_t i = 0; i < records_.size(); ++i) {
    const std::string path = RecordPath(records_[i].name);
    const bool old = NotYoungerThan(path, limit) || access(path.c_str(), F_OK) != 0;
    if (old && IsGone(records_, i, held)) continue;
    keep.insert({path, SpecPath(records_[i].name)});
    kept.push_back(records_[i]);
  }
  records_ = std::move(kept);
  absl::Status status;
  for (const std::string& path : OurFiles()) {
    if (!keep.contains(path) && NotYoungerThan(path, limit)) status.Update(RemoveFile(path));
  }
  return status;
}

}  // namespace railhead::device_plugin

// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/late_rdma_rail.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/background.h"
#include "runtime/base/now.h"

namespace railhead::comm {
namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(1);
constexpr absl::Duration kLongestPauseBetweenOpenings = absl::Minutes(1);

// Memory that the device shall know once it is open.
struct LateMemory {
  absl::Span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  Logger log;
  std::shared_ptr<const void> known;  // by the device
};

// Shared with the thread that opens the device.
struct LateDevice {
  OpenRdmaRail open;
  fabric::PodRail rail;
  Logger log;

  std::mutex mutex;
  std::unique_ptr<RdmaRail> device;  // stays once it is there
  absl::Status why;
  bool opening = false;
  absl::Duration pause = kFirstPause;
  absl::Time next = MonotonicNow() + kFirstPause;
  std::vector<std::weak_ptr<LateMemory>> memory;

  RdmaRail* Get() {
    const std::lock_guard<std::mutex> lock(mutex);
    return device.get();
  }

  void Try() {
    absl::StatusOr<std::unique_ptr<RdmaRail>> opened = open(rail);
    if (opened.ok()) log.Info((*opened)->Describe());
    while (true) {
      std::vector<std::weak_ptr<LateMemory>> waiting;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (opened.ok()) waiting = std::exchange(memory, {});
        if (waiting.empty()) {
          why = opened.status();
          if (opened.ok()) device = *std::move(opened);
          opening = false;
          return;
        }
      }
      // Takes long for much memory; the rank's threads do not wait for it.
      for (const std::weak_ptr<LateMemory>& each : waiting) {
        const std::shared_ptr<LateMemory> its = each.lock();
        if (its != nullptr) its->known = (*opened)->Know(its->bytes, its->owner, its->log);
      }
    }
  }
};

class LateRdmaRail final : public RdmaRail {
 public:
  explicit LateRdmaRail(std::shared_ptr<LateDevice> late) : late_(std::move(late)) {}

  std::string Describe() const override {
    const RdmaRail* const device = late_->Get();
    return device != nullptr ? device->Describe()
                             : absl::StrCat("rail ", late_->rail.rail, ": ", late_->rail.device,
                                            ", which is not open");
  }
  preflight::PortFacts Facts() const override {
    const RdmaRail* const device = late_->Get();
    return device != nullptr ? device->Facts() : preflight::PortFacts();
  }
  absl::Status CanPin(size_t links) const override {
    const RdmaRail* const device = late_->Get();
    return device != nullptr ? device->CanPin(links) : absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<transport::Link>> Open(
      std::shared_ptr<transport::Acceptor> acceptor, transport::Locator peer_acceptor,
      absl::string_view peer) override {
    if (RdmaRail* const device = late_->Get(); device != nullptr) {
      return device->Open(std::move(acceptor), std::move(peer_acceptor), peer);
    }
    const std::lock_guard<std::mutex> lock(late_->mutex);
    const absl::Time now = MonotonicNow();
    if (!late_->opening && now >= late_->next) {
      late_->pause = std::min(2 * late_->pause, kLongestPauseBetweenOpenings);
      late_->next = now + late_->pause;
      late_->opening = TryRunInBackground(now, [late = late_] { late->Try(); }).ok();
    }
    return late_->why.ok() ? absl::UnavailableError("its device has just been opened") : late_->why;
  }

  std::shared_ptr<const void> Know(absl::Span<const std::byte> memory,
                                   std::shared_ptr<const void> owner, const Logger& log) override {
    std::unique_lock<std::mutex> lock(late_->mutex);
    if (late_->device == nullptr) {
      auto later = std::make_shared<LateMemory>(LateMemory{memory, std::move(owner), log, nullptr});
      std::erase_if(late_->memory, [](const auto& each) { return each.expired(); });
      late_->memory.push_back(later);
      return later;
    }
    lock.unlock();
    return late_->device->Know(memory, std::move(owner), log);
  }
  transport::verbs::KnownGpu KnowGpu(absl::Span<const std::byte> memory, const device::Memory& gpu,
                                     const Logger& log) override {
    if (RdmaRail* const device = late_->Get(); device != nullptr) {
      return device->KnowGpu(memory, gpu, log);
    }
    return {nullptr, fabric::GpuDirectWay::kNone,
            absl::StrCat("rail ", late_->rail.rail, " (", late_->rail.device,
                         ") could not be opened when the memory was registered; register it again "
                         "when the rail is up")};
  }
  bool AccessesItself() const override {
    const RdmaRail* const device = late_->Get();
    return device != nullptr && device->AccessesItself();
  }
  bool TakesDmaBufs() const override {
    const RdmaRail* const device = late_->Get();
    return device != nullptr && device->TakesDmaBufs();
  }
  absl::StatusOr<std::unique_ptr<transport::SharedMemory>> Share(absl::Span<std::byte> memory,
                                                                 const device::DmaBuf* buffer,
                                                                 bool on_device,
                                                                 const Logger& log) override {
    if (RdmaRail* const device = late_->Get(); device != nullptr) {
      return device->Share(memory, buffer, on_device, log);
    }
    return absl::UnavailableError(
        absl::StrCat("rail ", late_->rail.rail, " (", late_->rail.device, ") is not open"));
  }

 private:
  const std::shared_ptr<LateDevice> late_;
};

}  // namespace

std::unique_ptr<RdmaRail> MakeLateRdmaRail(OpenRdmaRail open, const fabric::PodRail& rail,
                                           const absl::Status& why, const Logger& log) {
  auto late = std::make_shared<LateDevice>();
  late->open = std::move(open);
  late->rail = rail;
  late->log = log;
  late->why = why;
  return std::make_unique<LateRdmaRail>(std::move(late));
}

}  // namespace railhead::comm

// SPDX-License-Identifier: Apache-2.0
//
// The fabric as tests and the connection manager see it: its time, faults, and what has
// happened.
#include "runtime/transport/verbs/fake_verbs.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/net/address.h"
#include "runtime/transport/verbs/fake_cm.h"
#include "runtime/transport/verbs/fake_fabric.h"

namespace railhead::transport::verbs {

FakeVerbs::FakeVerbs(std::vector<FakeDevice> devices) : fabric_(std::make_unique<Fabric>()) {
  for (FakeDevice& device : devices) {
    auto nic = std::make_unique<Fabric::Nic>();
    nic->config = std::move(device);
    nic->verbs.transport_type = nic->config.transport;
    std::strncpy(nic->verbs.name, nic->config.name.c_str(), sizeof(nic->verbs.name) - 1);
    fabric_->nics.push_back(std::move(nic));
  }
  cm_ = std::make_shared<FakeCm>(*this);
}

FakeVerbs::~FakeVerbs() = default;

absl::Time FakeVerbs::Now() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->now;
}

void FakeVerbs::AdvanceTime(absl::Duration by) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->now += by;
  if (!fabric_->random.has_value()) fabric_->Move();
}

void FakeVerbs::MoveAtRandom(uint32_t seed) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->random.emplace(seed);
}

void FakeVerbs::SetPortState(const std::string& device, ibv_port_state state) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = fabric_->NicNamed(device);
  if (std::exchange(nic.config.state, state) == state) return;
  ibv_async_event event = {};
  event.element.port_num = 1;
  event.event_type = state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
  for (const auto& context : fabric_->contexts) {
    if (context->nic != &nic) continue;
    context->held.push_back(event);
    if (!nic.hold_completions) context->TellEvents();
  }
}

void FakeVerbs::FailNextSend(const std::string& device, ibv_wc_status status) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->NicNamed(device).fail_next = status;
}

void FakeVerbs::LosePath(const std::string& device, size_t pair, bool lost) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const auto& [number, one] : fabric_->pairs) {
    if (Fabric::IsOfSelf(*one)) continue;
    if (one->nic->config.name == device && pair-- == 0) one->path_lost = lost;
  }
}

void FakeVerbs::HoldCompletions(const std::string& device, bool hold_them) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = fabric_->NicNamed(device);
  nic.hold_completions = hold_them;
  for (const auto& context : fabric_->contexts) {
    if (context->nic == &nic && !hold_them) context->TellEvents();
  }
}

void FakeVerbs::RefuseDmaBufs(int error) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->dma_buf_error = error;
}

void FakeVerbs::CorruptNextSend(const std::string& device, size_t offset, uint8_t value) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->NicNamed(device).corrupt_next = {offset, value};
}

void FakeVerbs::ReplaceNextImmediate(const std::string& device, uint32_t immediate) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->NicNamed(device).immediate_next = immediate;
}

std::vector<std::string> FakeVerbs::violations() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->violations;
}

std::vector<FakeRegion> FakeVerbs::regions(const std::string& device) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  std::vector<FakeRegion> found;
  for (const auto& [key, region] : fabric_->regions) {
    if (Fabric::Of(region->verbs.context).nic->config.name != device) continue;
    found.push_back({region->start, region->verbs.length, region->access, region->bytes_sent,
                     region->dma_buf.valid()});
  }
  return found;
}

std::vector<ibv_qp_attr> FakeVerbs::pairs(const std::string& device) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  std::vector<ibv_qp_attr> found;
  for (const auto& [number, pair] : fabric_->pairs) {
    if (pair->nic->config.name == device) found.push_back(pair->attributes);
  }
  return found;
}

size_t FakeVerbs::undelivered(const std::string& device) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  size_t count = 0;
  for (const auto& [number, pair] : fabric_->pairs) {
    if (pair->nic->config.name == device) count += pair->sends.size();
  }
  return count;
}

uint64_t FakeVerbs::receiver_not_ready() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->receiver_not_ready;
}
uint64_t FakeVerbs::messages() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->messages;
}
uint64_t FakeVerbs::probes() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->probes;
}
uint64_t FakeVerbs::stray_writes() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->stray_writes;
}

uint64_t FakeVerbs::inline_sends() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->inline_sends;
}
uint64_t FakeVerbs::gathered_sends() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->gathered_sends;
}
uint64_t FakeVerbs::signaled_sends() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->signaled_sends;
}
uint64_t FakeVerbs::sends() const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->sends;
}

size_t FakeVerbs::open_objects() const {
  // Asked first: it takes its own lock, and under that this one's.
  const size_t of_connections = cm_->open_objects();
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return of_connections + fabric_->contexts.size() + fabric_->domains.size() +
         fabric_->regions.size() + fabric_->channels.size() + fabric_->queues.size() +
         fabric_->pairs.size();
}

std::optional<std::string> FakeVerbs::DeviceOf(const net::IpAddress& ip) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const std::unique_ptr<Fabric::Nic>& nic : fabric_->nics) {
    for (const net::IpAddress& address : nic->config.addresses) {
      if (address == ip) return nic->config.name;
    }
  }
  return std::nullopt;
}

std::vector<net::IpAddress> FakeVerbs::AddressesOf(const net::MacAddress& mac) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const std::unique_ptr<Fabric::Nic>& nic : fabric_->nics) {
    for (const ibv_gid_entry& entry : nic->config.gids) {
      if (std::equal(mac.begin(), mac.end(), entry.gid.raw)) return nic->config.addresses;
    }
  }
  return {};
}

bool FakeVerbs::Reaches(const std::string& device, const std::string& other) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return Fabric::Reaches(fabric_->NicNamed(device), fabric_->NicNamed(other));
}

bool FakeVerbs::JoinPairs(uint32_t caller, uint32_t called, bool overlook) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const uint32_t number : {caller, called}) {
    const auto found = fabric_->pairs.find(number);
    if (found == fabric_->pairs.end() || found->second->attributes.qp_state != IBV_QPS_INIT) {
      return false;
    }
  }
  for (const uint32_t number : {caller, called}) {
    Fabric::Pair& pair = *fabric_->pairs.at(number);
    pair.attributes.qp_state = IBV_QPS_RTS;
    pair.attributes.dest_qp_num = number == caller ? called : caller;
    pair.attributes.path_mtu = IBV_MTU_1024;
    pair.may_speak = number == caller;
    pair.overlooked = number == caller && (overlook || (fabric_->random && fabric_->Chance()));
  }
  return true;
}

bool FakeVerbs::PairIsBroken(uint32_t pair) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const auto found = fabric_->pairs.find(pair);
  return found == fabric_->pairs.end() || found->second->attributes.qp_state != IBV_QPS_RTS;
}

void FakeVerbs::BreakPair(uint32_t pair) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const auto found = fabric_->pairs.find(pair);
  if (found != fabric_->pairs.end() && found->second->attributes.qp_state == IBV_QPS_RTS) {
    fabric_->Fail(*found->second);
  }
}

bool FakeVerbs::Chance() {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  return fabric_->Chance();
}

void FakeVerbs::AddViolation(const std::string& what) {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  fabric_->violations.push_back(what);
}

FakeVerbs::Fabric::Nic& FakeVerbs::Fabric::NicNamed(const std::string& name) {
  for (const std::unique_ptr<Nic>& nic : nics) {
    if (nic->config.name == name) return *nic;
  }
  violations.push_back("the test names a device that is not there: " + name);
  return *nics.front();
}

int FakeVerbs::Fabric::Refuse(const std::string& why, int error) {
  violations.push_back(why);
  return error;
}

}  // namespace railhead::transport::verbs

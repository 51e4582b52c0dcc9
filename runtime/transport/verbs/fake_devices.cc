// SPDX-License-Identifier: Apache-2.0
//
// Devices and ports of fake NICs: their list, their tables of GIDs and P_Keys, and their events.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/net/address.h"
#include "runtime/transport/verbs/fake_fabric.h"

namespace railhead::transport::verbs {

ibv_gid_entry FakeGid(uint32_t index, const std::string& address, uint32_t type, uint32_t port) {
  ibv_gid_entry entry = {};
  entry.gid_index = index;
  entry.port_num = port;
  entry.gid_type = type;
  in_addr v4 = {};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    entry.gid.raw[10] = entry.gid.raw[11] = 0xff;
    std::memcpy(entry.gid.raw + 12, &v4, sizeof(v4));
  } else {
    inet_pton(AF_INET6, address.c_str(), entry.gid.raw);
  }
  return entry;
}

ibv_gid_entry FakeMacGid(const net::MacAddress& mac) {
  ibv_gid_entry entry = {};
  entry.port_num = 1;
  std::copy(mac.begin(), mac.end(), entry.gid.raw);
  return entry;
}

void FakeVerbs::Fabric::Context::TellEvents() {
  for (; !held.empty(); held.pop_front()) {
    events.push_back(held.front());
    const uint64_t one = 1;
    static_cast<void>(!write(verbs.async_fd, &one, sizeof(one)));
  }
}

ibv_device** FakeVerbs::GetDeviceList(int* count) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  auto** const list = new ibv_device*[fabric_->nics.size() + 1];
  for (size_t i = 0; i < fabric_->nics.size(); ++i) list[i] = &fabric_->nics[i]->verbs;
  list[fabric_->nics.size()] = nullptr;
  *count = static_cast<int>(fabric_->nics.size());
  return list;
}

void FakeVerbs::FreeDeviceList(ibv_device** list) const { delete[] list; }

const char* FakeVerbs::GetDeviceName(ibv_device* device) const { return device->name; }

ibv_context* FakeVerbs::OpenDevice(ibv_device* device) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  Fabric::Nic& nic = fabric_->NicNamed(device->name);
  if (nic.config.open_error != 0) {
    errno = nic.config.open_error;
    return nullptr;
  }
  auto context = std::make_unique<Fabric::Context>();
  context->fabric = fabric_.get();
  context->nic = &nic;
  context->verbs.device = device;
  context->verbs.async_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  context->verbs.ops.post_send = Fabric::PostSend;
  context->verbs.ops.post_recv = Fabric::PostReceive;
  context->verbs.ops.poll_cq = Fabric::PollCq;
  context->verbs.ops.req_notify_cq = Fabric::RequestNotify;
  fabric_->contexts.push_back(std::move(context));
  return &fabric_->contexts.back()->verbs;
}

int FakeVerbs::CloseDevice(ibv_context* context) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  for (const std::unique_ptr<ibv_pd>& domain : fabric_->domains) {
    if (domain->context == context) return fabric_->Refuse("a device closed while in use", EBUSY);
  }
  if (fabric_->events_to_acknowledge != 0) {
    return fabric_->Refuse("a device closed with unacknowledged events", EBUSY);
  }
  close(context->async_fd);
  Fabric::Erase(fabric_->contexts, context);
  return 0;
}

int FakeVerbs::GetAsyncEvent(ibv_context* context, ibv_async_event* event) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  uint64_t one = 0;
  if (read(context->async_fd, &one, sizeof(one)) != sizeof(one)) return -1;
  std::deque<ibv_async_event>& events = Fabric::Of(context).events;
  *event = events.front();
  events.pop_front();
  ++fabric_->events_to_acknowledge;
  return 0;
}

void FakeVerbs::AckAsyncEvent(ibv_async_event* /*event*/) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  --fabric_->events_to_acknowledge;
}

int FakeVerbs::QueryDevice(ibv_context*, ibv_device_attr* attributes) const {
  *attributes = {};
  attributes->phys_port_cnt = 2;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  return 0;
}

int FakeVerbs::QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  if (port != 1 && port != 2) return EINVAL;
  const FakeDevice& config = Fabric::Of(context).nic->config;
  *attributes = {};
  attributes->state = config.state;
  attributes->active_mtu = config.mtu;
  attributes->max_mtu = IBV_MTU_4096;
  attributes->lid = config.lid;
  attributes->gid_tbl_len = 256;
  attributes->pkey_tbl_len = static_cast<uint16_t>(config.pkeys.size());
  attributes->link_layer = config.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return 0;
}

int FakeVerbs::QueryPkey(ibv_context* context, uint8_t port, int index, uint16_t& pkey) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const std::vector<uint16_t>& pkeys = Fabric::Of(context).nic->config.pkeys;
  const auto place = static_cast<size_t>(index);
  if ((port != 1 && port != 2) || place >= pkeys.size()) return EINVAL;
  pkey = pkeys[place];
  return 0;
}

ssize_t FakeVerbs::QueryGidTable(ibv_context* context, absl::Span<ibv_gid_entry> entries) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const std::vector<ibv_gid_entry>& gids = Fabric::Of(context).nic->config.gids;
  if (gids.size() > entries.size()) return -EINVAL;
  std::copy(gids.begin(), gids.end(), entries.begin());
  return static_cast<ssize_t>(gids.size());
}

std::string FakeVerbs::GidInterface(ibv_context* context, uint8_t /*port*/, uint32_t index) const {
  const std::lock_guard<std::mutex> hold(fabric_->lock);
  const std::map<uint32_t, std::string>& interfaces = Fabric::Of(context).nic->config.interfaces;
  const auto found = interfaces.find(index);
  return found == interfaces.end() ? "" : found->second;
}

}  // namespace railhead::transport::verbs

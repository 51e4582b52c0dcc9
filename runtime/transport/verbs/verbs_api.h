// SPDX-License-Identifier: Apache-2.0
//
// Table of the libibverbs functions that this transport uses, filled at run time.
//
// librailhead is injected into images that may lack libibverbs, so nothing links against it:
// LoadVerbsApi opens the library when a rail needs it. Tests put fake NICs behind the table
// (fake_verbs.h).
//
// Verbs of the data path (ibv_post_send, ibv_post_recv, ibv_poll_cq, ibv_req_notify_cq) are not
// included: <infiniband/verbs.h> defines them as inline calls through the context's table, which
// needs no symbol of the library, and which a fake context fills, too.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_API_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_API_H_

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/net/address.h"
#include "runtime/transport/verbs/cm_api.h"

namespace railhead::transport::verbs {

// Each function behaves as the libibverbs function of the same name: on failure, pointers are null
// and errno is set; an int result is 0 or an errno value, unless stated otherwise. Thread-safe.
class VerbsApi {
 public:
  virtual ~VerbsApi() = default;

  virtual ibv_device** GetDeviceList(int* count) const = 0;
  virtual void FreeDeviceList(ibv_device** list) const = 0;
  virtual const char* GetDeviceName(ibv_device* device) const = 0;
  virtual ibv_context* OpenDevice(ibv_device* device) const = 0;
  virtual int CloseDevice(ibv_context* context) const = 0;
  virtual int QueryDevice(ibv_context* context, ibv_device_attr* attributes) const = 0;
  virtual int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attributes) const = 0;
  // Returns net::OwnAddresses(): the addresses whose GIDs belong to this network namespace.
  virtual std::vector<net::IpAddress> OwnAddresses() const = 0;
  // Returns the name of the interface of a GID, as its network namespace calls it; "" if unknown.
  virtual std::string GidInterface(ibv_context* context, uint8_t port, uint32_t index) const = 0;
  // In the byte order of this machine.
  virtual int QueryPkey(ibv_context* context, uint8_t port, int index, uint16_t& pkey) const = 0;
  // Fills `entries` with the valid entries of all ports; returns their number, or a negative errno
  // value.
  virtual ssize_t QueryGidTable(ibv_context* context, absl::Span<ibv_gid_entry> entries) const = 0;

  // Like the functions of these names: 0, or -1 with errno set.
  virtual int GetAsyncEvent(ibv_context* context, ibv_async_event* event) const = 0;
  virtual void AckAsyncEvent(ibv_async_event* event) const = 0;

  virtual ibv_pd* AllocPd(ibv_context* context) const = 0;
  virtual int DeallocPd(ibv_pd* domain) const = 0;
  // Adds IBV_ACCESS_RELAXED_ORDERING, which kernels and devices that lack it ignore.
  //
  // It allows the NIC's memory accesses to overtake each other, which some machines need for full
  // speed. The guarantees used here remain: a completion never precedes its data, including that of
  // earlier messages, and a slot is read only after its message's completion. A slot is not written
  // twice without a completion in between: its next frame needs a credit, given after the slot was
  // read.
  virtual ibv_mr* RegMr(ibv_pd* domain, void* address, size_t length, int access) const = 0;
  // Registers a dma-buf from `offset`; its first byte is `address` for the NIC. EOPNOTSUPP if the
  // library is older than rdma-core 34, or the driver does not support it. The descriptor may be
  // closed afterwards.
  virtual ibv_mr* RegDmabufMr(ibv_pd* domain, uint64_t offset, size_t length, uint64_t address,
                              int fd, int access) const = 0;
  virtual int DeregMr(ibv_mr* region) const = 0;

  virtual ibv_comp_channel* CreateCompChannel(ibv_context* context) const = 0;
  virtual int DestroyCompChannel(ibv_comp_channel* channel) const = 0;
  virtual ibv_cq* CreateCq(ibv_context* context, int entries, ibv_comp_channel* channel) const = 0;
  virtual int DestroyCq(ibv_cq* queue) const = 0;
  // Returns 0, or -1 with errno set.
  virtual int GetCqEvent(ibv_comp_channel* channel, ibv_cq** queue, void** cookie) const = 0;
  virtual void AckCqEvents(ibv_cq* queue, unsigned count) const = 0;

  virtual ibv_qp* CreateQp(ibv_pd* domain, ibv_qp_init_attr* attributes) const = 0;
  virtual int ModifyQp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) const = 0;
  virtual int DestroyQp(ibv_qp* pair) const = 0;

  virtual const char* WcStatusText(ibv_wc_status status) const = 0;

  // Returns the connection manager, which iWARP devices need; errors of LoadCmApi.
  virtual absl::StatusOr<std::shared_ptr<const CmApi>> ConnectionManager() const = 0;
};

// Opens libibverbs.so.1 and resolves the table. The library stays loaded for the life of the
// process, because its device drivers cannot be unloaded safely.
//
// Errors: NotFound if the library is not installed, FailedPrecondition if it is older than
// rdma-core 33 and lacks a function.
absl::StatusOr<std::shared_ptr<const VerbsApi>> LoadVerbsApi();

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_API_H_

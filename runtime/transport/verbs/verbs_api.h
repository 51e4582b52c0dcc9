// SPDX-License-Identifier: Apache-2.0
//
// The functions of libibverbs that this transport uses, as a table that is filled at run time.
//
// librailhead is injected into other people's images, which may have no libibverbs, so nothing here
// links against it: LoadVerbsApi opens the library when a rail asks for it. Tests put a NIC of
// their own behind the same table (fake_verbs.h).
//
// The verbs of the data path (ibv_post_send, ibv_post_recv, ibv_poll_cq, ibv_req_notify_cq) are not
// here: <infiniband/verbs.h> defines them as inline calls through the context's own table, which
// needs no symbol of the library, and which a fake context fills as well.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_API_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_API_H_

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/net/address.h"
#include "runtime/transport/verbs/cm_api.h"

namespace railhead::transport::verbs {

// Each function behaves as the libibverbs function of the same name: pointers are null and errno is
// set on failure; an int result is 0 or an errno value, unless said otherwise. Every function may
// be called from any thread.
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
  // In the byte order of this machine.
  // What net::OwnAddresses says: whose GIDs are this network namespace's.
  virtual std::vector<net::IpAddress> OwnAddresses() const = 0;
  virtual int QueryPkey(ibv_context* context, uint8_t port, int index, uint16_t& pkey) const = 0;
  // Fills `entries` with the valid entries of all ports; returns how many, or a negative errno
  // value.
  virtual ssize_t QueryGidTable(ibv_context* context, absl::Span<ibv_gid_entry> entries) const = 0;

  // Both as the functions of their names: 0, or -1 with errno set.
  virtual int GetAsyncEvent(ibv_context* context, ibv_async_event* event) const = 0;
  virtual void AckAsyncEvent(ibv_async_event* event) const = 0;

  virtual ibv_pd* AllocPd(ibv_context* context) const = 0;
  virtual int DeallocPd(ibv_pd* domain) const = 0;
  // With IBV_ACCESS_RELAXED_ORDERING, too, which has no effect where kernel or device do not know
  // it.
  //
  // It allows the NIC's reads and writes to overtake each other on their way to the memory, which
  // some machines need for full speed. It takes nothing away that this transport relies on: a
  // completion never comes before the data that it announces, that of earlier messages included,
  // and a slot is read only after its message's completion. Nor is a slot written twice without a
  // completion between: its next frame needs a credit, which is given when it has been read.
  virtual ibv_mr* RegMr(ibv_pd* domain, void* address, size_t length, int access) const = 0;
  // The same of a dma-buf, from `offset` on, whose first byte the NIC is to know as `address`.
  // EOPNOTSUPP where the library is older than rdma-core 34, or the device's driver cannot. The
  // descriptor may be closed afterwards.
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

  // The connection manager, which devices that are iWARP need; LoadCmApi's errors.
  virtual absl::StatusOr<std::shared_ptr<const CmApi>> ConnectionManager() const = 0;
};

// Opens libibverbs.so.1 and resolves the table. The library stays loaded for the life of the
// process, because its device drivers cannot be unloaded safely.
//
// Errors: NotFound when the library is not installed, FailedPrecondition when it is older than
// rdma-core 33 and lacks a function.
absl::StatusOr<std::shared_ptr<const VerbsApi>> LoadVerbsApi();

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_VERBS_API_H_

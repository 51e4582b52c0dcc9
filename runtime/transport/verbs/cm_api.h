// SPDX-License-Identifier: Apache-2.0
//
// The functions of librdmacm that connect queue pairs over iWARP, as a table that is filled at run
// time, like that of libibverbs (verbs_api.h): only a rail that is iWARP needs the library.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_API_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_API_H_

#include <rdma/rdma_cma.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/net/address.h"

namespace railhead::transport::verbs {

// Each function behaves as the rdma_* function of the same name: it returns 0, or -1 with errno
// set, and pointers are null on failure. Every function may be called from any thread.
//
// What may take long: Connect waits until TCP has connected or given up (siw), and DestroyId until
// the peer has answered an attempt to connect that is under way, or its driver gives up.
class CmApi {
 public:
  virtual ~CmApi() = default;

  virtual rdma_event_channel* CreateEventChannel() const = 0;
  virtual void DestroyEventChannel(rdma_event_channel* channel) const = 0;
  virtual int GetEvent(rdma_event_channel* channel, rdma_cm_event** event) const = 0;
  virtual int AckEvent(rdma_cm_event* event) const = 0;

  // Ids are of the port space of reliable connections (RDMA_PS_TCP).
  virtual int CreateId(rdma_event_channel* channel, rdma_cm_id** id) const = 0;
  virtual int DestroyId(rdma_cm_id* id) const = 0;
  virtual int BindAddr(rdma_cm_id* id, sockaddr* address) const = 0;
  virtual int Listen(rdma_cm_id* id, int backlog) const = 0;
  virtual int ResolveAddr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int timeout_ms) const = 0;
  virtual int ResolveRoute(rdma_cm_id* id, int timeout_ms) const = 0;
  virtual int Connect(rdma_cm_id* id, rdma_conn_param* parameters) const = 0;
  virtual int Accept(rdma_cm_id* id, rdma_conn_param* parameters) const = 0;
  virtual int Reject(rdma_cm_id* id) const = 0;

  // What net::AddressesOfMac says: where the connection manager can be bound.
  virtual std::vector<net::IpAddress> AddressesOfMac(const net::MacAddress& mac) const = 0;
};

// Opens librdmacm.so.1 and resolves the table. The library stays loaded for the life of the
// process, because it keeps devices open.
//
// Errors: NotFound when the library is not installed, FailedPrecondition when it lacks a function.
absl::StatusOr<std::shared_ptr<const CmApi>> LoadCmApi();

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_API_H_

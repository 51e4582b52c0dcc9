// SPDX-License-Identifier: Apache-2.0
//
// Table of the librdmacm functions that connect iWARP queue pairs, filled at run time like that of
// libibverbs (verbs_api.h): only iWARP rails need the library.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_API_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_API_H_

#include <rdma/rdma_cma.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/net/address.h"

namespace railhead::transport::verbs {

// Each function behaves as the rdma_* function of the same name: it returns 0, or -1 with errno
// set; pointers are null on failure. Thread-safe.
//
// Two calls may block for long: Connect until TCP has connected or timed out (siw), and DestroyId
// until the peer has answered a connection attempt, or the driver's timeout passes.
class CmApi {
 public:
  virtual ~CmApi() = default;

  virtual rdma_event_channel* CreateEventChannel() const = 0;
  virtual void DestroyEventChannel(rdma_event_channel* channel) const = 0;
  virtual int GetEvent(rdma_event_channel* channel, rdma_cm_event** event) const = 0;
  virtual int AckEvent(rdma_cm_event* event) const = 0;

  // Ids have the port space of reliable connections (RDMA_PS_TCP).
  virtual int CreateId(rdma_event_channel* channel, rdma_cm_id** id) const = 0;
  virtual int DestroyId(rdma_cm_id* id) const = 0;
  virtual int BindAddr(rdma_cm_id* id, sockaddr* address) const = 0;
  virtual int Listen(rdma_cm_id* id, int backlog) const = 0;
  virtual int ResolveAddr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int timeout_ms) const = 0;
  virtual int ResolveRoute(rdma_cm_id* id, int timeout_ms) const = 0;
  virtual int Connect(rdma_cm_id* id, rdma_conn_param* parameters) const = 0;
  virtual int Accept(rdma_cm_id* id, rdma_conn_param* parameters) const = 0;
  virtual int Reject(rdma_cm_id* id) const = 0;

  // Returns the addresses the connection manager can bind, as net::AddressesOfMac.
  virtual std::vector<net::IpAddress> AddressesOfMac(const net::MacAddress& mac) const = 0;
};

// Opens librdmacm.so.1 and resolves the table. The library stays loaded for the life of the
// process, because it keeps devices open.
//
// Errors: NotFound if the library is not installed, FailedPrecondition if it lacks a function.
absl::StatusOr<std::shared_ptr<const CmApi>> LoadCmApi();

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_API_H_

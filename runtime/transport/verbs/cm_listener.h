// SPDX-License-Identifier: Apache-2.0
//
// Start of an iWARP connection: ids and events of the connection manager, and the port on which a
// side listens until it is known which side dials.
#ifndef RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_LISTENER_H_
#define RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_LISTENER_H_

#include <rdma/rdma_cma.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/transport/verbs/address.h"
#include "runtime/transport/verbs/device_port.h"
#include "runtime/transport/verbs/queue_pair.h"

namespace railhead::transport::verbs {

using CmId = Owned<rdma_cm_id>;

struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
  const rdma_cm_id* id = nullptr;  // the event's id
  CmId caller;                     // of a connection request: the caller, owned by the receiver
  int status = 0;                  // 0, or a negative errno value
  std::string data;                // private data of a connection request
};

// Events of one connection's ids. Must outlive the ids. Use from one thread at a time.
class CmEvents {
 public:
  static absl::StatusOr<std::shared_ptr<CmEvents>> Open(std::shared_ptr<const DevicePort> port);

  const std::shared_ptr<const DevicePort>& port() const { return port_; }
  // Readable when Next returns an event.
  int fd() const { return channel_->fd; }
  std::optional<CmEvent> Next();
  absl::StatusOr<CmId> NewId() const;
  // Returns the status of a failed connection manager call (errno).
  absl::Status Error(absl::string_view what, int error) const;

 private:
  explicit CmEvents(std::shared_ptr<const DevicePort> port) : port_(std::move(port)) {}
  CmId Own(rdma_cm_id* id) const;

  const std::shared_ptr<const DevicePort> port_;
  Owned<rdma_event_channel> channel_;
};

// Resources of a handshake, from either side's first call.
struct CmHandshake {
  std::shared_ptr<CmEvents> events;
  std::shared_ptr<QueuePair> pair;
  CmId id;  // destroyed first: it uses the others
};

// Ends an incomplete handshake on a separate thread: destroying its id may wait for the peer.
void EndAside(std::shared_ptr<CmHandshake> handshake);

// Returns the parameters to dial or accept; `data` must outlive the result.
rdma_conn_param CmParameters(const DevicePort& port, uint32_t qp_number, absl::string_view data);

// Returns the name of an event type, for messages.
absl::string_view CmEventName(rdma_cm_event_type type);

struct CmListener {
  std::shared_ptr<CmEvents> events;
  CmId id;
  CmAddress address;  // listening address and required token

  // Listens on a free port at the device's address `ip`. Callers wait until their events are read.
  static absl::StatusOr<CmListener> Open(std::shared_ptr<const DevicePort> port,
                                         const net::IpAddress& ip);
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_LISTENER_H_

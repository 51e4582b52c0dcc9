// SPDX-License-Identifier: Apache-2.0
//
// The beginnings of a connection over iWARP: ids and events of the connection manager, and the port
// where a side listens, from its offer on until it is known which side dials.
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
  const rdma_cm_id* id = nullptr;  // whose it is
  CmId caller;                     // of a connection request: who calls, ours from now on
  int status = 0;                  // 0, or a negative errno value
  std::string data;                // that came with a connection request
};

// Where the events of one connection's ids arrive. Outlives the ids. Used by one thread at a time.
class CmEvents {
 public:
  static absl::StatusOr<std::shared_ptr<CmEvents>> Open(std::shared_ptr<const DevicePort> port);

  const std::shared_ptr<const DevicePort>& port() const { return port_; }
  // Readable when Next has one.
  int fd() const { return channel_->fd; }
  std::optional<CmEvent> Next();
  absl::StatusOr<CmId> NewId() const;
  // The status of a call of the connection manager that has just failed (errno).
  absl::Status Error(absl::string_view what, int error) const;

 private:
  explicit CmEvents(std::shared_ptr<const DevicePort> port) : port_(std::move(port)) {}
  CmId Own(rdma_cm_id* id) const;

  const std::shared_ptr<const DevicePort> port_;
  Owned<rdma_event_channel> channel_;
};

// What a handshake uses, from the call of one side or of the other on.
struct CmHandshake {
  std::shared_ptr<CmEvents> events;
  std::shared_ptr<QueuePair> pair;
  CmId id;  // goes first: it uses the others
};

// Ends one that is not over, on a thread of its own: destroying its id may wait for the peer.
void EndAside(std::shared_ptr<CmHandshake> handshake);

// What the connection manager must know to dial or to accept; `data` outlives the result.
rdma_conn_param CmParameters(const DevicePort& port, uint32_t qp_number, absl::string_view data);

// The name of a kind of event, for messages.
absl::string_view CmEventName(rdma_cm_event_type type);

struct CmListener {
  std::shared_ptr<CmEvents> events;
  CmId id;
  CmAddress address;  // where it listens, and what callers must say

  // Listens at a port of its own at the device's address `ip`. Callers wait until their events are
  // looked at.
  static absl::StatusOr<CmListener> Open(std::shared_ptr<const DevicePort> port,
                                         const net::IpAddress& ip);
};

}  // namespace railhead::transport::verbs

#endif  // RAILHEAD_RUNTIME_TRANSPORT_VERBS_CM_LISTENER_H_

// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/cm_listener.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/base/thread.h"

namespace railhead::transport::verbs {
namespace {

// Only one peer connects, but maybe several times; others are rejected.
constexpr int kBacklog = 8;

// The connection manager chooses a port without asking TCP, which may have given it away.
constexpr int kPortsToTry = 8;

uint16_t PortOf(const sockaddr_storage& address) {
  sockaddr_in v4;
  sockaddr_in6 v6;
  std::memcpy(&v4, &address, sizeof(v4));
  std::memcpy(&v6, &address, sizeof(v6));
  return ntohs(address.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
}

}  // namespace

absl::StatusOr<std::shared_ptr<CmEvents>> CmEvents::Open(std::shared_ptr<const DevicePort> port) {
  std::shared_ptr<CmEvents> events(new CmEvents(std::move(port)));
  const CmApi* const api = events->port_->cm();
  errno = 0;
  rdma_event_channel* const channel = api->CreateEventChannel();
  if (channel == nullptr) {
    const int error = errno;
    const absl::Status status = events->Error("open the connection manager", error);
    return absl::Status(
        status.code(),
        absl::StrCat(status.message(),
                     "; iWARP needs /dev/infiniband/rdma_cm in the container (the device plugin "
                     "adds it if the node has it: load rdma_ucm there)"));
  }
  events->channel_ = Owned<rdma_event_channel>(
      channel, [api](rdma_event_channel* c) { api->DestroyEventChannel(c); });
  absl::Status made = MakeNonBlocking(events->port_->name(), channel->fd);
  if (!made.ok()) return made;
  return events;
}

absl::Status CmEvents::Error(absl::string_view what, int error) const {
  return VerbsError(port_->name(), what, error);
}

CmId CmEvents::Own(rdma_cm_id* id) const {
  return CmId(id,
              [api = port_->cm()](rdma_cm_id* owned) { static_cast<void>(api->DestroyId(owned)); });
}

absl::StatusOr<CmId> CmEvents::NewId() const {
  rdma_cm_id* id = nullptr;
  if (port_->cm()->CreateId(channel_.get(), &id) != 0) {
    return Error("create an id of the connection manager", errno);
  }
  return Own(id);
}

std::optional<CmEvent> CmEvents::Next() {
  rdma_cm_event* raw = nullptr;
  if (port_->cm()->GetEvent(channel_.get(), &raw) != 0) return std::nullopt;
  CmEvent event;
  event.type = raw->event;
  event.status = raw->status;
  event.id = raw->id;
  if (raw->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    event.id = raw->listen_id;
    event.caller = Own(raw->id);
    if (raw->param.conn.private_data != nullptr) {
      event.data.assign(static_cast<const char*>(raw->param.conn.private_data),
                        raw->param.conn.private_data_len);
    }
  }
  // At once: an id that has events to be acknowledged cannot be destroyed.
  static_cast<void>(port_->cm()->AckEvent(raw));
  return event;
}

void EndAside(std::shared_ptr<CmHandshake> handshake) {
  const auto held = std::make_shared<std::shared_ptr<CmHandshake>>(std::move(handshake));
  absl::StatusOr<std::thread> helper = TryStartThread([held] { held->reset(); });
  // Without a thread it ends here, which may take its time.
  if (helper.ok()) helper->detach();
}

rdma_conn_param CmParameters(const DevicePort& port, uint32_t qp_number, absl::string_view data) {
  rdma_conn_param parameters = {};
  parameters.private_data = data.data();
  parameters.private_data_len = static_cast<uint8_t>(data.size());
  parameters.qp_num = qp_number;
  parameters.initiator_depth = port.reads();
  parameters.responder_resources = port.reads();
  return parameters;
}

absl::string_view CmEventName(rdma_cm_event_type type) {
  switch (type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return "the peer's address cannot be resolved";
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return "there is no route to the peer";
    case RDMA_CM_EVENT_UNREACHABLE:
      return "the peer does not answer";
    case RDMA_CM_EVENT_REJECTED:
      return "the peer rejected the connection";
    case RDMA_CM_EVENT_DISCONNECTED:
      return "the peer has closed the connection";
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return "this side's device was removed";
    default:
      return "the connection failed";
  }
}

absl::StatusOr<CmListener> CmListener::Open(std::shared_ptr<const DevicePort> port,
                                            const net::IpAddress& ip) {
  const CmApi& api = *port->cm();
  absl::StatusOr<std::shared_ptr<CmEvents>> events = CmEvents::Open(std::move(port));
  if (!events.ok()) return events.status();
  const absl::StatusOr<std::string> token = RandomBytes(sizeof(CmToken));
  if (!token.ok()) return token.status();

  sockaddr_storage address = {};
  ip.ToSockaddr(0, &address);
  const std::string where = absl::StrCat("listen for iWARP connections at ", ip.ToString());
  absl::Status failure;
  for (int i = 0; i < kPortsToTry; ++i) {
    absl::StatusOr<CmId> id = (*events)->NewId();
    if (!id.ok()) return id.status();
    if (api.BindAddr(id->get(), reinterpret_cast<sockaddr*>(&address)) != 0 ||
        api.Listen(id->get(), kBacklog) != 0) {
      const int error = errno;
      failure = (*events)->Error(where, error);
      if (error == EADDRINUSE) continue;
      return failure;
    }
    CmListener listener;
    listener.address = {ip, PortOf((*id)->route.addr.src_storage), {}};
    std::copy(token->begin(), token->end(), listener.address.token.begin());
    listener.events = *std::move(events);
    listener.id = *std::move(id);
    return listener;
  }
  return failure;
}

}  // namespace railhead::transport::verbs

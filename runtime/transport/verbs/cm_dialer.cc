// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/cm_dialer.h"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/condition.h"
#include "runtime/base/thread.h"

namespace railhead::transport::verbs {
namespace {

// The offers have crossed another network a moment ago, so addresses are resolved quickly or not
// at all.
constexpr int kResolveMilliseconds = 1000;
// Nearly every call ends within a round trip. The first check waits that long, so that connecting
// takes no extra turn.
constexpr absl::Duration kUsualCall = absl::Milliseconds(1);

}  // namespace

// Result of the dialing thread; outlives a dialer that is destroyed before it ends.
struct CmDialer::Call {
  std::mutex mutex;
  Condition returned;
  std::optional<int> error;  // 0, or errno, once it is over

  // Runs on that thread. Releases all that it owns before it reports the end.
  void Make(std::shared_ptr<CmHandshake> handshake, const CmToken& token) {
    const DevicePort& port = *handshake->events->port();
    rdma_conn_param parameters =
        CmParameters(port, handshake->pair->number(),
                     absl::string_view(reinterpret_cast<const char*>(token.data()), token.size()));
    const int result = port.cm()->Connect(handshake->id.get(), &parameters) == 0 ? 0 : errno;
    handshake.reset();
    const std::lock_guard<std::mutex> lock(mutex);
    error = result;
    returned.NotifyAll();
  }

  // Returns the result, or nullopt if there is none within that time.
  std::optional<int> Result(absl::Duration patience) {
    std::unique_lock<std::mutex> lock(mutex);
    returned.WaitFor(lock, patience, [this] { return error.has_value(); });
    return error;
  }
};

CmDialer::CmDialer(std::shared_ptr<CmEvents> events, const net::IpAddress& from,
                   const CmAddress& peer)
    : events_(std::move(events)), from_(from), peer_(peer) {}

CmDialer::~CmDialer() {
  if (stage_ == Stage::kDialing) EndAside(std::move(handshake_));
}

absl::Status CmDialer::Begin(std::shared_ptr<QueuePair> pair) {
  absl::StatusOr<CmId> id = events_->NewId();
  if (!id.ok()) return id.status();
  handshake_ = std::make_shared<CmHandshake>();
  handshake_->events = events_;
  handshake_->pair = std::move(pair);
  handshake_->id = *std::move(id);
  sockaddr_storage from = {};
  sockaddr_storage to = {};
  from_.ToSockaddr(0, &from);
  peer_.ip.ToSockaddr(peer_.port, &to);
  if (events_->port()->cm()->ResolveAddr(handshake_->id.get(), reinterpret_cast<sockaddr*>(&from),
                                         reinterpret_cast<sockaddr*>(&to),
                                         kResolveMilliseconds) != 0) {
    return absl::UnavailableError(events_->Error("resolve the peer's address", errno).message());
  }
  return absl::OkStatus();
}

absl::Status CmDialer::On(const CmEvent& event) {
  if (stage_ == Stage::kAddress && event.type == RDMA_CM_EVENT_ADDR_RESOLVED) {
    if (events_->port()->cm()->ResolveRoute(handshake_->id.get(), kResolveMilliseconds) != 0) {
      return absl::UnavailableError(
          events_->Error("resolve the route to the peer", errno).message());
    }
    stage_ = Stage::kRoute;
    return absl::OkStatus();
  }
  if (stage_ == Stage::kRoute && event.type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
    stage_ = Stage::kDialing;
    call_ = std::make_shared<Call>();
    absl::StatusOr<std::thread> helper =
        TryStartThread([call = call_, handshake = handshake_, token = peer_.token]() mutable {
          call->Make(std::move(handshake), token);
        });
    if (!helper.ok()) {
      stage_ = Stage::kRoute;  // nothing is under way
      return helper.status();
    }
    helper->detach();
    return absl::OkStatus();
  }
  if (stage_ == Stage::kDialing && event.type == RDMA_CM_EVENT_ESTABLISHED) {
    established_ = true;
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat(CmEventName(event.type),
                   event.status < 0 ? absl::StrCat(" (", std::strerror(-event.status), ")") : ""));
}

absl::StatusOr<bool> CmDialer::Advance() {
  bool news = false;
  while (std::optional<CmEvent> event = events_->Next()) {
    // Events of the listener, which is gone, are ignored.
    if (event->id != handshake_->id.get()) continue;
    news = true;
    if (absl::Status status = On(*event); !status.ok()) return status;
  }
  if (stage_ == Stage::kDialing) {
    const std::optional<int> error = call_->Result(news ? kUsualCall : absl::ZeroDuration());
    if (error.value_or(0) != 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot connect to ", net::HostPort(peer_.ip, peer_.port), ": ", std::strerror(*error)));
    }
    if (error.has_value() && established_) stage_ = Stage::kUp;
  }
  return stage_ == Stage::kUp;
}

}  // namespace railhead::transport::verbs

// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/verbs/fake_cm.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "runtime/transport/verbs/fake_verbs.h"

namespace railhead::transport::verbs {
namespace {

constexpr absl::Duration kAnswerPatience = absl::Seconds(10);
// Of a real one there is no end to it.
constexpr std::chrono::seconds kAcknowledgePatience(20);
constexpr uint16_t kFirstPort = 20000;

int Fails(int error) {
  errno = error;
  return -1;
}

}  // namespace

struct FakeCm::Manager {
  enum class Stage { kIdle, kBound, kListening, kResolved, kRouted, kDialing, kCalled, kUp, kOver };

  struct Id;
  struct Channel;
  struct Event {
    rdma_cm_event verbs = {};  // first: its address leads back
    std::string data;
    Id* of = nullptr;
    Channel* channel = nullptr;
  };
  struct Channel {
    rdma_event_channel verbs = {};
    std::deque<std::unique_ptr<Event>> events;
    std::vector<std::unique_ptr<Event>> given;  // and not acknowledged
  };
  struct Id {
    rdma_cm_id verbs = {};
    Channel* channel = nullptr;
    Stage stage = Stage::kIdle;
    std::string device;
    net::IpAddress ip;
    uint16_t port = 0;
    net::IpAddress peer_ip;
    uint16_t peer_port = 0;
    Id* other = nullptr;     // of a call: who called, who is called
    Id* listener = nullptr;  // of a call that is to be answered
    uint32_t pair = 0;
    absl::Time since;
  };

  explicit Manager(FakeVerbs& fake) : verbs(fake) {}

  FakeVerbs& verbs;
  mutable std::mutex lock;
  std::condition_variable let_go;
  std::condition_variable acknowledged;
  bool hold = false;
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<std::unique_ptr<Id>> ids;
  uint16_t next_port = kFirstPort;
  bool overlook = false;
  uint64_t refused = 0;
  uint64_t connections = 0;

  static Id& Of(rdma_cm_id* id) { return *reinterpret_cast<Id*>(id); }
  static Channel& Of(rdma_event_channel* channel) { return *reinterpret_cast<Channel*>(channel); }

  Id& New(Channel& channel) {
    Id& id = *ids.emplace_back(std::make_unique<Id>());
    id.channel = &channel;
    id.verbs.channel = &channel.verbs;
    id.verbs.ps = RDMA_PS_TCP;
    return id;
  }

  void Tell(Id& id, rdma_cm_event_type type, int status = 0) {
    auto event = std::make_unique<Event>();
    event->verbs.id = &id.verbs;
    event->verbs.event = type;
    event->verbs.status = status;
    event->of = &id;
    Queue(*id.channel, std::move(event));
  }

  void Queue(Channel& channel, std::unique_ptr<Event> event) {
    event->channel = &channel;
    channel.events.push_back(std::move(event));
    const uint64_t one = 1;
    if (write(channel.verbs.fd, &one, sizeof(one)) != sizeof(one)) {
      verbs.AddViolation("cannot write an event of the connection manager");
    }
  }

  // A call to `listener`, from `from` or from nobody who is in this process.
  void Call(Id& listener, Id* from, const std::string& data) {
    Id& call = New(*listener.channel);
    call.device = listener.device;
    call.ip = listener.ip;
    call.port = listener.port;
    call.stage = Stage::kCalled;
    call.other = from;
    call.listener = &listener;
    if (from != nullptr) from->other = &call;
    auto event = std::make_unique<Event>();
    event->verbs.id = &call.verbs;
    event->verbs.listen_id = &listener.verbs;
    event->verbs.event = RDMA_CM_EVENT_CONNECT_REQUEST;
    event->data = data;
    event->verbs.param.conn.private_data = event->data.data();
    event->verbs.param.conn.private_data_len = static_cast<uint8_t>(event->data.size());
    event->of = &call;
    Queue(*listener.channel, std::move(event));
  }

  // What time and the other end have done to the ids of a channel.
  void LookAfter(Channel& channel) {
    for (const std::unique_ptr<Id>& id : ids) {
      if (id->channel != &channel) continue;
      if (id->stage == Stage::kDialing && verbs.Now() - id->since > kAnswerPatience) {
        id->stage = Stage::kOver;
        Tell(*id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
      } else if (id->stage == Stage::kUp && verbs.PairIsBroken(id->pair)) {
        id->stage = Stage::kOver;
        Tell(*id, RDMA_CM_EVENT_DISCONNECTED);
      }
    }
  }

  void Refuse(Id& call) {
    if (call.other != nullptr && call.other->stage == Stage::kDialing) {
      call.other->stage = Stage::kOver;
      Tell(*call.other, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
    }
    call.stage = Stage::kOver;
  }

  bool HasGiven(const Id& id) const {
    return std::any_of(id.channel->given.begin(), id.channel->given.end(),
                       [&](const std::unique_ptr<Event>& event) { return event->of == &id; });
  }

  void Remove(Id& id) {
    // Who called and was not heard of yet, is refused.
    std::vector<Id*> unheard;
    auto& events = id.channel->events;
    for (auto event = events.begin(); event != events.end();) {
      const bool mine = (*event)->of == &id;
      const bool call =
          (*event)->verbs.event == RDMA_CM_EVENT_CONNECT_REQUEST && (*event)->of->listener == &id;
      if (call) unheard.push_back((*event)->of);
      if (mine || call) {
        uint64_t one = 0;
        if (read(id.channel->verbs.fd, &one, sizeof(one)) != sizeof(one)) {
          verbs.AddViolation("cannot take back an event of the connection manager");
        }
        event = events.erase(event);
      } else {
        ++event;
      }
    }
    for (Id* call : unheard) Remove(*call);
    if (id.stage == Stage::kCalled) Refuse(id);
    if (id.stage == Stage::kUp) verbs.BreakPair(id.pair);
    for (const std::unique_ptr<Id>& one : ids) {
      if (one->other == &id) one->other = nullptr;
      if (one->listener == &id) one->listener = nullptr;
    }
    ids.erase(std::find_if(ids.begin(), ids.end(),
                           [&](const std::unique_ptr<Id>& one) { return one.get() == &id; }));
  }
};

FakeCm::FakeCm(FakeVerbs& verbs) : manager_(std::make_unique<Manager>(verbs)) {}
FakeCm::~FakeCm() = default;

void FakeCm::HoldConnects(bool hold) {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  manager_->hold = hold;
  manager_->let_go.notify_all();
}

void FakeCm::CallAsStranger(const std::string& device, const std::string& data) {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  for (size_t i = 0; i < manager_->ids.size(); ++i) {
    Manager::Id& id = *manager_->ids[i];
    if (id.stage == Manager::Stage::kListening && id.device == device) {
      manager_->Call(id, nullptr, data);
    }
  }
}

void FakeCm::OverlookFirstMessages() {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  manager_->overlook = true;
}

uint64_t FakeCm::strangers_refused() const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  return manager_->refused;
}

uint64_t FakeCm::connections() const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  return manager_->connections;
}

size_t FakeCm::open_objects() const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  return manager_->channels.size() + manager_->ids.size();
}

rdma_event_channel* FakeCm::CreateEventChannel() const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  Manager::Channel& channel =
      *manager_->channels.emplace_back(std::make_unique<Manager::Channel>());
  channel.verbs.fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  return &channel.verbs;
}

void FakeCm::DestroyEventChannel(rdma_event_channel* channel) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  for (const auto& id : manager_->ids) {
    if (id->verbs.channel == channel) {
      manager_->verbs.AddViolation("an event channel destroyed while in use");
      return;
    }
  }
  close(channel->fd);
  auto& all = manager_->channels;
  all.erase(std::find_if(all.begin(), all.end(),
                         [&](const auto& one) { return &one->verbs == channel; }));
}

int FakeCm::GetEvent(rdma_event_channel* channel, rdma_cm_event** event) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  Manager::Channel& of = Manager::Of(channel);
  manager_->LookAfter(of);
  if (of.events.empty() || !manager_->verbs.Chance()) return Fails(EAGAIN);
  uint64_t one = 0;
  if (read(channel->fd, &one, sizeof(one)) != sizeof(one)) return -1;
  of.given.push_back(std::move(of.events.front()));
  of.events.pop_front();
  *event = &of.given.back()->verbs;
  return 0;
}

int FakeCm::AckEvent(rdma_cm_event* event) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  auto& given = reinterpret_cast<Manager::Event*>(event)->channel->given;
  given.erase(std::find_if(given.begin(), given.end(),
                           [&](const auto& one) { return &one->verbs == event; }));
  manager_->acknowledged.notify_all();
  return 0;
}

int FakeCm::CreateId(rdma_event_channel* channel, rdma_cm_id** id) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  *id = &manager_->New(Manager::Of(channel)).verbs;
  return 0;
}

int FakeCm::DestroyId(rdma_cm_id* id) const {
  std::unique_lock<std::mutex> lock(manager_->lock);
  Manager::Id& of = Manager::Of(id);
  if (!manager_->acknowledged.wait_for(lock, kAcknowledgePatience,
                                       [&] { return !manager_->HasGiven(of); })) {
    manager_->verbs.AddViolation("an id destroyed with an event unacknowledged");
  }
  manager_->Remove(of);
  return 0;
}

int FakeCm::BindAddr(rdma_cm_id* id, sockaddr* address) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  Manager::Id& of = Manager::Of(id);
  of.ip = *net::IpAddress::FromSockaddr(address);
  const std::optional<std::string> device = manager_->verbs.DeviceOf(of.ip);
  if (!device.has_value()) return Fails(ENODEV);
  of.device = *device;
  of.port = manager_->next_port++;
  of.ip.ToSockaddr(of.port, &id->route.addr.src_storage);
  of.stage = Manager::Stage::kBound;
  return 0;
}

int FakeCm::Listen(rdma_cm_id* id, int /*backlog*/) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  Manager::Id& of = Manager::Of(id);
  if (of.stage != Manager::Stage::kBound) return Fails(EINVAL);
  of.stage = Manager::Stage::kListening;
  return 0;
}

int FakeCm::ResolveAddr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int /*timeout_ms*/) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  Manager::Id& of = Manager::Of(id);
  of.ip = *net::IpAddress::FromSockaddr(from);
  of.peer_ip = *net::IpAddress::FromSockaddr(to);
  sockaddr_in v4;  // the port lies at the same place in IPv6
  std::memcpy(&v4, to, sizeof(v4));
  of.peer_port = ntohs(v4.sin_port);
  const std::optional<std::string> device = manager_->verbs.DeviceOf(of.ip);
  if (!device.has_value()) return Fails(ENODEV);
  of.device = *device;
  of.stage = Manager::Stage::kResolved;
  manager_->Tell(of, RDMA_CM_EVENT_ADDR_RESOLVED);
  return 0;
}

int FakeCm::ResolveRoute(rdma_cm_id* id, int /*timeout_ms*/) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  Manager::Id& of = Manager::Of(id);
  if (of.stage != Manager::Stage::kResolved) return Fails(EINVAL);
  of.stage = Manager::Stage::kRouted;
  manager_->Tell(of, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return 0;
}

int FakeCm::Connect(rdma_cm_id* id, rdma_conn_param* parameters) const {
  std::unique_lock<std::mutex> lock(manager_->lock);
  Manager::Id& of = Manager::Of(id);
  if (of.stage != Manager::Stage::kRouted) return Fails(EINVAL);
  if (manager_->hold) {
    manager_->let_go.wait(lock, [this] { return !manager_->hold; });
    return Fails(ETIMEDOUT);
  }
  const auto listener =
      std::find_if(manager_->ids.begin(), manager_->ids.end(), [&](const auto& one) {
        return one->stage == Manager::Stage::kListening && one->ip == of.peer_ip &&
               one->port == of.peer_port;
      });
  const std::optional<std::string> device = manager_->verbs.DeviceOf(of.peer_ip);
  if (!device.has_value() || !manager_->verbs.Reaches(of.device, *device)) {
    return Fails(EHOSTUNREACH);
  }
  if (listener == manager_->ids.end()) return Fails(ECONNREFUSED);
  of.stage = Manager::Stage::kDialing;
  of.since = manager_->verbs.Now();
  of.pair = parameters->qp_num;
  const std::string data(static_cast<const char*>(parameters->private_data),
                         parameters->private_data_len);
  manager_->Call(**listener, &of, data);
  return 0;
}

int FakeCm::Accept(rdma_cm_id* id, rdma_conn_param* parameters) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  Manager::Id& of = Manager::Of(id);
  if (of.stage != Manager::Stage::kCalled) return Fails(EINVAL);
  Manager::Id* const caller = of.other;
  of.stage = Manager::Stage::kOver;
  if (caller == nullptr || caller->stage != Manager::Stage::kDialing ||
      !manager_->verbs.Reaches(of.device, caller->device)) {
    return Fails(ECONNRESET);
  }
  if (!manager_->verbs.JoinPairs(caller->pair, parameters->qp_num, manager_->overlook)) {
    return Fails(EINVAL);
  }
  of.pair = parameters->qp_num;
  ++manager_->connections;
  for (Manager::Id* end : {&of, caller}) {
    end->stage = Manager::Stage::kUp;
    manager_->Tell(*end, RDMA_CM_EVENT_ESTABLISHED);
  }
  return 0;
}

int FakeCm::Reject(rdma_cm_id* id) const {
  const std::lock_guard<std::mutex> lock(manager_->lock);
  ++manager_->refused;
  manager_->Refuse(Manager::Of(id));
  return 0;
}

std::vector<net::IpAddress> FakeCm::AddressesOfMac(const net::MacAddress& mac) const {
  return manager_->verbs.AddressesOf(mac);
}

}  // namespace railhead::transport::verbs

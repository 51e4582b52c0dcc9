// SPDX-License-Identifier: Apache-2.0
#include "plugins/nccl/connection.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/caught.h"
#include "runtime/base/now.h"
#include "runtime/base/wire.h"
#include "runtime/collectives/call.h"
#include "runtime/transport/connect/acceptor.h"

namespace railhead::nccl {
namespace {

// Between turns of the thread: while it has work that no caller does; and otherwise.
constexpr absl::Duration kBusyPause = absl::Milliseconds(1);
constexpr absl::Duration kIdlePause = absl::Milliseconds(50);
constexpr absl::Duration kLookPause = absl::Microseconds(100);  // while a connection ends
// Time for requests that are open when their connection is closed.
constexpr absl::Duration kLastRequests = absl::Milliseconds(20);

// Tags of messages of this class.
constexpr int kAddresses = kLargestTag + 1;
constexpr int kCloseNotice = kLargestTag + 2;
// Bytes of all addresses, at most.
constexpr size_t kMostAddresses = 2048;
constexpr size_t kMostAddress = 64;

}  // namespace

class Connection::Request {
 public:
  explicit Request(size_t count) : transfers_(count), left_(count) {}

  struct Part final : transfers::Transfer {
    Request* request = nullptr;
  };

  Part& part(size_t index) { return transfers_[index]; }
  size_t count() const { return transfers_.size(); }
  void PartDone() { --left_; }
  bool done() const { return left_ == 0; }

 private:
  std::vector<Part> transfers_;
  size_t left_;
};

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(Options options) {
  absl::StatusOr<std::shared_ptr<net::WatchThread>> thread =
      net::WatchThread::Get(net::WatchThread::Work::kProgress);
  if (!thread.ok()) return thread.status();
  rails::Peer* const peer = options.peer.get();
  std::map<int, std::unique_ptr<rails::Peer>> peers;
  peers.emplace(kPeer, std::move(options.peer));
  std::unique_ptr<Connection> connection(new Connection(options));
  rails::Reach reach;
  reach.wake = options.wake;
  absl::StatusOr<std::unique_ptr<rails::Mesh>> mesh =
      rails::Mesh::Create(std::move(peers), Alarm(), std::move(reach));
  if (!mesh.ok()) return mesh.status();
  connection->peer_ = peer;
  connection->mesh_ = *std::move(mesh);
  connection->mesh_->Begin(absl::InfiniteDuration());
  connection->mesh_->Expect(
      collectives::Call({.collective = collectives::Collective::kSendReceive}));
  transfers::Engine::Options engine;
  engine.rank = kSelf;
  engine.name = [name = connection->peer_name_](int) { return name; };
  engine.done = [](transfers::Transfer& transfer) {
    static_cast<Request::Part&>(transfer).request->PartDone();
  };
  engine.greets = [](int) { return true; };
  connection->engine_ = std::make_unique<transfers::Engine>(*connection->mesh_, std::move(engine));
  connection->engine_->Listen(kPeer);
  connection->last_up_ = MonotonicNow();
  connection->presence_.Learn(std::move(options.places));
  if (options.addresses.empty()) {
    connection->their_addresses_.resize(kMostAddresses);
    connection->addresses_come_ = connection->PostNote(transfers::Direction::kReceive, kAddresses,
                                                       connection->their_addresses_);
  } else {
    WireWriter writer;
    for (const std::string& address : options.addresses) writer.String(address);
    connection->own_addresses_ = writer.Take();
    connection->PostNote(transfers::Direction::kSend, kAddresses, connection->own_addresses_);
  }
  connection->close_notice_ =
      connection->PostNote(transfers::Direction::kReceive, kCloseNotice, connection->nothing_);
  if (options.show) {
    connection->shown_ = options.show([mesh = connection->mesh_.get()] { return mesh->Totals(); });
  }
  connection->thread_ = *std::move(thread);
  connection->thread_->Wake(*connection);
  return connection;
}

Connection::Connection(const Options& options)
    : peer_name_(options.peer_name),
      mutex_(options.mutex),
      timeout_(options.timeout),
      speaker_(options.speaker),
      devices_(options.devices),
      home_(options.home),
      log_(options.log) {}

Connection::~Connection() {
  {
    const std::lock_guard<std::mutex> lock(*mutex_);
    closing_ = true;
  }
  if (thread_ != nullptr) {
    thread_->Wake(*this);
    thread_->AwaitEnd(*this);
  }
  shown_.reset();
  const std::lock_guard<std::mutex> lock(*mutex_);
  engine_.reset();
  mesh_.reset();
}

Connection::Request* Connection::PostNote(transfers::Direction direction, int tag,
                                          std::string& text) {
  Request* const note = notes_.emplace_back(std::make_unique<Request>(1)).get();
  Request::Part& part = note->part(0);
  part.request = note;
  part.direction = direction;
  part.peer = kPeer;
  part.tag = tag;
  part.data = reinterpret_cast<std::byte*>(text.data());
  part.size = text.size();
  engine_->Post(part);
  return note;
}

Connection::Request* Connection::Post(std::unique_ptr<Request> request) {
  Request* const posted = requests_.emplace_back(std::move(request)).get();
  for (size_t i = 0; i < posted->count(); ++i) {
    posted->part(i).request = posted;
    engine_->Post(posted->part(i));
  }
  visited_ = true;
  was_used_ = true;
  error_.Update(Work());
  return posted;
}

absl::StatusOr<std::unique_ptr<Memory>> Connection::Register(absl::Span<std::byte> memory,
                                                             bool on_gpu,
                                                             const device::DmaBuf* buffer) const {
  return Memory::Register(devices_, memory, on_gpu, buffer, log_);
}

absl::Status Connection::Flush(const Memory& memory, const std::byte* address) const {
  return memory.Flush(address, [this](size_t rail) {
    return peer_->rail_health(rail).up.load(std::memory_order_relaxed);
  });
}

absl::StatusOr<Connection::Request*> Connection::Send(absl::Span<const std::byte> data, int tag,
                                                      const Memory* memory) {
  const std::lock_guard<std::mutex> lock(*mutex_);
  if (!error_.ok()) return error_;
  PreferHome(memory);
  auto request = std::make_unique<Request>(1);
  Request::Part& part = request->part(0);
  part.direction = transfers::Direction::kSend;
  part.peer = kPeer;
  part.tag = tag;
  // A send does not write to its buffer.
  part.data = const_cast<std::byte*>(data.data());
  part.size = data.size();
  part.registered = memory;
  return Post(std::move(request));
}

void Connection::PreferHome(const Memory* memory) {
  if (!home_.has_value()) return;
  const bool on_gpu = (memory != nullptr && memory->on_device()) || engine_->HasDevice(kPeer);
  if (on_gpu) peer_->Prefer(*std::exchange(home_, std::nullopt));
}

absl::StatusOr<Connection::Request*> Connection::Receive(absl::Span<const Slot> group) {
  const std::lock_guard<std::mutex> lock(*mutex_);
  if (!error_.ok()) return error_;
  auto request = std::make_unique<Request>(group.size());
  for (size_t i = 0; i < group.size(); ++i) {
    Request::Part& part = request->part(i);
    part.direction = transfers::Direction::kReceive;
    part.peer = kPeer;
    part.tag = group[i].tag;
    part.data = group[i].data;
    part.size = group[i].size;
    part.registered = group[i].memory;
  }
  return Post(std::move(request));
}

absl::StatusOr<bool> Connection::Test(Request* request, int* sizes) {
  const std::lock_guard<std::mutex> lock(*mutex_);
  visited_ = true;
  if (!request->done()) {
    error_.Update(Work());
    if (!request->done()) {
      if (!error_.ok()) return error_;
      // Its close notice follows all its messages, and it accepts none.
      if (HasLeft()) return absl::UnavailableError(peer_name_ + " has closed the connection");
      return false;
    }
  }
  for (size_t i = 0; sizes != nullptr && i < request->count(); ++i) {
    sizes[i] = static_cast<int>(request->part(i).outcome.bytes);
  }
  const auto found =
      std::find_if(requests_.begin(), requests_.end(),
                   [request](const std::unique_ptr<Request>& own) { return own.get() == request; });
  if (found != requests_.end()) requests_.erase(found);
  return true;
}

absl::Status Connection::Work() {
  if (!error_.ok()) return error_;
  absl::Status moved = Move();
  // Without them, who has left cannot be reached any longer.
  if (moved.ok()) TakeNotes();
  return moved;
}

absl::Status Connection::Move() {
  while (true) {
    if (absl::Status advanced = engine_->Advance(); !advanced.ok()) return advanced;
    const absl::StatusOr<bool> moved = mesh_->Look();
    if (!moved.ok()) return moved.status();
    if (*moved) continue;
    // Acknowledges, as hardly anything goes back to the sender that could do so, and asks for room
    // in sockets.
    const absl::StatusOr<absl::Duration> pause = mesh_->PrepareSleep();
    if (!pause.ok()) return pause.status();
    if (*pause > absl::ZeroDuration()) return engine_->Advance();
  }
}

void Connection::TakeNotes() {
  if (addresses_come_ != nullptr && addresses_come_->done()) {
    WireReader reader(
        absl::string_view(their_addresses_).substr(0, addresses_come_->part(0).outcome.bytes));
    std::vector<net::SocketAddress> places;
    for (size_t i = 0; i < peer_->rail_count(); ++i) {
      const std::string address = reader.String(kMostAddress);
      peer_->link(i).PeerMovedTo(address);
      const absl::StatusOr<transport::Acceptor::Place> place =
          transport::Acceptor::ParsePlace(address);
      if (place.ok() && place->port != 0) places.push_back({place->ip, place->port});
    }
    presence_.Learn(std::move(places));
    addresses_come_ = nullptr;
  }
  if (close_notice_ != nullptr && close_notice_->done()) {
    close_notice_ = nullptr;
    mesh_->ExpectClose();
  }
}

absl::Status Connection::CheckRails(absl::Time now) {
  if (HasLeft()) return absl::OkStatus();
  bool any_up = false;
  for (size_t i = 0; i < peer_->rail_count(); ++i) {
    any_up = any_up || peer_->rail_health(i).up.load(std::memory_order_relaxed);
  }
  if (any_up) {
    was_up_ = true;
    last_up_ = now;
    presence_.Forget();
    return absl::OkStatus();
  }
  if (presence_.HasEnded(now)) {
    return absl::UnavailableError(
        absl::StrCat(peer_name_, " has ended: its machine refuses ", presence_.Places()));
  }
  if (now - last_up_ < timeout_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "no rail to ", peer_name_, " has had a connection for ",
      std::lround(absl::ToDoubleSeconds(now - last_up_)), " s: ", mesh_->DescribeProgress(kPeer)));
}

std::optional<absl::Time> Connection::Turn() {
  const absl::Time now = MonotonicNow();
  const std::unique_lock<std::mutex> lock(*mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return now + kBusyPause;
  if (closing_) return std::nullopt;
  if (!error_.ok()) return absl::InfiniteFuture();
  const bool visited = std::exchange(visited_, false);
  error_.Update(Caught(
      [&]() -> absl::Status {
        if (visited) return CheckRails(now);
        absl::Status worked = Work();
        return worked.ok() ? CheckRails(now) : worked;
      },
      [](const absl::Status& why) { return why; }));
  const bool busy = !requests_.empty() || !peer_->AllUp() || !peer_->Quiet();
  return now + (busy && !visited ? kBusyPause : kIdlePause);
}

void Connection::Settle(absl::Time deadline) {
  const std::lock_guard<std::mutex> lock(*mutex_);
  error_.Update(CheckRails(MonotonicNow()));
  if (!error_.ok() || (!was_up_ && !was_used_)) return;
  PostNote(transfers::Direction::kSend, kCloseNotice, nothing_);
  mesh_->ExpectClose();
  const auto has_left = [this](int) { return HasLeft(); };
  // After an abort nothing needs to arrive. But some versions of NCCL do not wait for their last
  // requests before they close.
  if (!requests_.empty()) deadline = std::min(deadline, MonotonicNow() + kLastRequests);
  error_.Update(Work());
  while (error_.ok() && MonotonicNow() < deadline) {
    error_.Update(Work());
    error_.Update(CheckRails(MonotonicNow()));
    if (engine_->Flushed(has_left) && mesh_->Acknowledged(has_left)) return;
    absl::SleepFor(kLookPause);
  }
}

}  // namespace railhead::nccl

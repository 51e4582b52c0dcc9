// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/agent_store.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/bootstrap/call.h"
#include "runtime/bootstrap/spread.h"
#include "runtime/net/socket.h"

namespace railhead::bootstrap {
namespace {

// Maximum time for an answer of the store: one thread serves all ranks.
constexpr absl::Duration kAnswerTime = absl::Seconds(10);
// Maximum time that a rank waits in the store for rank 0, before it reports that and waits again.
constexpr absl::Duration kWaitInStore = absl::Seconds(5);
// Between two attempts of rank 0 to publish its address.
constexpr absl::Duration kPublishPause = absl::Milliseconds(200);

constexpr absl::string_view kFix =
    "; it must be a TCPStore of PyTorch 2.2 or newer: update PyTorch, or set "
    "TORCHELASTIC_USE_AGENT_STORE=False and MASTER_PORT to a free port in all processes";

// Returns the error of a store that ended the connection in any way.
absl::Status Closed(const absl::Status& why) {
  return absl::UnavailableError(
      absl::StrCat("it closed the connection (", why.message(), ")", kFix));
}

// Returns true if both ends of a connection to `there` from `here` are on this host.
bool IsThisHost(const net::IpAddress& here, const net::IpAddress& there) {
  constexpr char kLoopback = 127;  // the first byte of IPv4 addresses
  if (here == there || there == *net::IpAddress::Parse("::1")) return true;
  if (there.is_v4() && there.Bytes().front() == kLoopback) return true;
  const std::vector<net::IpAddress> own = net::OwnAddresses();
  return std::find(own.begin(), own.end(), there) != own.end();
}

// A connection to the store.
class StoreConnection {
 public:
  static absl::StatusOr<StoreConnection> Open(NamedHost& host, uint16_t port, absl::Time deadline,
                                              const Halt& halt) {
    absl::StatusOr<net::Fd> fd = host.Dial(port, deadline, halt);
    if (!fd.ok()) return fd.status();
    StoreConnection connection(*std::move(fd), halt);
    if (absl::Status sent = connection.Send(StoreGreeting(), deadline); !sent.ok()) return sent;
    return connection;
  }

  absl::Status Send(const std::string& query, absl::Time deadline) {
    absl::Status sent = net::SendAll(fd_.get(), query, deadline);
    return sent.ok() || absl::IsDeadlineExceeded(sent) ? sent : Closed(sent);
  }

  // Returns the answer to `query` as `parse` reads it.
  template <class Value>
  absl::StatusOr<Value> Ask(const std::string& query,
                            absl::StatusOr<std::optional<Value>> (*parse)(absl::string_view),
                            absl::Time deadline) {
    constexpr size_t kPart = 512;
    if (absl::Status sent = Send(query, deadline); !sent.ok()) return sent;
    std::string answer;
    while (true) {
      absl::StatusOr<std::optional<Value>> value = parse(answer);
      if (!value.ok()) {
        return absl::Status(value.status().code(), absl::StrCat(value.status().message(), kFix));
      }
      if (value->has_value()) return **std::move(value);
      absl::Status ready = net::WaitReadable(fd_.get(), deadline, halt_);
      if (!ready.ok()) return ready;
      const absl::StatusOr<bool> open = net::ReceiveSome(fd_.get(), kPart, &answer);
      if (!open.ok()) return Closed(open.status());
      if (!*open) return Closed(absl::UnavailableError("end of the stream"));
    }
  }

  int fd() const { return fd_.get(); }

 private:
  StoreConnection(net::Fd fd, const Halt& halt) : fd_(std::move(fd)), halt_(halt) {}

  net::Fd fd_;
  Halt halt_;
};

// Returns whether the store has the key. This is the first query, so its answer shows whether the
// other side is such a store at all.
absl::StatusOr<bool> Check(StoreConnection& store, const std::string& key, absl::Time deadline) {
  const absl::Time start = MonotonicNow();
  absl::StatusOr<bool> has =
      store.Ask(StoreCheck(key), ParseStoreCheck, std::min(deadline, start + kAnswerTime));
  if (!absl::IsDeadlineExceeded(has.status())) return has;
  const absl::Duration waited = absl::Trunc(MonotonicNow() - start, absl::Milliseconds(1));
  return absl::UnavailableError(
      absl::StrCat("it did not answer in ", absl::FormatDuration(waited), kFix));
}

}  // namespace

std::string AgentStore::Where() const {
  return absl::StrCat(
      "the store of torchrun's agent at ",
      absl::StrContains(host_.name(), ':') ? absl::StrCat("[", host_.name(), "]") : host_.name(),
      ":", port_);
}

std::string AgentStore::SameOnAllRanks() const {
  return "the same torchrun, or agents with the same run id, started them";
}

absl::Status AgentStore::Explain(const absl::Status& error) const {
  return absl::Status(
      error.code(),
      absl::StrCat(Where(), " (TORCHELASTIC_USE_AGENT_STORE=True): ", error.message()));
}

absl::StatusOr<net::Fd> AgentStore::Open(absl::Time deadline, const Halt& halt) {
  absl::StatusOr<net::Fd> listener = net::Listen(std::nullopt, 0);
  const absl::StatusOr<net::SocketAddress> bound =
      listener.ok() ? net::LocalAddress(listener->get()) : listener.status();
  if (!bound.ok()) return bound.status();
  while (true) {
    const absl::Status published = Publish(bound->port, deadline, halt);
    if (published.ok()) return listener;
    const absl::Time next = MonotonicNow() + Spread(kPublishPause);
    if (absl::IsUnimplemented(published) || next >= deadline) {
      const absl::Status error = Explain(published);
      return absl::Status(error.code(),
                          absl::StrCat("cannot publish its address in ", error.message()));
    }
    if (absl::Status halted = SleepUntil(next, halt); !halted.ok()) return halted;
  }
}

absl::Status AgentStore::Publish(uint16_t port, absl::Time deadline, const Halt& halt) {
  absl::StatusOr<StoreConnection> store = StoreConnection::Open(host_, port_, deadline, halt);
  if (!store.ok()) return store.status();
  const absl::StatusOr<net::SocketAddress> here = net::LocalAddress(store->fd());
  if (!here.ok()) return here.status();
  const absl::StatusOr<net::SocketAddress> there = net::RemoteAddress(store->fd());
  if (!there.ok()) return Closed(there.status());
  StoredAddress stored;
  stored.port = port;
  // Usually rank 0 runs on the store's host, and the others know how to reach that.
  if (!IsThisHost(here->address, there->address)) stored.address = here->address;
  absl::Status sent = store->Send(StoreSet(key_, EncodeStoredAddress(stored)), deadline);
  if (!sent.ok()) return sent;
  const absl::StatusOr<bool> has = Check(*store, key_, deadline);
  if (!has.ok()) return has.status();
  if (!*has) return absl::UnavailableError("it does not have what was stored");
  return absl::OkStatus();
}

absl::StatusOr<StoredAddress> AgentStore::Find(absl::Time deadline, const Halt& halt) {
  absl::StatusOr<StoreConnection> store = StoreConnection::Open(host_, port_, deadline, halt);
  if (!store.ok()) return store.status();
  const absl::StatusOr<bool> has = Check(*store, key_, deadline);
  if (!has.ok()) return has.status();
  if (!*has) {
    const absl::StatusOr<bool> has_now = store->Ask(
        StoreWait(key_), ParseStoreWait, std::min(deadline, MonotonicNow() + kWaitInStore));
    if (absl::IsDeadlineExceeded(has_now.status())) {
      return absl::UnavailableError("rank 0 has not published its address there yet");
    }
    if (!has_now.ok()) return has_now.status();
  }
  const absl::StatusOr<std::string> value =
      store->Ask(StoreGet(key_), ParseStoreValue, std::min(deadline, MonotonicNow() + kAnswerTime));
  if (!value.ok()) return value.status();
  absl::StatusOr<StoredAddress> stored = ParseStoredAddress(*value);
  if (stored.ok()) return stored;
  return absl::UnavailableError(
      absl::StrCat("what rank 0 has published there is not readable: ", stored.status().message(),
                   "; use the same Railhead release in all pods"));
}

absl::StatusOr<net::Fd> AgentStore::Dial(absl::Time deadline, const Halt& halt) {
  const absl::StatusOr<StoredAddress> stored = Find(deadline, halt);
  if (!stored.ok()) return Explain(stored.status());
  if (!stored->address.has_value()) return host_.Dial(stored->port, deadline, halt);
  return net::Dial(*stored->address, stored->port, std::nullopt,
                   std::min(deadline, MonotonicNow() + kOneDial), halt);
}

}  // namespace railhead::bootstrap

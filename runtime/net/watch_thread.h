// SPDX-License-Identifier: Apache-2.0
//
// A thread that waits for descriptors, for all its clients in this process, however many
// communicators it has. It sleeps until a descriptor of a client is ready, a client is woken, or a
// time has come. Used by bootstrap::Watch and transport::RailListener.
#ifndef RAILHEAD_RUNTIME_NET_WATCH_THREAD_H_
#define RAILHEAD_RUNTIME_NET_WATCH_THREAD_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/condition.h"
#include "runtime/net/event.h"
#include "runtime/net/fd.h"

namespace railhead::net {

// Thread-safe.
class WatchThread {
 public:
  class Client {
   public:
    virtual ~Client() = default;
    // Does what is due, without waiting for others. Returns when to do so again at the latest;
    // nullopt: never. Called by the thread only.
    virtual std::optional<absl::Time> Turn() = 0;
  };

  enum class Work {
    kWatch,     // small: who has died, who wants to connect
    kProgress,  // what is due for meshes whose owner is away
  };
  // The process's thread for this kind of work; started by its first user, ended by its last.
  static absl::StatusOr<std::shared_ptr<WatchThread>> Get(Work work = Work::kWatch);
  ~WatchThread();
  WatchThread(const WatchThread&) = delete;
  WatchThread& operator=(const WatchThread&) = delete;

  // An epoll: its events, with a Client* as data, cause a turn of that client.
  int epoll() const { return epoll_.get(); }

  // Causes a turn at that time, or soon; the first makes it a client.
  void Wake(Client& client, absl::Time at = absl::InfinitePast());
  // Waits until a turn of the client has returned nullopt.
  void AwaitEnd(Client& client);

 private:
  WatchThread(net::Fd epoll, net::Event wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  void Run();
  // Returns the clients whose turn it is: those whose time has come, and those in the argument.
  std::set<Client*> Due(const std::set<Client*>& stirred);
  // Sleeps. Returns the clients whose descriptors are ready.
  std::set<Client*> Sleep();

  const net::Fd epoll_;
  const net::Event wake_;

  std::mutex mutex_;
  Condition ended_;
  std::map<Client*, absl::Time> clients_;  // and their next turns
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_WATCH_THREAD_H_

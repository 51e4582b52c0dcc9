// SPDX-License-Identifier: Apache-2.0
//
// SharedListener: a listening socket that several rendezvous of a process use at once, each for a
// different job. Used by HandshakeServer.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_SHARED_LISTENER_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_SHARED_LISTENER_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/net/event.h"
#include "runtime/net/fd.h"

namespace railhead::bootstrap {

// Each rendezvous accepts any connection, and hands it over if its Hello names the job of another
// one. No call blocks. Thread-safe.
class SharedListener {
 public:
  explicit SharedListener(net::Fd socket) : socket_(std::move(socket)) {}
  SharedListener(const SharedListener&) = delete;
  SharedListener& operator=(const SharedListener&) = delete;

  int fd() const { return socket_.get(); }

  // An accepted connection.
  struct Connection {
    net::Fd fd;
    std::string from;     // its address, for messages
    std::string sent;     // what has been read from it
    absl::Time patience;  // when it is closed unless it has completed the handshake
  };

  // A rendezvous, open for the clients of its job until it is destroyed, which closes the
  // connections that it has not taken.
  class Rendezvous {
   public:
    // At most `limit` connections wait for Take.
    Rendezvous(std::shared_ptr<SharedListener> listener, std::string job, size_t limit);
    ~Rendezvous();
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;

    // Readable while connections wait; -1 if it could not be opened.
    int wake() const { return wake_.fd(); }
    // Returns the connections that others have handed over.
    std::deque<Connection> Take();
    // Hands a connection over to the rendezvous of this job. Returns false, and leaves the
    // connection as it is, if that is not open or has too many.
    bool HandOver(absl::string_view job, Connection& connection) {
      return listener_->Give(job, connection);
    }

   private:
    friend class SharedListener;

    const std::shared_ptr<SharedListener> listener_;
    const std::string job_;
    const size_t limit_;
    net::Event wake_;
    std::deque<Connection> waiting_;  // guarded by the listener's mutex
  };

 private:
  bool Give(absl::string_view job, Connection& connection);

  const net::Fd socket_;
  std::mutex mutex_;
  std::vector<Rendezvous*> open_;  // guarded by mutex_
};

// The listening socket of a rendezvous: its own, or else a shared one.
struct ListeningSocket {
  net::Fd own;
  std::shared_ptr<SharedListener> shared = nullptr;

  int fd() const { return shared != nullptr ? shared->fd() : own.get(); }
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_SHARED_LISTENER_H_

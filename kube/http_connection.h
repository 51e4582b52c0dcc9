// SPDX-License-Identifier: Apache-2.0
//
// Private to http_server.cc: one accepted socket, and the call that takes threads back from idle
// ones.
#ifndef RAILHEAD_KUBE_HTTP_CONNECTION_H_
#define RAILHEAD_KUBE_HTTP_CONNECTION_H_

#include <httplib.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace railhead::kube {

// Calls that the threads of idle connections wait for: "somebody needs your thread".
class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;
  // Wakes `count` waiters, one each.
  void Call(uint64_t count) const;
  // Whether the caller is one of those called.
  bool Take() const;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Waits until `fd` is ready for `events` (of poll). False at the deadline or on a dead socket.
bool WaitFor(int fd, int16_t events, absl::Time deadline);

// Milliseconds until the deadline, for poll.
int PollMilliseconds(absl::Time deadline);

// One accepted socket, with TLS or without, as cpp-httplib wants to see it. Reads and writes until
// a deadline, and reads no more than a budget. Used by one thread.
class Connection final : public httplib::Stream {
 public:
  explicit Connection(int fd);  // takes the socket
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool AcceptTls(SSL_CTX* context, absl::Time deadline);
  // Waits for the first byte of another request. False when the client says nothing in time, or
  // when the thread is needed elsewhere.
  bool AwaitRequest(const Wakeup& wakeup, absl::Time deadline) const;
  void BeginRequest(size_t budget, absl::Time deadline);
  // No further request can be read: the socket is dead, or time or budget were used up.
  bool broken() const { return broken_; }

  bool is_readable() const override { return !broken_; }
  bool is_writable() const override { return !broken_; }
  ssize_t read(char* out, size_t size) override;
  ssize_t write(const char* data, size_t size) override;
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return fd_; }

 private:
  bool Fill();
  // Whether it makes sense to repeat the call that returned `result`; marks the connection broken
  // where it does not.
  bool WaitAfter(int result, int16_t events);

  int fd_;
  SSL* ssl_ = nullptr;
  bool broken_ = false;
  absl::Time deadline_ = absl::InfinitePast();
  size_t budget_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  char buffer_[4096];
};

}  // namespace railhead::kube

#endif  // RAILHEAD_KUBE_HTTP_CONNECTION_H_

// SPDX-License-Identifier: Apache-2.0
//
// Private to http_server.cc: one accepted socket.
#ifndef RAILHEAD_KUBE_HTTP_CONNECTION_H_
#define RAILHEAD_KUBE_HTTP_CONNECTION_H_

#include <httplib.h>
#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace railhead::kube {

// Waits until `fd` is ready for `events` (of poll). False at the deadline or on a dead socket.
bool WaitFor(int fd, int16_t events, absl::Time deadline);

// Milliseconds until the deadline, for poll.
int PollMilliseconds(absl::Time deadline);

// One accepted socket, with TLS or without, as cpp-httplib wants to see it. Reads and writes until
// a deadline, and reads no more than a budget. Used by one thread at a time.
class Connection final : public httplib::Stream {
 public:
  explicit Connection(int fd);  // takes the socket, which does not block
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  enum class Handshake { kDone, kWaits, kFailed };
  // Goes on with the TLS handshake as far as the client's bytes allow; kWaits asks to be called
  // again when there are more. Only the first call looks at `context`.
  Handshake AdvanceTls(SSL_CTX* context, absl::Time deadline);

  // Bytes have arrived that poll on the socket would not tell of.
  bool HasBuffered() const;
  void BeginRequest(size_t budget, absl::Time deadline);
  // No further request can be read: the socket is dead, or time or budget were used up.
  bool finished() const { return broken_ || budget_ == 0; }

  // Ends a connection whose client may still be sending: says that nothing more will come, and
  // takes what arrives until the client has ended too or the deadline. Closing at once would make
  // the kernel reset the connection, and the client would lose the answer.
  void Linger(absl::Time deadline);

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

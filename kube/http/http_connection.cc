// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace railhead::kube {

Connection::Connection(FileDescriptor fd) : fd_(std::move(fd)) {
  const int on = 1;
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Connection::~Connection() {
  if (ssl_ != nullptr) {
    SSL_free(ssl_);
    ERR_clear_error();
  }
}

Connection::Io Connection::AdvanceTls(SSL_CTX* context) {
  if (ssl_ == nullptr) {
    ssl_ = SSL_new(context);
    if (ssl_ == nullptr || SSL_set_fd(ssl_, fd_.get()) != 1) return Io::kEnded;
    // A connection that is idle keeps no buffers; a write may be repeated from another address.
    SSL_set_mode(ssl_, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                           SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }
  ERR_clear_error();
  return ResultOf(SSL_accept(ssl_)).io;
}

bool Connection::HasBuffered() const { return ssl_ != nullptr && SSL_pending(ssl_) > 0; }

void Connection::EndWriting() {
  if (ssl_ != nullptr) {
    SSL_shutdown(ssl_);  // sends close_notify; does not wait for the peer's
    ERR_clear_error();
  }
  shutdown(fd_.get(), SHUT_WR);
}

Connection::Result Connection::Read(char* out, size_t size) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    return ResultOf(SSL_read(ssl_, out, static_cast<int>(std::min<size_t>(size, 1U << 20U))));
  }
  return ResultOf(recv(fd_.get(), out, size, 0));
}

Connection::Result Connection::Write(absl::string_view bytes) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    const size_t size = std::min<size_t>(bytes.size(), 1U << 20U);
    return ResultOf(SSL_write(ssl_, bytes.data(), static_cast<int>(size)));
  }
  Result result = ResultOf(send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  if (result.io == Io::kWantsRead) result.io = Io::kWantsWrite;
  return result;
}

Connection::Result Connection::ResultOf(ssize_t result) const {
  if (result > 0) return {Io::kDone, static_cast<size_t>(result)};
  if (ssl_ != nullptr) {
    switch (SSL_get_error(ssl_, static_cast<int>(result))) {
      case SSL_ERROR_WANT_READ:
        return {Io::kWantsRead};
      case SSL_ERROR_WANT_WRITE:
        return {Io::kWantsWrite};
      default:
        return {Io::kEnded};
    }
  }
  const bool again = result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return {again ? Io::kWantsRead : Io::kEnded};
}

}  // namespace railhead::kube

// SPDX-License-Identifier: Apache-2.0
#include "kube/http_connection.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/time/clock.h"

namespace railhead::kube {

int PollMilliseconds(absl::Time deadline) {
  const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

bool WaitFor(int fd, int16_t events, absl::Time deadline) {
  for (;;) {
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, PollMilliseconds(deadline));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

Connection::Connection(int fd) : fd_(fd) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Connection::~Connection() {
  if (ssl_ != nullptr) {
    SSL_free(ssl_);
    ERR_clear_error();
  }
  close(fd_);
}

Connection::Handshake Connection::AdvanceTls(SSL_CTX* context, absl::Time deadline) {
  deadline_ = deadline;
  if (ssl_ == nullptr) {
    ssl_ = SSL_new(context);
    if (ssl_ == nullptr || SSL_set_fd(ssl_, fd_) != 1) return Handshake::kFailed;
  }
  for (;;) {
    ERR_clear_error();
    const int result = SSL_accept(ssl_);
    if (result == 1) return Handshake::kDone;
    if (SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ) return Handshake::kWaits;
    if (!WaitAfter(result, POLLOUT)) return Handshake::kFailed;
  }
}

bool Connection::HasBuffered() const {
  return begin_ < end_ || (ssl_ != nullptr && SSL_pending(ssl_) > 0);
}

void Connection::Linger(absl::Time deadline) {
  if (broken_) return;
  if (ssl_ != nullptr) {
    SSL_shutdown(ssl_);  // says good-bye; waits for no answer
    ERR_clear_error();
  }
  shutdown(fd_, SHUT_WR);
  ssize_t taken = 1;
  while (taken > 0 || (taken < 0 && errno == EINTR)) {
    if (!WaitFor(fd_, POLLIN, deadline) || absl::Now() >= deadline) return;
    taken = recv(fd_, buffer_, sizeof(buffer_), 0);
  }
}

void Connection::BeginRequest(size_t budget, absl::Time deadline) {
  budget_ = budget;
  deadline_ = deadline;
}

ssize_t Connection::read(char* out, size_t size) {
  if (begin_ == end_ && !Fill()) return -1;
  const size_t taken = std::min({size, end_ - begin_, budget_});
  if (taken == 0) return -1;
  std::memcpy(out, buffer_ + begin_, taken);
  begin_ += taken;
  budget_ -= taken;
  return static_cast<ssize_t>(taken);
}

ssize_t Connection::write(const char* data, size_t size) {
  size_t done = 0;
  while (done < size && !broken_) {
    const int chunk = static_cast<int>(std::min<size_t>(size - done, 1U << 20U));
    ERR_clear_error();
    const ssize_t result = ssl_ != nullptr
                               ? SSL_write(ssl_, data + done, chunk)
                               : send(fd_, data + done, static_cast<size_t>(chunk), MSG_NOSIGNAL);
    if (result > 0) {
      done += static_cast<size_t>(result);
    } else {
      WaitAfter(static_cast<int>(result), POLLOUT);
    }
  }
  return broken_ ? -1 : static_cast<ssize_t>(done);
}

bool Connection::Fill() {
  do {
    ERR_clear_error();
    const ssize_t result = ssl_ != nullptr ? SSL_read(ssl_, buffer_, sizeof(buffer_))
                                           : recv(fd_, buffer_, sizeof(buffer_), 0);
    if (result > 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(result);
      return true;
    }
    WaitAfter(static_cast<int>(result), POLLIN);
  } while (!broken_);
  return false;
}

bool Connection::WaitAfter(int result, int16_t events) {
  bool again = false;
  if (ssl_ != nullptr) {
    const int error = SSL_get_error(ssl_, result);
    if (error == SSL_ERROR_WANT_READ) {
      again = WaitFor(fd_, POLLIN, deadline_);
    } else if (error == SSL_ERROR_WANT_WRITE) {
      again = WaitFor(fd_, POLLOUT, deadline_);
    }
  } else if (result < 0) {
    again = errno == EINTR ||
            ((errno == EAGAIN || errno == EWOULDBLOCK) && WaitFor(fd_, events, deadline_));
  }
  if (!again) broken_ = true;
  return again;
}

}  // namespace railhead::kube

// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_NET_FD_H_
#define RAILHEAD_RUNTIME_NET_FD_H_

#include <unistd.h>

#include <utility>

namespace railhead::net {

// Owns a file descriptor and closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_FD_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_NET_FD_H_
#define RAILHEAD_RUNTIME_NET_FD_H_

#include <unistd.h>

#include <cstdint>
#include <utility>

namespace railhead::net {

// Owns a file descriptor and closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Reset(); }
  Fd(Fd&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), kept_since_(std::exchange(other.kept_since_, 0)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
      kept_since_ = std::exchange(other.kept_since_, 0);
    }
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset() {
    if (fd_ >= 0 && (kept_since_ == 0 || Reclaim())) ::close(fd_);
    fd_ = -1;
    kept_since_ = 0;
  }

  // From now on it is this process's alone: children that it forks close it before fork returns
  // there. For connections: a child that held one would hide its parent's death from the peer. It
  // stays open in children of vfork, of clone without fork's handlers, and where it is above
  // a million; all of them lose it when they call exec.
  void KeepFromChildren();

 private:
  // Whether it is this process's, and not one that its parent had; it is not kept from children any
  // more.
  bool Reclaim() const;

  int fd_ = -1;
  uint32_t kept_since_ = 0;  // how many forks were between this process and the first one, plus 1
};

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_FD_H_

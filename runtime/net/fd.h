// SPDX-License-Identifier: Apache-2.0
//
// RAII file descriptor that can be kept from forked children. Used throughout the runtime.
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

  // Makes it private to this process: forked children close it before fork returns in them. For
  // connections: a child that keeps one open would hide its parent's death from the peer. It stays
  // open in children of vfork, of clone without fork's handlers, and if its number is above a
  // million; all of them lose it at exec.
  void KeepFromChildren();

 private:
  // Returns true if it is this process's and not its parent's; ends the protection from children.
  bool Reclaim() const;

  int fd_ = -1;
  uint32_t kept_since_ = 0;  // number of forks between the first process and this one, plus 1
};

}  // namespace railhead::net

#endif  // RAILHEAD_RUNTIME_NET_FD_H_

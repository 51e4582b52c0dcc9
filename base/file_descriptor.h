// SPDX-License-Identifier: Apache-2.0
//
// RAII file descriptor for the agent, `fabric` and `kube`. The runtime has its own (net::Fd), which
// also handles fork().
#ifndef RAILHEAD_BASE_FILE_DESCRIPTOR_H_
#define RAILHEAD_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace railhead {

// Owns a file descriptor and closes it. Negative: owns nothing.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    const int fd = other.Release();
    Close();
    fd_ = fd;
    return *this;
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Close() {
    if (fd_ >= 0) ::close(Release());
  }

 private:
  int fd_;
};

}  // namespace railhead

#endif  // RAILHEAD_BASE_FILE_DESCRIPTOR_H_

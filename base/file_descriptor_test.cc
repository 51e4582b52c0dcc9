// SPDX-License-Identifier: Apache-2.0
#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

namespace railhead {
namespace {

FileDescriptor Opened() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
bool IsOpen(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(FileDescriptorTest, ClosesOnceAtItsEnd) {
  int number = -1;
  {
    FileDescriptor first = Opened();
    number = first.get();
    const FileDescriptor second = std::move(first);
    EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(second.get(), number);
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(FileDescriptorTest, AssignmentClosesTheFormerOne) {
  FileDescriptor file = Opened();
  const int former = file.get();
  FileDescriptor other = Opened();
  const int number = other.get();
  file = std::move(other);
  EXPECT_EQ(file.get(), number);
  EXPECT_FALSE(IsOpen(former));
  EXPECT_TRUE(IsOpen(number));
}

TEST(FileDescriptorTest, ReleaseKeepsItOpen) {
  FileDescriptor file = Opened();
  const int number = file.Release();
  EXPECT_FALSE(file.valid());
  file.Close();
  EXPECT_TRUE(IsOpen(number));
  ::close(number);
}

}  // namespace
}  // namespace railhead

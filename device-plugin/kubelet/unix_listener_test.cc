// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/unix_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/file_descriptor.h"

namespace railhead::device_plugin {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kGreeting = 'h';

// Connects, and says what the first byte was that came; 0 when the other side hung up.
char FirstByteFrom(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  char byte = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    static_cast<void>(!read(fd, &byte, 1));
  }
  close(fd);
  return byte;
}

class UnixListenerTest : public ::testing::Test {
 protected:
  UnixListenerTest() : folder_(fs::temp_directory_path() / "railhead-listener-XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/s.sock";
  }
  ~UnixListenerTest() override { fs::remove_all(folder_); }

  static void Greet(const FileDescriptor& fd) { EXPECT_EQ(write(fd.get(), &kGreeting, 1), 1); }

  std::string folder_;
  std::string path_;
};

TEST_F(UnixListenerTest, HandsOnWhatConnects) {
  const auto listener = UnixListener::Start(path_, Greet);
  ASSERT_TRUE(listener.ok()) << listener.status();
  struct stat info = {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(FirstByteFrom(path_), kGreeting);
}

// Somebody who may open any file, and yet is not root.
TEST_F(UnixListenerTest, TurnsOtherUsersAway) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const auto listener = UnixListener::Start(path_, Greet);
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(setuid(65534) == 0 ? FirstByteFrom(path_) : 99);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(FirstByteFrom(path_), kGreeting) << "others are served as before";
}

TEST_F(UnixListenerTest, SaysWhyItCannotServe) {
  EXPECT_THAT(std::string(UnixListener::Start(folder_ + "/none/s", Greet).status().message()),
              HasSubstr("/none/s"));
  EXPECT_THAT(
      std::string(UnixListener::Start(folder_ + std::string(200, 'x'), Greet).status().message()),
      HasSubstr("longer"));
}

}  // namespace
}  // namespace railhead::device_plugin

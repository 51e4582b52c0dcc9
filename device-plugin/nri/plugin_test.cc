// SPDX-License-Identifier: Apache-2.0
//
// The plugin at a socket on which a container runtime of the test listens.
#include "device-plugin/nri/plugin.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "device-plugin/nri/session.h"
#include "device-plugin/nri/testing/calls.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace railhead::device_plugin::nri {
namespace {

using ::testing::HasSubstr;

constexpr int kPatienceMs = 20'000;

class PluginTest : public ::testing::Test {
 protected:
  PluginTest()
      : path_(absl::StrCat(::testing::TempDir(), "/nri-", getpid(), ".sock")),
        plugin_(path_, {absl::Milliseconds(5), absl::Milliseconds(20)}) {}

  ~PluginTest() override {
    const uint64_t one = 1;
    EXPECT_EQ(write(stop_, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    thread_.join();
    HangUp();
    Leave();
    close(stop_);
  }

  void Listen() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(listener_, 1), 0);
  }

  void Leave() {
    if (listener_ >= 0) close(listener_);
    listener_ = -1;
    unlink(path_.c_str());
  }

  // The plugin connects and introduces itself.
  void Meet() {
    pollfd wait = {listener_, POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, kPatienceMs), 1);
    peer_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    ASSERT_GE(peer_, 0);
    EXPECT_EQ(Receive(Session::Introduction().size()), Session::Introduction());
  }

  void Configure() {
    ::nri::pkg::api::v1alpha1::ConfigureRequest request;
    request.set_runtime_name("containerd");
    Send(testing::CallOfPlugin(1, "Configure", request.SerializeAsString()));
    ReceiveMessage();
    const absl::Time deadline = absl::Now() + absl::Milliseconds(kPatienceMs);
    while (!plugin_.Ready().ok() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_TRUE(plugin_.Ready().ok()) << plugin_.Ready();
  }

  void HangUp() {
    if (peer_ >= 0) close(peer_);
    peer_ = -1;
  }

  void Send(const std::string& bytes) const {
    ASSERT_EQ(send(peer_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  std::string Receive(size_t size) const {
    std::string bytes;
    while (bytes.size() < size) {
      pollfd wait = {peer_, POLLIN, 0};
      if (poll(&wait, 1, kPatienceMs) != 1) break;
      std::array<char, 4096> buffer;
      const ssize_t got =
          recv(peer_, buffer.data(), std::min(buffer.size(), size - bytes.size()), 0);
      if (got <= 0) break;
      bytes.append(buffer.data(), static_cast<size_t>(got));
    }
    return bytes;
  }

  std::string ReceiveMessage() const {
    std::string bytes = Receive(8);
    if (bytes.size() < 8) return bytes;
    const auto length =
        static_cast<size_t>(static_cast<uint8_t>(bytes[6])) << 8U | static_cast<uint8_t>(bytes[7]);
    return bytes + Receive(length);
  }

  std::string path_;
  Plugin plugin_;
  int stop_ = eventfd(0, EFD_CLOEXEC);
  int listener_ = -1;
  int peer_ = -1;
  std::thread thread_{[this] { plugin_.Run(stop_); }};
};

TEST_F(PluginTest, AnswersUntilTheRuntimeLeavesAndComesBackWithIt) {
  EXPECT_THAT(std::string(plugin_.Ready().message()), HasSubstr(path_));
  for (int life = 1; life <= 3; ++life) {
    Listen();
    Meet();
    EXPECT_FALSE(plugin_.Ready().ok()) << "not yet accepted";
    Configure();
    Send(testing::CallOfPlugin(3, "CreateContainer", testing::RdmaContainer().SerializeAsString()));
    ::nri::pkg::api::v1alpha1::CreateContainerResponse response;
    ASSERT_TRUE(response.ParseFromString(testing::ResponseIn(ReceiveMessage(), 3).payload()));
    EXPECT_EQ(response.adjust().rlimits_size(), 1);
    // The answer to another call: what was counted before is there.
    Send(testing::CallOfPlugin(5, "StateChange", ""));
    ReceiveMessage();
    EXPECT_THAT(plugin_.Metrics(), HasSubstr("railhead_memlock_registered 1\n"));
    EXPECT_THAT(plugin_.Metrics(), HasSubstr(absl::StrCat("_raised_total ", life, "\n")));
    Leave();
    HangUp();
    const absl::Time deadline = absl::Now() + absl::Milliseconds(kPatienceMs);
    while (plugin_.Ready().ok() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
    EXPECT_THAT(plugin_.Metrics(), HasSubstr("railhead_memlock_registered 0\n"));
  }
}

TEST_F(PluginTest, LeavesWhoSpeaksSomethingElseAndTriesAgain) {
  Listen();
  for (int i = 0; i < 3; ++i) {
    Meet();
    Send("HTTP/1.1 400 Bad Request\r\n\r\n");
    EXPECT_EQ(Receive(1), "") << "has hung up";
    HangUp();
  }
  Meet();
  Configure();
}

}  // namespace
}  // namespace railhead::device_plugin::nri

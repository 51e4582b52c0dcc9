// SPDX-License-Identifier: Apache-2.0
#include "operator/collector/page_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/verdict/page_lines.h"

namespace railhead::op {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(20);
constexpr char kOk[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

// Binds to a free port of the loopback, and returns it.
int Bind(int fd) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

int Listen(int& port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  port = Bind(fd);
  EXPECT_EQ(listen(fd, 4), 0);
  return fd;
}

// Answers one connection: says `text`, then `more` again and again as long as anybody takes it.
class PageServer {
 public:
  PageServer(std::string text, std::string more, bool hangs = false) {
    fd_ = Listen(port_);
    thread_ = std::thread([this, text = std::move(text), more = std::move(more), hangs] {
      const int peer = accept(fd_, nullptr, nullptr);
      std::string request;
      char buffer[4096];
      while (!absl::StrContains(request, "\r\n\r\n")) {
        const ssize_t got = recv(peer, buffer, sizeof(buffer), 0);
        if (got <= 0) break;
        request.append(buffer, static_cast<size_t>(got));
      }
      asked_ = request.substr(0, request.find('\r'));
      bool taken = send(peer, text.data(), text.size(), MSG_NOSIGNAL) >= 0;
      while (taken && !more.empty()) {
        taken = send(peer, more.data(), more.size(), MSG_NOSIGNAL) >= 0;
      }
      if (hangs) recv(peer, buffer, sizeof(buffer), 0);  // until the client has had enough
      close(peer);
    });
  }
  ~PageServer() {
    if (thread_.joinable()) thread_.join();
    close(fd_);
  }
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const { return port_; }
  // The request's first line.
  std::string Asked() {
    thread_.join();
    return asked_;
  }

 private:
  int fd_ = -1;
  int port_ = 0;
  std::string asked_;
  std::thread thread_;
};

absl::StatusOr<std::string> Ask(const PageServer& server, absl::Duration timeout = kTimeout) {
  return FetchPage("127.0.0.1", server.port(), timeout);
}

TEST(PageClientTest, GetsAPage) {
  PageServer server(absl::StrCat(kOk, "up 1\nrailhead_degraded 0\nup 2\n"), "");
  const absl::StatusOr<std::string> page = Ask(server);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(*page, "railhead_degraded 0\n");
  EXPECT_EQ(server.Asked(), "GET /metrics HTTP/1.1");
}

TEST(PageClientTest, NobodyWhoListensIsUnavailable) {
  // Bound, so that no other program listens there meanwhile.
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const int port = Bind(fd);
  const absl::Status status = FetchPage("127.0.0.1", port, kTimeout).status();
  close(fd);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("127.0.0.1:", port)));
}

TEST(PageClientTest, OneWhoSaysNothingOrNotAllIsGivenUpInTime) {
  for (const char* text : {"", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nrailhead_"}) {
    PageServer server(text, "", true);
    const absl::Status status = Ask(server, absl::Milliseconds(200)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  }
}

TEST(PageClientTest, APageWithoutEndIsLeft) {
  PageServer server(kOk, std::string(1 << 15, 'x') + "\n");
  const absl::Status status = Ask(server).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(PageClientTest, APageOfExactlyTheLimitIsTaken) {
  const std::string line = "railhead_degraded 0\n";
  std::string page(verdict::kMaxPageBytes - line.size(), '\n');
  PageServer server(absl::StrCat(kOk, page, line), "");
  EXPECT_EQ(Ask(server).value_or("none"), line);
}

TEST(PageClientTest, HeadersWithoutEndAreLeft) {
  PageServer server("HTTP/1.1 200 OK\r\n", absl::StrCat("X: ", std::string(1000, 'x'), "\r\n"));
  const absl::Status status = Ask(server).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(PageClientTest, ARedirectIsNotFollowed) {
  PageServer other(absl::StrCat(kOk, "railhead_degraded 0\n"), "");
  PageServer server(
      absl::StrCat("HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: http://127.0.0.1:",
                   other.port(), "/metrics\r\n\r\n"),
      "");
  const absl::Status status = Ask(server).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("HTTP status 302"));
  EXPECT_TRUE(Ask(other).ok());  // nobody had asked it
}

TEST(PageClientTest, WhatIsNoHttpIsUnavailable) {
  PageServer server("SSH-2.0-OpenSSH_9.2\r\n", "");
  const absl::Status status = Ask(server).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST(PageClientTest, OnlyAddressesThatAPodCanHaveAreAsked) {
  for (const char* address :
       {"10.0.0.1", "192.168.1.2", "100.64.0.7", "223.255.255.254", "fd00::1", "2001:db8::1"}) {
    EXPECT_TRUE(CheckAddressOfPod(address).ok()) << address;
  }
  for (const char* address :
       {"127.0.0.1", "127.9.9.9",       "0.0.0.0",          "0.1.2.3",     "169.254.169.254",
        "224.0.0.1", "255.255.255.255", "240.0.0.1",        "::",          "::1",
        "fe80::1",   "ff02::1",         "::ffff:127.0.0.1", "::127.0.0.1", "localhost",
        "",          "10.0.0.1:80",     "127.0.0.1:80/x?",  "::1]@x",      "1.2.3"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckAddressOfPod(address))) << address;
  }
  PageServer server(absl::StrCat(kOk, "railhead_degraded 0\n"), "");
  EXPECT_TRUE(absl::IsInvalidArgument(AskPod("127.0.0.1", server.port(), kTimeout).status()));
  EXPECT_TRUE(Ask(server).ok());  // nobody had asked it
}

}  // namespace
}  // namespace railhead::op

// SPDX-License-Identifier: Apache-2.0
//
// Hundreds of clients that are silent, drip, do not read or send as much as they can, at servers as
// they run in a cluster, over real sockets. They come from 127.0.0.1; the client that must be
// answered, such as kubelet or the API server, comes from 127.0.0.2.
#include <arpa/inet.h>
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kube/http/admission.h"
#include "kube/http/http_server.h"
#include "kube/http/memory_budget.h"
#include "kube/http/page_server.h"
#include "kube/testing/soon.h"

namespace railhead::kube {
namespace {

using testing::Soon;
using ::testing::StartsWith;

constexpr char kStranger[] = "127.0.0.1";
constexpr char kFriend[] = "127.0.0.2";
constexpr char kProbe[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

class Socket {
 public:
  // Connects from the address `from`; reads give up after a minute.
  Socket(int port, const char* from) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{60, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, from, &address.sin_addr);
    bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }
  bool connected() const { return connected_; }
  bool Say(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // What the server sends first; empty when it closes the connection or says nothing.
  std::string Hear() const {
    char buffer[4096];
    const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
    return {buffer, static_cast<size_t>(std::max<ssize_t>(count, 0))};
  }

 private:
  int fd_;
  bool connected_ = false;
};

using Sockets = std::vector<std::unique_ptr<Socket>>;

Sockets Connect(int port, int count) {
  Sockets sockets;
  for (int i = 0; i < count; ++i) sockets.push_back(std::make_unique<Socket>(port, kStranger));
  return sockets;
}

std::string AnswerOf(int port, const char* from, const std::string& request) {
  const Socket socket(port, from);
  return socket.Say(request) ? socket.Hear() : "";
}

size_t OpenDescriptors() {
  size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// Resident memory of this process.
size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t all = 0;
  size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

constexpr bool CountsMemory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;  // sanitizers have memory of their own
#else
  return true;
#endif
}

// Both ends of every connection are in this process.
void AllowDescriptors() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// A server as the node agent has it.
std::unique_ptr<PageServer> Agent(const std::string& metrics = "m 1\n") {
  AllowDescriptors();
  auto server =
      PageServer::Start("--flag", ":0",
                        {{"/healthz", [] { return HttpResponse{.body = "ok\n"}; }},
                         {"/metrics", [metrics] { return HttpResponse{.body = metrics}; }}});
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

TEST(HostileClientsTest, ThousandsOfSilentConnectionsShutNobodyOut) {
  const auto server = Agent();
  const size_t before = OpenDescriptors();
  {
    const Sockets silent = Connect(server->port(), 1100);
    for (int i = 0; i < 10; ++i) {
      ASSERT_THAT(AnswerOf(server->port(), kFriend, kProbe), StartsWith("HTTP/1.1 200"));
    }
    // Also who comes from the same address, behind all the others.
    EXPECT_THAT(AnswerOf(server->port(), kStranger, kProbe), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_TRUE(Soon([before] { return OpenDescriptors() <= before; }));
}

TEST(HostileClientsTest, DrippingClientsHoldNoThread) {
  const auto server = Agent();
  const Sockets dripping = Connect(server->port(), 300);
  std::atomic<bool> stop{false};
  std::jthread drip([&] {
    while (!stop) {
      for (const auto& socket : dripping) socket->Say("G");
      absl::SleepFor(absl::Milliseconds(20));
    }
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(AnswerOf(server->port(), kFriend, kProbe), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(AnswerOf(server->port(), kFriend, "GET /metrics HTTP/1.1\r\n\r\n"),
                StartsWith("HTTP/1.1 200"));
  }
  stop = true;
}

// Each is owed 1 MiB that it does not take.
TEST(HostileClientsTest, ClientsThatDoNotReadHoldLittleMemory) {
  const auto server = Agent(std::string(1U << 20U, 'm'));
  const size_t before = ResidentBytes();
  const Sockets slow = Connect(server->port(), 300);
  for (const auto& socket : slow) socket->Say("GET /metrics HTTP/1.1\r\n\r\n");
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(AnswerOf(server->port(), kFriend, kProbe), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(AnswerOf(server->port(), kFriend, "GET /metrics HTTP/1.1\r\n\r\n"),
                StartsWith("HTTP/1.1 200"));
  }
  if (CountsMemory()) {
    EXPECT_LT(ResidentBytes(), before + (32U << 20U));  // or less, if the kernel took pages away
  }
}

// Requests one after the other as fast as they are answered, on as many connections as there may
// be.
TEST(HostileClientsTest, AFloodOfRequestsDelaysNoProbe) {
  const auto server = Agent();
  std::atomic<bool> stop{false};
  std::vector<std::jthread> flood;
  for (int i = 0; i < 4; ++i) {
    flood.emplace_back([&] {
      while (!stop) {
        const Sockets sockets = Connect(server->port(), 16);
        for (const auto& socket : sockets) {
          for (int j = 0; j < 16; ++j) socket->Say("GET /metrics HTTP/1.1\r\n\r\n");
        }
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(AnswerOf(server->port(), kFriend, kProbe), StartsWith("HTTP/1.1 200"));
  }
  stop = true;
}

TEST(HostileClientsTest, ProbesAreAnsweredWhileAllHandlersAreBusy) {
  std::atomic<bool> release{false};
  std::atomic<int> busy{0};
  HttpServerOptions options;
  options.address = kStranger;
  options.threads = 2;
  options.probe_paths = {"/healthz"};
  HttpServer server(options, [&](const HttpRequest& request) {
    if (request.path != "/healthz") {
      ++busy;
      while (!release) absl::SleepFor(absl::Milliseconds(1));
    }
    return HttpResponse{.body = "ok\n"};
  });
  ASSERT_TRUE(server.Start().ok());
  const Sockets slow = Connect(server.port(), 50);
  for (const auto& socket : slow) socket->Say("GET /slow HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(Soon([&busy] { return busy == 2; }));
  for (int i = 0; i < 10; ++i) {
    EXPECT_THAT(AnswerOf(server.port(), kStranger, kProbe), StartsWith("HTTP/1.1 200"));
  }
  release = true;
  for (const auto& socket : slow) EXPECT_THAT(socket->Hear(), StartsWith("HTTP/1.1 200"));
}

std::string Post(const std::string& body) {
  return absl::StrCat("POST /mutate HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: ",
                      body.size(), "\r\n\r\n", body);
}

std::string Review(const std::string& object) {
  return absl::StrCat(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",)",
                      R"("request":{"uid":"u","operation":"CREATE","object":)", object, "}}");
}

// 4 MiB each: one that needs 80 MiB as a document, and one whose document is just small enough.
std::string LargestReview(bool wide) {
  std::string object = "[0";
  while (object.size() < (4U << 20U) - 1000) {
    object += wide ? ",[]" : R"(,"0123456789012345678901234567890123456789")";
  }
  return Post(Review(object + "]"));
}

// Holds requests with a large body until it is told to release them.
struct LargeHolder {
  HttpResponse operator()(const HttpRequest& request) {
    if (request.body.size() > 100) {
      ++held;
      while (!release) absl::SleepFor(absl::Milliseconds(1));
    }
    return {200, "text/plain; charset=utf-8", "ok"};
  }
  std::atomic<bool> release{false};
  std::atomic<int> held{0};
};

TEST(HostileClientsTest, LargeRequestsDoNotDisplaceSmallOnesOfTheirSource) {
  HttpServerOptions options;
  options.address = kStranger;
  options.threads = 4;
  options.max_bytes = 900U << 10U;
  options.body_timeout = absl::Minutes(1);  // busy machines are slow
  options.max_connections = 64;
  LargeHolder holder;
  HttpServer server(options, std::ref(holder));
  ASSERT_TRUE(server.Start().ok());
  const std::string large = Post(std::string(500 << 10U, 'x'));
  const std::string small = Post("y");
  const Socket first(server.port(), kStranger);
  const Socket second(server.port(), kStranger);
  const Socket begun(server.port(), kStranger);
  ASSERT_TRUE(first.Say(large));
  ASSERT_TRUE(Soon([&] { return holder.held == 1; }));
  ASSERT_TRUE(begun.Say(small.substr(0, small.size() - 1)));
  second.Say(large);  // the server may refuse it before all is sent
  EXPECT_THAT(AnswerOf(server.port(), kStranger, small), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(begun.Say("y"));
  EXPECT_THAT(begun.Hear(), StartsWith("HTTP/1.1 200"));
  holder.release = true;
  EXPECT_THAT(first.Hear(), StartsWith("HTTP/1.1 200"));
}

TEST(HostileClientsTest, LargeRequestsLeaveHalfOfTheThreadsToSmallOnes) {
  HttpServerOptions options;
  options.address = kStranger;
  options.threads = 4;
  LargeHolder holder;
  HttpServer server(options, std::ref(holder));
  ASSERT_TRUE(server.Start().ok());
  const std::string large = Post(std::string(64 << 10U, 'x'));
  const Sockets sockets = Connect(server.port(), 6);
  for (const auto& socket : sockets) ASSERT_TRUE(socket->Say(large));
  ASSERT_TRUE(Soon([&] { return holder.held == 2; }));
  EXPECT_THAT(AnswerOf(server.port(), kStranger, Post("y")), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(holder.held, 2);
  holder.release = true;
  for (const auto& socket : sockets) EXPECT_THAT(socket->Hear(), StartsWith("HTTP/1.1 200"));
}

TEST(HostileClientsTest, ManyLargestReviewsAtOnceFitIntoMemory) {
  AllowDescriptors();
  // As the operator has it.
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  MemoryBudget documents(32U << 20U, 4U << 20U);
  HttpServerOptions options;
  options.address = kStranger;
  HttpServer server(options, [&documents](const HttpRequest& request) {
    return AnswerAdmission(request, documents,
                           [](const AdmissionRequest&) { return AdmissionAnswer{}; });
  });
  ASSERT_TRUE(server.Start().ok());
  const std::string wide = LargestReview(true);
  const std::string narrow = LargestReview(false);
  const std::string small = Post(Review("{}"));
  ASSERT_LE(wide.size(), options.max_body_bytes);
  const size_t before = ResidentBytes();
  size_t most = before;
  std::atomic<int> answered{0};
  std::atomic<int> running{64};
  std::vector<std::jthread> clients;
  for (int i = 0; i < 64; ++i) {
    clients.emplace_back([&, i] {
      const Socket socket(server.port(), kStranger);
      // A server that refuses may do so before all is sent.
      socket.Say(i % 2 == 0 ? wide : narrow);
      if (absl::StartsWith(socket.Hear(), "HTTP/1.1 ")) ++answered;
      --running;
    });
  }
  int friends = 0;
  while (running > 0) {
    // One API server sends what all tenants write.
    EXPECT_THAT(AnswerOf(server.port(), kStranger, small), StartsWith("HTTP/1.1 200")) << friends;
    ++friends;
    most = std::max(most, ResidentBytes());
  }
  clients.clear();
  EXPECT_EQ(answered, 64);
  EXPECT_GT(friends, 0);
  // Of 128 MiB; the rest is for what the operator knows of the cluster.
  if (CountsMemory()) {
    EXPECT_LT(most - before, 80U << 20U);
  }
  RecordProperty("grown_mib", static_cast<int>((most - before) >> 20U));
}

}  // namespace
}  // namespace railhead::kube

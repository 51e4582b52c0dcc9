// SPDX-License-Identifier: Apache-2.0
#include "kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers)
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/certificates.h"
#include "kube/tls_identity.h"

namespace railhead::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const ObjectRef kSecret = {"v1", "secrets", "team", "authority"};

std::string Http(absl::string_view status_line, absl::string_view body) {
  return absl::StrCat("HTTP/1.1 ", status_line, "\r\nContent-Type: application/json\r\n",
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

// Stands for an API server: answers each request, over TLS, with whatever bytes a test wants, and
// may leave the client waiting. Every connection carries one request.
class ScriptedServer {
 public:
  // Returns the answer to a request; nullopt-like empty means: say nothing until the server ends.
  using Script = std::function<std::string(const std::string& request)>;

  ScriptedServer(const KeyedCertificate& certificate, Script script) : script_(std::move(script)) {
    EXPECT_TRUE(identity_.Set(certificate).ok());
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  ~ScriptedServer() {
    stopping_ = true;
    thread_.join();
    close(listener_);
  }

  std::string url() const { return absl::StrCat("https://localhost:", port_); }
  std::vector<std::string> requests() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return requests_;
  }

 private:
  bool Readable(int fd) const {
    while (!stopping_) {
      pollfd entry{fd, POLLIN, 0};
      if (poll(&entry, 1, 5) > 0) return true;
    }
    return false;
  }

  void Run() {
    while (Readable(listener_)) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const timeval patience{5, 0};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      SSL* ssl = SSL_new(identity_.context().get());
      SSL_set_fd(ssl, fd);
      if (SSL_accept(ssl) == 1) Serve(ssl, fd);
      SSL_free(ssl);
      close(fd);
    }
  }

  void Serve(SSL* ssl, int fd) {
    std::string request;
    char buffer[4096];
    size_t body_at = std::string::npos;
    size_t length = 0;
    while (body_at == std::string::npos || request.size() < body_at + length) {
      const int count = SSL_read(ssl, buffer, sizeof(buffer));
      if (count <= 0) return;
      request.append(buffer, static_cast<size_t>(count));
      if (body_at != std::string::npos) continue;
      if (const size_t end = request.find("\r\n\r\n"); end != std::string::npos) {
        body_at = end + 4;
        const size_t field = request.find("Content-Length: ");
        if (field != std::string::npos) length = std::stoul(request.substr(field + 16));
      }
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      requests_.push_back(request);
    }
    const std::string answer = script_(request);
    if (answer.empty()) {
      while (!stopping_ && recv(fd, buffer, 1, MSG_PEEK | MSG_DONTWAIT) != 0) {
        absl::SleepFor(absl::Milliseconds(5));
      }
      return;
    }
    for (size_t sent = 0; sent < answer.size();) {
      const int count =
          SSL_write(ssl, answer.data() + sent, static_cast<int>(answer.size() - sent));
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
    SSL_shutdown(ssl);
  }

  Script script_;
  TlsIdentity identity_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // guards requests_
  std::vector<std::string> requests_;
  std::thread thread_;
};

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);  // as the client asks of its program
    const auto authority = MakeAuthority("cluster", absl::Now(), absl::Hours(1));
    ASSERT_TRUE(authority.ok());
    authority_ = *authority;
    const auto leaf =
        SignServingCertificate(authority_, {"localhost"}, absl::Now(), absl::Hours(1));
    ASSERT_TRUE(leaf.ok());
    leaf_ = *leaf;
    ca_file_ = absl::StrCat(testing::TempDir(), "railhead-client-", getpid(), ".crt");
    std::ofstream(ca_file_) << authority_.certificate;
  }
  void TearDown() override { std::filesystem::remove(ca_file_); }

  ClientOptions Options(const std::string& url) {
    ClientOptions options;
    options.server = url;
    options.ca_file = ca_file_;
    options.token = [this] { return absl::StatusOr<std::string>(token_); };
    return options;
  }

  KeyedCertificate authority_;
  KeyedCertificate leaf_;
  std::string ca_file_;
  std::string token_ = "sesame-1";
};

TEST(ObjectRefTest, PathsNameOneObject) {
  EXPECT_EQ(kSecret.Path(), "/api/v1/namespaces/team/secrets/authority");
  const ObjectRef configuration = {"admissionregistration.k8s.io/v1",
                                   "mutatingwebhookconfigurations", "", "hook"};
  EXPECT_EQ(configuration.Path(),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hook");
  EXPECT_EQ((ObjectRef{"v1", "secrets", "..", "a/../b?c=%20#"}).Path(),
            "/api/v1/namespaces/%2E%2E/secrets/a%2F..%2Fb%3Fc%3D%2520%23");
}

TEST(ObjectRefTest, ASubresourceIsPartOfThePath) {
  const ObjectRef status = {"v1", "nodes", "", "n1", "status"};
  EXPECT_EQ(status.Path(), "/api/v1/nodes/n1/status");
  EXPECT_EQ(status.ToString(), "nodes/status n1");
}

TEST(StatusFromAnswerTest, KeepsTheServersReason) {
  const absl::Status conflict = StatusFromAnswer(
      "patch x", 409, R"({"reason": "Conflict", "message": "the object has been modified"})");
  EXPECT_EQ(conflict.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(conflict.message(),
            "patch x: the API server answered 409 Conflict: the object has been modified");
  const std::vector<std::pair<int, absl::StatusCode>> codes = {
      {400, absl::StatusCode::kInvalidArgument},   {401, absl::StatusCode::kUnauthenticated},
      {403, absl::StatusCode::kPermissionDenied},  {404, absl::StatusCode::kNotFound},
      {410, absl::StatusCode::kOutOfRange},        {422, absl::StatusCode::kInvalidArgument},
      {429, absl::StatusCode::kResourceExhausted}, {500, absl::StatusCode::kUnavailable},
      {503, absl::StatusCode::kUnavailable},       {504, absl::StatusCode::kDeadlineExceeded},
      {302, absl::StatusCode::kUnavailable}};
  for (const auto& [http, code] : codes) {
    EXPECT_EQ(StatusFromAnswer("x", http, "<html>").code(), code) << http;
  }
  EXPECT_EQ(StatusFromAnswer("x", 409, R"({"reason": "AlreadyExists"})").code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(ClientTest, GetsAndPatches) {
  ScriptedServer server(leaf_, [](const std::string&) { return Http("200 OK", R"({"a": 1})"); });
  RestClient client(Options(server.url()));
  const auto got = Get(client, kSecret);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, Json::parse(R"({"a": 1})"));
  EXPECT_EQ(Patch(client, kSecret, PatchType::kMerge, {{"b", 2}}).status(), absl::OkStatus());
  EXPECT_EQ(Patch(client, kSecret, PatchType::kJson, Json::array()).status(), absl::OkStatus());

  const std::vector<std::string> requests = server.requests();
  ASSERT_THAT(requests, SizeIs(3));
  EXPECT_THAT(requests[0], AllOf(HasSubstr("GET /api/v1/namespaces/team/secrets/authority HTTP"),
                                 HasSubstr("Authorization: Bearer sesame-1\r\n"),
                                 HasSubstr("User-Agent: railhead/")));
  EXPECT_THAT(requests[1], AllOf(HasSubstr("PATCH /api/v1/namespaces/team/secrets/authority HTTP"),
                                 HasSubstr("Content-Type: application/merge-patch+json\r\n"),
                                 HasSubstr("\r\n\r\n{\"b\":2}")));
  EXPECT_THAT(requests[2], HasSubstr("Content-Type: application/json-patch+json\r\n"));
}

TEST_F(ClientTest, TriesAgainOnceWhenTheTokenRotated) {
  ScriptedServer server(leaf_, [this](const std::string& request) {
    token_ = "sesame-2";
    return absl::StrContains(request, "sesame-2") ? Http("200 OK", "{}")
                                                  : Http("401 Unauthorized", "{}");
  });
  RestClient client(Options(server.url()));
  EXPECT_TRUE(Get(client, kSecret).ok());
  EXPECT_THAT(server.requests(), SizeIs(2));
}

TEST_F(ClientTest, DoesNotInsistWithARefusedToken) {
  ScriptedServer server(leaf_, [](const std::string&) {
    return Http("401 Unauthorized", R"({"reason": "Unauthorized", "message": "Unauthorized"})");
  });
  RestClient client(Options(server.url()));
  const absl::Status status = Get(client, kSecret).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("get secrets team/authority"), Not(HasSubstr("sesame"))));
  EXPECT_THAT(server.requests(), SizeIs(1));
}

TEST_F(ClientTest, ReportsABrokenTokenSource) {
  ClientOptions options = Options("https://localhost:1");
  options.token = [] { return absl::FailedPreconditionError("no token file"); };
  RestClient client(options);
  EXPECT_EQ(Get(client, kSecret).status().message(), "no token file");
}

TEST_F(ClientTest, ConnectsOnlyToTheCluster) {
  const auto stranger = MakeAuthority("cluster", absl::Now(), absl::Hours(1));
  ASSERT_TRUE(stranger.ok());
  const auto foreign =
      SignServingCertificate(*stranger, {"localhost"}, absl::Now(), absl::Hours(1));
  const auto misnamed =
      SignServingCertificate(authority_, {"elsewhere"}, absl::Now(), absl::Hours(1));
  const auto expired =
      SignServingCertificate(authority_, {"localhost"}, absl::Now(), -absl::Minutes(1));
  for (const auto& certificate : {foreign, misnamed, expired}) {
    ASSERT_TRUE(certificate.ok());
    ScriptedServer server(*certificate, [](const std::string&) { return Http("200 OK", "{}"); });
    RestClient client(Options(server.url()));
    EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(server.requests(), SizeIs(0));
  }
}

TEST_F(ClientTest, NeverSendsTheTokenInTheClear) {
  RestClient client(Options("http://localhost:1"));
  const absl::Status status = Get(client, kSecret).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("http"));
}

TEST_F(ClientTest, DoesNotFollowRedirects) {
  ScriptedServer server(leaf_, [](const std::string&) {
    return "HTTP/1.1 302 Found\r\nLocation: https://localhost:1/\r\nContent-Length: 0\r\n\r\n";
  });
  RestClient client(Options(server.url()));
  EXPECT_THAT(std::string(Get(client, kSecret).status().message()), HasSubstr("302"));
}

TEST_F(ClientTest, GivesUpOnASilentServer) {
  ScriptedServer server(leaf_, [](const std::string&) { return std::string(); });
  ClientOptions options = Options(server.url());
  options.timeout = absl::Milliseconds(200);
  RestClient client(options);
  EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ClientTest, ReportsHalfAnswers) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":"),
        std::string("HTTP/1.1 200 OK\r\n"), std::string("garbage"), Http("200 OK", "{\"a\":"),
        Http("200 OK", "")}) {
    ScriptedServer server(leaf_, [&answer](const std::string&) { return answer; });
    ClientOptions options = Options(server.url());
    options.timeout = absl::Seconds(2);
    RestClient client(options);
    EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kUnavailable) << answer;
  }
}

TEST_F(ClientTest, StopsReadingAnAnswerThatIsTooLarge) {
  const std::string large = Http("200 OK", "\"" + std::string(5000, 'x') + "\"");
  const std::string headers =
      "HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x') + "\r\nContent-Length: 2\r\n\r\n{}";
  for (const std::string& answer : {large, headers}) {
    ScriptedServer server(leaf_, [&answer](const std::string&) { return answer; });
    ClientOptions options = Options(server.url());
    options.max_answer_bytes = 4096;
    RestClient client(options);
    EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST_F(ClientTest, CancelEndsACallInProgress) {
  std::atomic<bool> asked{false};
  ScriptedServer server(leaf_, [&asked](const std::string&) {
    asked = true;
    return std::string();
  });
  ClientOptions options = Options(server.url());
  options.timeout = absl::Seconds(60);
  RestClient client(options);
  std::thread canceller([&] {
    while (!asked) absl::SleepFor(absl::Milliseconds(5));
    client.Cancel();
  });
  EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
  EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace railhead::kube

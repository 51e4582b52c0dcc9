// SPDX-License-Identifier: Apache-2.0
#include "kube/rest_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers)
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/auth/certificates.h"
#include "kube/auth/tls_identity.h"
#include "kube/cache/watch.h"
#include "kube/testing/soon.h"

namespace railhead::kube {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const ObjectRef kSecret = {"v1", "secrets", "team", "authority"};

std::string Http(absl::string_view status_line, absl::string_view body) {
  return absl::StrCat("HTTP/1.1 ", status_line, "\r\nContent-Type: application/json\r\n",
                      "Content-Length: ", body.size(), "\r\n\r\n", body);
}

// An answer that ends so is sent without this, and nothing comes after it.
const std::string& ThenSilence() {
  static const std::string& kMark = *new std::string("\x01then silence");
  return kMark;
}

// The head of an answer of any length, and one piece of it.
std::string StreamHead() {
  return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
}
std::string Chunk(absl::string_view bytes) {
  return absl::StrCat(absl::Hex(bytes.size()), "\r\n", bytes, "\r\n");
}
std::string EventLine(absl::string_view type, int version) {
  return absl::StrCat(R"({"type":")", type, R"(","object":{"metadata":{"resourceVersion":")",
                      version, R"("}}})", "\n");
}

// Returns a listener at any port of the loopback.
int ListenOnLoopback(int backlog, int& port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener, backlog), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  port = ntohs(address.sin_port);
  return listener;
}

// Stands for an API server: answers each request, over TLS, with whatever bytes a test wants, and
// may leave the client waiting. Every connection carries one request.
class ScriptedServer {
 public:
  // Returns the answer to a request; see ThenSilence.
  using Script = std::function<std::string(const std::string& request)>;

  ScriptedServer(const KeyedCertificate& certificate, Script script) : script_(std::move(script)) {
    EXPECT_TRUE(identity_.Set(certificate).ok());
    listener_ = ListenOnLoopback(16, port_);
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
  // Those that came with the requests, in PEM; empty where there was none.
  std::vector<std::string> client_certificates() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return client_certificates_;
  }

 private:
  static std::string PeerCertificate(const SSL* ssl) {
    X509* certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == nullptr) return "";
    BIO* memory = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(memory, certificate);
    char* data = nullptr;
    const auto size = BIO_get_mem_data(memory, &data);
    std::string pem(data, static_cast<size_t>(size));
    BIO_free(memory);
    X509_free(certificate);
    return pem;
  }

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
      const timeval patience{60, 0};  // busy machines are slow
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      SSL* ssl = SSL_new(identity_.context().get());
      SSL_set_fd(ssl, fd);
      // Asks for a certificate, and takes any: tests look at which one came.
      const unsigned char name = 't';  // who asks for certificates must name its sessions
      SSL_set_session_id_context(ssl, &name, 1);
      SSL_set_verify(ssl, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
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
      client_certificates_.push_back(PeerCertificate(ssl));
    }
    std::string answer = script_(request);
    const bool falls_silent = absl::EndsWith(answer, ThenSilence());
    if (falls_silent) answer.resize(answer.size() - ThenSilence().size());
    for (size_t sent = 0; sent < answer.size();) {
      const int count =
          SSL_write(ssl, answer.data() + sent, static_cast<int>(answer.size() - sent));
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
    while (falls_silent && !stopping_ && recv(fd, buffer, 1, MSG_DONTWAIT) != 0) {
      absl::SleepFor(absl::Milliseconds(5));
    }
    SSL_shutdown(ssl);
  }

  Script script_;
  TlsIdentity identity_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;  // guards both below
  std::vector<std::string> requests_;
  std::vector<std::string> client_certificates_;
  std::thread thread_;
};

// An HTTP proxy that answers one request, with 403.
class RefusingProxy {
 public:
  RefusingProxy() {
    listener_ = ListenOnLoopback(1, port_);
    thread_ = std::thread([this] { Run(); });
  }
  ~RefusingProxy() {
    shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(listener_);
  }
  int port() const { return port_; }
  // Call once, after the client's.
  std::string request() {
    thread_.join();
    return request_;
  }

 private:
  void Run() {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    char buffer[4096];
    while (!absl::EndsWith(request_, "\r\n\r\n")) {
      const ssize_t count = recv(fd, buffer, sizeof(buffer), 0);
      if (count <= 0) break;
      request_.append(buffer, static_cast<size_t>(count));
    }
    const std::string answer = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    close(fd);
  }

  int listener_ = -1;
  int port_ = 0;
  std::string request_;
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
    ca_file_ = absl::StrCat(::testing::TempDir(), "railhead-client-", getpid(), ".crt");
    std::ofstream(ca_file_) << authority_.certificate;
  }
  void TearDown() override { std::filesystem::remove(ca_file_); }

  ClientOptions Options(const std::string& url) {
    ClientOptions options;
    options.server = url;
    options.ca_file = ca_file_;
    options.token = [this] { return absl::StatusOr<std::string>(token_); };
    options.timeout = absl::Seconds(60);  // busy machines are slow
    return options;
  }

  KeyedCertificate authority_;
  KeyedCertificate leaf_;
  std::string ca_file_;
  std::string token_ = "sesame-1";
};

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

TEST_F(ClientTest, TheServersTimeOfDayIsHeard) {
  ScriptedServer server(leaf_, [](const std::string&) {
    return "HTTP/1.1 404 Not Found\r\ndate: Fri, 15 Jan 2027 08:00:00 GMT\r\n"
           "Content-Length: 2\r\n\r\n{}";
  });
  ServerClock clock;
  ClientOptions options = Options(server.url());
  options.server_clock = &clock;
  RestClient client(options);
  EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kNotFound);
  EXPECT_LT(absl::AbsDuration(clock.Now() - absl::FromUnixSeconds(1800000000)), absl::Minutes(2));
}

TEST_F(ClientTest, AListIsReadObjectByObject) {
  std::string body =
      R"({"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}},)"
      R"( {"metadata": {"name": "b"}}]})";
  ScriptedServer server(leaf_, [&](const std::string&) { return Http("200 OK", body); });
  RestClient client(Options(server.url()));
  std::vector<std::string> names;
  absl::Status says;
  const auto list = [&] {
    names.clear();
    return ListOnce(client, {"v1", "pods", "", ""}, {}, [&](const Json& object) {
      names.push_back(StringAt(object, {"metadata", "name"}));
      return says;
    });
  };
  const absl::StatusOr<ListPage> page = list();
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->resource_version, "7");
  EXPECT_THAT(names, ElementsAre("a", "b"));

  says = absl::AbortedError("enough");
  EXPECT_EQ(list().status(), says);
  EXPECT_THAT(names, ElementsAre("a"));

  says = absl::OkStatus();
  body.resize(body.size() - 2);
  EXPECT_EQ(list().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(names, ElementsAre("a", "b"));
  body = R"({"metadata": {"resourceVersion": "7"}, "items": [7]})";
  EXPECT_EQ(list().status().code(), absl::StatusCode::kDataLoss);
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

// As behind a load balancer or a tunnel that the certificate does not name.
TEST_F(ClientTest, TheCertificateMayHaveTheNameThatIsExpected) {
  const auto misnamed =
      SignServingCertificate(authority_, {"api.internal"}, absl::Now(), absl::Hours(1));
  ASSERT_TRUE(misnamed.ok());
  ScriptedServer server(*misnamed, [](const std::string&) { return Http("200 OK", "{}"); });
  ClientOptions options = Options(server.url() + "/of/a/gateway");
  options.server_name = "api.internal";
  RestClient client(options);
  const absl::Status got = Get(client, kSecret).status();
  EXPECT_TRUE(got.ok()) << got;
  const std::string host = server.url().substr(std::string("https://").size());
  EXPECT_THAT(server.requests(),
              ElementsAre(AllOf(HasSubstr("GET /of/a/gateway/api/v1/namespaces/team/secrets/"),
                                HasSubstr(absl::StrCat("Host: ", host, "\r\n")))));
  options.server_name = "api.external";
  RestClient other(options);
  EXPECT_EQ(Get(other, kSecret).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(server.requests(), SizeIs(1));
}

TEST_F(ClientTest, AProxyThatRefusesIsNamedWithoutItsPassword) {
  RefusingProxy proxy;
  ClientOptions options = Options("https://cluster.example:6443");
  options.proxy = absl::StrCat("http://me:open@127.0.0.1:", proxy.port());
  RestClient client(options);
  const absl::Status status = Get(client, kSecret).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr(absl::StrCat(
                "get secrets team/authority at https://cluster.example:6443 through the proxy "
                "http://127.0.0.1:",
                proxy.port(), ": ")),
            HasSubstr("403"), Not(HasSubstr("open"))));
  // The proxy never sees the token.
  EXPECT_THAT(proxy.request(),
              AllOf(HasSubstr("CONNECT cluster.example:6443 HTTP/1.1\r\n"),
                    HasSubstr("Proxy-Authorization: Basic "), Not(HasSubstr("sesame"))));
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
  ScriptedServer server(leaf_, [](const std::string&) { return ThenSilence(); });
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
    RestClient client(Options(server.url()));
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
    return ThenSilence();
  });
  RestClient client(Options(server.url()));
  std::thread canceller([&] {
    while (!asked) absl::SleepFor(absl::Milliseconds(5));
    client.Cancel();
  });
  EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
  EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ClientTest, ACallMayHaveLessTimeThanTheClientAllows) {
  ScriptedServer server(leaf_, [](const std::string&) { return ThenSilence(); });
  RestClient client(Options(server.url()));
  ApiRequest request{"GET", "/x", "", "", "get x"};
  request.timeout = absl::Milliseconds(200);
  EXPECT_EQ(client.Call(request).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ClientTest, ACallWithLessThanAMillisecondLeftEndsToo) {
  ScriptedServer server(leaf_, [](const std::string&) { return ThenSilence(); });
  RestClient client(Options(server.url()));
  std::mutex mutex;
  std::condition_variable_any condition;
  std::jthread canceller([&](const std::stop_token& stop) {
    std::unique_lock<std::mutex> lock(mutex);
    condition.wait_for(lock, stop, std::chrono::seconds(60), [] { return false; });
    client.Cancel();
  });
  for (const absl::Duration left :
       {absl::Microseconds(300), absl::Nanoseconds(1), absl::ZeroDuration(), -absl::Seconds(1)}) {
    ApiRequest request{"GET", "/x", "", "", "get x"};
    request.timeout = left;
    EXPECT_EQ(client.Call(request).status().code(), absl::StatusCode::kDeadlineExceeded) << left;
  }
}

TEST_F(ClientTest, AClientCertificateStandsForAToken) {
  ScriptedServer server(leaf_, [](const std::string&) { return Http("200 OK", "{}"); });
  const auto mine = SignServingCertificate(authority_, {"me"}, absl::Now(), absl::Hours(1));
  ASSERT_TRUE(mine.ok());
  ClientOptions options;
  options.server = server.url();
  options.ca_pem = authority_.certificate;
  options.certificate_pem = mine->certificate;
  options.key_pem = mine->key;
  RestClient client(options);
  EXPECT_TRUE(Get(client, kSecret).ok());
  EXPECT_THAT(server.client_certificates(), ElementsAre(mine->certificate));
  EXPECT_THAT(server.requests()[0], Not(HasSubstr("Authorization")));
}

TEST_F(ClientTest, AnAuthorityInMemoryIsTheOnlyOneBelieved) {
  const auto stranger = MakeAuthority("cluster", absl::Now(), absl::Hours(1));
  ASSERT_TRUE(stranger.ok());
  ScriptedServer server(leaf_, [](const std::string&) { return Http("200 OK", "{}"); });
  for (const std::string& authority : {stranger->certificate, std::string()}) {
    ClientOptions options = Options(server.url());
    options.ca_pem = authority;
    options.ca_file = authority.empty() ? "" : ca_file_;
    RestClient client(options);
    EXPECT_EQ(Get(client, kSecret).status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_THAT(server.requests(), SizeIs(0));
}

const ObjectRef kWatchedPods = {"v1", "pods", "team", ""};

WatchOptions From(const std::string& version) {
  WatchOptions options;
  options.resource_version = version;
  return options;
}

// Takes all events, and puts down their versions.
WatchDecoder::OnEvent Versions(std::vector<std::string>& versions) {
  return [&versions](const WatchEvent& event) {
    versions.push_back(event.resource_version);
    return absl::OkStatus();
  };
}

TEST_F(ClientTest, AWatchHandsOnEventsUntilTheServerEndsIt) {
  const std::string events = EventLine("ADDED", 8) + EventLine("BOOKMARK", 9);
  ScriptedServer server(leaf_, [&events](const std::string&) {
    return StreamHead() + Chunk(events.substr(0, 11)) + Chunk(events.substr(11)) + Chunk("");
  });
  RestClient client(Options(server.url()));
  std::vector<std::string> versions;
  EXPECT_EQ(Watch(client, kWatchedPods, From("7&x"), Versions(versions)), absl::OkStatus());
  EXPECT_THAT(versions, ElementsAre("8", "9"));
  ASSERT_THAT(server.requests(), SizeIs(1));
  EXPECT_THAT(server.requests()[0],
              HasSubstr("GET /api/v1/namespaces/team/pods?watch=true&allowWatchBookmarks=true"
                        "&resourceVersion=7%26x&timeoutSeconds=300 HTTP"));
}

TEST_F(ClientTest, AWatchThatBreaksOffIsAnErrorAfterItsEvents) {
  ScriptedServer server(leaf_, [](const std::string&) {
    return StreamHead() + Chunk(EventLine("ADDED", 8) + EventLine("ADDED", 9).substr(0, 20));
  });
  RestClient client(Options(server.url()));
  std::vector<std::string> versions;
  EXPECT_EQ(Watch(client, kWatchedPods, From("7"), Versions(versions)).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_THAT(versions, ElementsAre("8"));
}

TEST_F(ClientTest, AnExpiredWatchSaysSoByStatusOrByEvent) {
  const std::string body = R"({"code": 410, "reason": "Expired", "message": "too old"})";
  for (const std::string& answer :
       {Http("410 Gone", body),
        StreamHead() + Chunk(absl::StrCat(R"({"type":"ERROR","object":)", body, "}\n"))}) {
    ScriptedServer server(leaf_, [&answer](const std::string&) { return answer; });
    RestClient client(Options(server.url()));
    std::vector<std::string> versions;
    const absl::Status end = Watch(client, kWatchedPods, From("7"), Versions(versions));
    EXPECT_EQ(end.code(), absl::StatusCode::kOutOfRange) << answer;
    EXPECT_THAT(std::string(end.message()), HasSubstr("Expired: too old"));
    EXPECT_THAT(versions, SizeIs(0));
  }
}

TEST_F(ClientTest, ASilentWatchIsGivenUp) {
  ScriptedServer server(leaf_, [](const std::string&) {
    return StreamHead() + Chunk(EventLine("ADDED", 8)) + ThenSilence();
  });
  RestClient client(Options(server.url()));
  WatchOptions options = From("7");
  options.silence = absl::Milliseconds(300);
  std::vector<std::string> versions;
  // Again where a busy machine was silent already before its event.
  EXPECT_TRUE(testing::Soon([&] {
    const absl::Status end = Watch(client, kWatchedPods, options, Versions(versions));
    EXPECT_EQ(end.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(end.message()), HasSubstr("no data for 300ms"));
    return !versions.empty();
  }));
  EXPECT_THAT(versions, ElementsAre("8"));
}

TEST_F(ClientTest, AWatchIsStoppedByItsOwnStopOrByTheClients) {
  for (const bool by_client : {false, true}) {
    ScriptedServer server(leaf_, [](const std::string& request) {
      return absl::StrContains(request, "watch=true")
                 ? StreamHead() + Chunk(EventLine("ADDED", 8)) + ThenSilence()
                 : Http("200 OK", "{}");
    });
    RestClient client(Options(server.url()));
    std::stop_source stop;
    WatchOptions options = From("7");
    options.stop = stop.get_token();
    const absl::Status end = Watch(client, kWatchedPods, options, [&](const WatchEvent&) {
      by_client ? client.Cancel() : static_cast<void>(stop.request_stop());
      return absl::OkStatus();
    });
    EXPECT_EQ(end.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(Get(client, kSecret).ok(), !by_client);
  }
}

TEST_F(ClientTest, AWatchEndsWithItsReceiversError) {
  ScriptedServer server(leaf_, [](const std::string&) {
    return StreamHead() + Chunk(EventLine("ADDED", 8)) + ThenSilence();
  });
  RestClient client(Options(server.url()));
  EXPECT_EQ(Watch(client, kWatchedPods, From("7"),
                  [](const WatchEvent&) { return absl::InternalError("full"); }),
            absl::InternalError("full"));
}

TEST_F(ClientTest, AWatchIsAskedForAgainWhenTheTokenRotated) {
  ScriptedServer server(leaf_, [this](const std::string& request) {
    token_ = "sesame-2";
    return absl::StrContains(request, "sesame-2")
               ? StreamHead() + Chunk(EventLine("ADDED", 8)) + Chunk("")
               : Http("401 Unauthorized", "{}");
  });
  RestClient client(Options(server.url()));
  std::vector<std::string> versions;
  EXPECT_EQ(Watch(client, kWatchedPods, From("7"), Versions(versions)), absl::OkStatus());
  EXPECT_THAT(versions, ElementsAre("8"));
}

}  // namespace
}  // namespace railhead::kube

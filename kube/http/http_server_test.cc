// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kube/auth/certificates.h"
#include "kube/testing/http_client.h"
#include "kube/testing/soon.h"

namespace railhead::kube {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::HttpClient;
using ::testing::StartsWith;

HttpResponse Echo(const HttpRequest& request) {
  return {request.path == "/teapot" ? 418 : 200, "text/plain",
          absl::StrCat(request.method, " ", request.path, " ", request.body)};
}

HttpServerOptions Loopback() {
  HttpServerOptions options;
  options.address = "127.0.0.1";
  options.threads = 2;
  return options;
}

// A TCP connection that says exactly what a test wants. Reads give up after a minute.
class RawClient {
 public:
  explicit RawClient(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{60, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~RawClient() { close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool Say(const std::string& text) const {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  int fd() const { return fd_; }
  // A request on an open connection, and whether it was answered.
  bool Ask() const {
    if (!Say("GET /again HTTP/1.1\r\nHost: x\r\n\r\n")) return false;
    std::string answer;
    char buffer[4096];
    while (answer.find("GET /again ") == std::string::npos) {
      const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
      if (count <= 0) return false;
      answer.append(buffer, static_cast<size_t>(count));
    }
    return true;
  }
  // Everything until the server closes the connection, or "(still open)" at its end.
  std::string ReadToEnd() const {
    std::string all;
    char buffer[4096];
    for (;;) {
      const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
      if (count == 0) return all;
      if (count < 0) return errno == ECONNRESET ? all : all + "(still open)";
      all.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  int fd_;
};

// All that the server answers to `text` until it closes the connection.
std::string Answers(int port, const std::string& text) {
  const RawClient client(port);
  client.Say(text);
  return client.ReadToEnd();
}

// The first line of the answer to what `text` says; the connection must end with it.
std::string FirstLine(int port, const std::string& text) {
  const std::string answer = Answers(port, text);
  return answer.substr(0, answer.find("\r\n"));
}

TEST(HttpServerTest, AnswersSeveralRequestsOfOneConnection) {
  HttpServer server(Loopback(), Echo);
  ASSERT_TRUE(server.Start().ok());
  httplib::Client client = HttpClient("127.0.0.1", server.port());
  client.set_keep_alive(true);
  EXPECT_EQ(client.Get("/a?b=c")->body, "GET /a ");
  EXPECT_EQ(client.Post("/b", "{}", "application/json")->body, "POST /b {}");
  EXPECT_EQ(client.Get("/teapot")->status, 418);
  EXPECT_EQ(client.Put("/b", "{}", "application/json")->status, 405);
  const auto head = client.Head("/a");
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(head->get_header_value("Content-Length"), "7");
}

TEST(HttpServerTest, AnswersRequestsThatWereSentTogether) {
  HttpServer server(Loopback(), Echo);
  ASSERT_TRUE(server.Start().ok());
  const std::string answers =
      Answers(server.port(),
              "GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}\r\n"
              "GET /3 HTTP/1.1\r\nConnection: close\r\n\r\nGET /4 HTTP/1.1\r\n\r\n");
  EXPECT_LT(answers.find("GET /1 "), answers.find("POST /2 {}"));
  EXPECT_LT(answers.find("POST /2 {}"), answers.find("GET /3 "));
  EXPECT_EQ(answers.find("GET /4 "), std::string::npos);
}

TEST(HttpServerTest, TellsAClientThatAsksToGoOnWithItsBody) {
  HttpServer server(Loopback(), Echo);
  ASSERT_TRUE(server.Start().ok());
  const RawClient client(server.port());
  client.Say(
      "POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
      "Connection: close\r\n\r\n");
  char first[25];
  ASSERT_EQ(recv(client.fd(), first, sizeof(first), MSG_WAITALL), 25);
  EXPECT_EQ(std::string(first, 25), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Say("{}");
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(HttpServerTest, AHandlerThatThrowsIsAnAnswer) {
  HttpServer server(Loopback(), [](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/bad") throw std::runtime_error("bad");
    return Echo(request);
  });
  ASSERT_TRUE(server.Start().ok());
  httplib::Client client = HttpClient("127.0.0.1", server.port());
  EXPECT_EQ(client.Get("/bad")->status, 500);
  EXPECT_EQ(client.Get("/a")->status, 200);
}

TEST(HttpServerTest, ListensOnBothFamiliesByDefault) {
  HttpServerOptions options = Loopback();
  options.address.clear();
  HttpServer server(options, Echo);
  ASSERT_TRUE(server.Start().ok());
  EXPECT_TRUE(HttpClient("127.0.0.1", server.port()).Get("/"));
  EXPECT_TRUE(HttpClient("::1", server.port()).Get("/"));
}

TEST(HttpServerTest, ListensOnAnIpv6AddressOnly) {
  HttpServerOptions options = Loopback();
  options.address = "::1";
  std::atomic<int> asked{0};
  HttpServer server(options, [&asked](const HttpRequest& request) {
    ++asked;
    return Echo(request);
  });
  ASSERT_TRUE(server.Start().ok());
  EXPECT_TRUE(HttpClient("::1", server.port()).Get("/"));
  HttpClient("127.0.0.1", server.port()).Get("/");  // another program may have that port
  EXPECT_EQ(asked, 1);
}

TEST(HttpServerTest, SaysThatAPortIsTaken) {
  HttpServer first(Loopback(), Echo);
  ASSERT_TRUE(first.Start().ok());
  HttpServerOptions options = Loopback();
  options.port = first.port();
  HttpServer second(options, Echo);
  const absl::Status status = second.Start();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("port ", first.port(), ": Address already in use")));
}

TEST(HttpServerTest, RefusesLargeBodiesHoweverTheyAreSent) {
  HttpServerOptions options = Loopback();
  options.max_body_bytes = 1000;
  HttpServer server(options, Echo);
  ASSERT_TRUE(server.Start().ok());
  httplib::Client client = HttpClient("127.0.0.1", server.port());
  EXPECT_EQ(client.Post("/", std::string(1000, 'x'), "application/json")->status, 200);
  EXPECT_EQ(client.Post("/", std::string(1001, 'x'), "application/json")->status, 413);

  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
  std::string chunks;
  for (int i = 0; i < 100; ++i) chunks += "400\r\n" + std::string(1024, 'x') + "\r\n";
  EXPECT_THAT(FirstLine(server.port(), head + "Transfer-Encoding: chunked\r\n\r\n" + chunks),
              AnyOf(StartsWith("HTTP/1.1 4"), ""));
  EXPECT_THAT(FirstLine(server.port(), "GET / HTTP/1.1\r\nX: " + std::string(200'000, 'x')),
              AnyOf(StartsWith("HTTP/1.1 4"), ""));
  EXPECT_THAT(FirstLine(server.port(), std::string(200'000, 'x')),
              AnyOf(StartsWith("HTTP/1.1 4"), ""));
  EXPECT_TRUE(client.Get("/"));
}

TEST(HttpServerTest, DoesNotUnpackBodies) {
  HttpServer server(Loopback(), Echo);
  ASSERT_TRUE(server.Start().ok());
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n";
  EXPECT_EQ(FirstLine(server.port(), head + "Content-Encoding: gzip\r\n\r\nabcd"),
            "HTTP/1.1 415 Unsupported Media Type");
  EXPECT_EQ(
      FirstLine(server.port(), head + "Content-Type: multipart/form-data; boundary=x\r\n\r\nabcd"),
      "HTTP/1.1 415 Unsupported Media Type");
}

TEST(HttpServerTest, EndsRequestsThatDoNotEnd) {
  HttpServerOptions options = Loopback();
  options.head_timeout = absl::Milliseconds(100);
  options.body_timeout = absl::Milliseconds(100);
  HttpServer server(options, Echo);
  ASSERT_TRUE(server.Start().ok());
  for (const std::string& start :
       {std::string(), std::string("GET / HT"), std::string("GET / HTTP/1.1\r\nHost: x\r\n"),
        std::string("POST / HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
                    "{")}) {
    EXPECT_THAT(FirstLine(server.port(), start), AnyOf(StartsWith("HTTP/1.1 4"), "")) << start;
  }
}

// Each byte arrives long before any timeout of a single read would fire.
TEST(HttpServerTest, EndsRequestsThatTrickle) {
  HttpServerOptions options = Loopback();
  options.head_timeout = absl::Milliseconds(200);
  HttpServer server(options, Echo);
  ASSERT_TRUE(server.Start().ok());
  const RawClient client(server.port());
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  client.Say("GET / HTTP/1.1\r\nX: ");
  while (client.Say("x")) {
    ASSERT_LT(absl::Now(), deadline) << "the server keeps reading";
    absl::SleepFor(absl::Milliseconds(10));
  }
}

// Many more connections than threads: all are served, and none is closed to make room for another.
TEST(HttpServerTest, IdleConnectionsNeitherBlockNorEnd) {
  HttpServer server(Loopback(), Echo);
  ASSERT_TRUE(server.Start().ok());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    ASSERT_TRUE(clients.back()->Ask()) << i;
  }
  for (const auto& client : clients) ASSERT_TRUE(client->Ask());
}

TEST(HttpServerTest, StopFinishesTheRequestInProgress) {
  std::atomic<bool> entered{false};
  std::atomic<bool> release{false};
  HttpServer server(Loopback(), [&](const HttpRequest& request) {
    entered = true;
    while (!release) absl::SleepFor(absl::Milliseconds(1));
    return Echo(request);
  });
  ASSERT_TRUE(server.Start().ok());
  const int port = server.port();
  std::string body;
  std::thread caller([&] {
    httplib::Client client = HttpClient("127.0.0.1", port);
    client.set_keep_alive(true);
    if (const auto result = client.Get("/")) body = result->body;
  });
  while (!entered) absl::SleepFor(absl::Milliseconds(1));
  std::thread stopper([&] { server.Stop(); });
  release = true;
  stopper.join();
  caller.join();
  EXPECT_EQ(body, "GET / ");
  entered = false;
  HttpClient("127.0.0.1", port).Get("/");  // another program may have the port by now
  EXPECT_FALSE(entered);
}

// The common name of the certificate that the server shows; empty when it shows none.
std::string ShownName(int port) {
  const RawClient client(port);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, client.fd());
  std::string name;
  if (SSL_connect(ssl) == 1) {
    char text[256] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(ssl)), NID_commonName,
                              text, sizeof(text));
    name = text;
  }
  SSL_free(ssl);
  SSL_CTX_free(context);
  return name;
}

TEST(HttpServerTest, SwapsCertificatesWhileServing) {
  const auto authority = MakeAuthority("test", absl::Now(), absl::Hours(1));
  ASSERT_TRUE(authority.ok());
  TlsIdentity identity;
  HttpServerOptions options = Loopback();
  options.identity = &identity;
  HttpServer server(options, Echo);
  ASSERT_TRUE(server.Start().ok());
  EXPECT_EQ(ShownName(server.port()), "");

  const auto first = SignServingCertificate(*authority, {"first"}, absl::Now(), absl::Hours(1));
  ASSERT_TRUE(identity.Set(*first).ok());
  EXPECT_EQ(ShownName(server.port()), "first");
  httplib::SSLClient old_client("127.0.0.1", server.port());
  old_client.set_read_timeout(60);
  old_client.enable_server_certificate_verification(false);
  old_client.set_keep_alive(true);
  ASSERT_TRUE(old_client.Get("/a"));

  const auto second = SignServingCertificate(*authority, {"second"}, absl::Now(), absl::Hours(1));
  ASSERT_TRUE(identity.Set(*second).ok());
  EXPECT_EQ(ShownName(server.port()), "second");
  EXPECT_EQ(old_client.Get("/b")->body, "GET /b ");

  EXPECT_FALSE(identity.Set({first->certificate, second->key}).ok());
  EXPECT_FALSE(identity.Set({"", ""}).ok());
  EXPECT_EQ(ShownName(server.port()), "second");
}

// What a server needs that shows a certificate for "leaf". Must outlive the server.
struct TlsLeaf {
  explicit TlsLeaf(absl::Duration head_timeout) {
    const auto authority = MakeAuthority("test", absl::Now(), absl::Hours(1));
    const auto leaf = SignServingCertificate(*authority, {"leaf"}, absl::Now(), absl::Hours(1));
    EXPECT_TRUE(identity.Set(*leaf).ok());
    options.identity = &identity;
    options.head_timeout = head_timeout;
  }
  TlsIdentity identity;
  HttpServerOptions options = Loopback();
};

// More clients than threads begin a handshake and fall silent, for longer than this test runs.
TEST(HttpServerTest, UnfinishedHandshakesHoldNoThread) {
  const TlsLeaf leaf(absl::Seconds(100));
  HttpServer server(leaf.options, Echo);
  ASSERT_TRUE(server.Start().ok());
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->Say(std::string("\x16\x03\x01\x02\x00\x01", 6));
  }
  EXPECT_EQ(ShownName(server.port()), "leaf");
}

TEST(HttpServerTest, SurvivesClientsThatDoNotSpeakTls) {
  const TlsLeaf leaf(absl::Milliseconds(200));
  HttpServer server(leaf.options, Echo);
  ASSERT_TRUE(server.Start().ok());
  FirstLine(server.port(), "GET / HTTP/1.1\r\n\r\n");
  FirstLine(server.port(), std::string(10'000, '\x16'));
  FirstLine(server.port(), "");
  // A busy machine may be too slow for this server's clients, too.
  EXPECT_TRUE(testing::Soon([&] { return ShownName(server.port()) == "leaf"; }));
}

}  // namespace
}  // namespace railhead::kube

// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/page_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/now.h"
#include "runtime/metrics/page_request.h"
#include "runtime/net/socket.h"
#include "runtime/testing/http.h"
#include "runtime/testing/ranks.h"

namespace railhead::metrics {
namespace {

using railhead::testing::DialStranger;
using railhead::testing::HttpGet;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Time Soon() { return MonotonicNow() + absl::Seconds(20); }

std::unique_ptr<PageServer> Serving(const std::string& page) {
  auto server = PageServer::Start(0, [page] { return page; });
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

// What the server says to these bytes, until it ends the connection.
std::string AnswerTo(int port, const std::string& request) {
  const net::Fd fd = DialStranger(port);
  std::string answer;
  if (!net::SendAll(fd.get(), request, Soon()).ok()) return answer;
  while (net::WaitReadable(fd.get(), Soon()).ok()) {
    const absl::StatusOr<bool> open = net::ReceiveSome(fd.get(), 1 << 20, &answer);
    if (!open.ok() || !*open) break;
  }
  return answer;
}

TEST(PageRequestTest, OnlyAWholeRequestForThePageGetsIt) {
  EXPECT_EQ(ReadPageRequest("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), PageRequest::kPage);
  EXPECT_EQ(ReadPageRequest("GET /metrics?a HTTP/1.0\r\n\r\n"), PageRequest::kPage);
  EXPECT_EQ(ReadPageRequest("HEAD /metrics HTTP/1.1\r\n\r\n"), PageRequest::kHead);
  EXPECT_EQ(ReadPageRequest(""), PageRequest::kIncomplete);
  EXPECT_EQ(ReadPageRequest("GET /metrics HTTP/1.1\r\nHost: a\r\n"), PageRequest::kIncomplete);
  EXPECT_EQ(ReadPageRequest("GET / HTTP/1.1\r\n\r\n"), PageRequest::kNotFound);
  EXPECT_EQ(ReadPageRequest("POST /metrics HTTP/1.1\r\n\r\n"), PageRequest::kNotAllowed);
  for (const char* wrong : {"\r\n\r\n", "GET /metrics\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n",
                            "GET /metrics HTTP/2\r\n\r\n", "GET  /metrics HTTP/1.1\r\n\r\n"}) {
    EXPECT_EQ(ReadPageRequest(wrong), PageRequest::kMalformed) << wrong;
  }
  const std::string endless(kLongestRequest, 'x');
  EXPECT_EQ(ReadPageRequest(endless), PageRequest::kMalformed);
  EXPECT_EQ(ReadPageRequest(absl::string_view(endless).substr(1)), PageRequest::kIncomplete);
}

TEST(PageServerTest, AnswersEachRequestAsItShould) {
  const auto server = Serving("m 1\n");
  const std::string page = AnswerTo(server->port(), "GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(page, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(page, ::testing::EndsWith("\r\n\r\nm 1\n"));
  EXPECT_THAT(AnswerTo(server->port(), "HEAD /metrics HTTP/1.1\r\n\r\n"),
              ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(AnswerTo(server->port(), "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(AnswerTo(server->port(), "PUT /metrics HTTP/1.1\r\n\r\nx"),
              StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(AnswerTo(server->port(), std::string(10000, 'x')), StartsWith("HTTP/1.1 400"));
}

// Two were enough for a web server with two threads.
TEST(PageServerTest, ClientsThatAreSilentDripOrDoNotReadKeepNoScraperOut) {
  const auto server = Serving(std::string(size_t{4} << 20U, 'm'));
  std::vector<net::Fd> hostile;
  constexpr size_t kClients = 400;
  for (size_t i = 0; i < kClients; ++i) {
    hostile.push_back(DialStranger(server->port()));
    const std::string text = i % 3 == 0   ? ""
                             : i % 3 == 1 ? "GET /met"
                                          : "GET /metrics HTTP/1.1\r\n\r\n";
    net::SendAll(hostile.back().get(), text, Soon()).IgnoreError();
  }
  for (int i = 0; i < 5; ++i) {
    for (const net::Fd& one : hostile) net::SendAll(one.get(), "x", Soon()).IgnoreError();
    EXPECT_GT(HttpGet(server->port(), "/metrics").size(), size_t{4} << 20U);
  }
  size_t open = 0;
  for (const net::Fd& one : hostile) {
    char byte = 0;
    const ssize_t got = ::recv(one.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) ++open;
  }
  EXPECT_LE(open, PageServer::kMostConnections);
}

TEST(PageServerTest, EndsAtOnceWhileClientsAreThere) {
  std::vector<net::Fd> clients;
  auto server = Serving("m 1\n");
  for (int i = 0; i < 10; ++i) clients.push_back(DialStranger(server->port()));
  server.reset();
  for (const net::Fd& client : clients) {
    std::string nothing;
    ASSERT_TRUE(net::WaitReadable(client.get(), Soon()).ok());
    const absl::StatusOr<bool> open = net::ReceiveSome(client.get(), 1, &nothing);
    EXPECT_FALSE(open.ok() && *open);
  }
}

}  // namespace
}  // namespace railhead::metrics

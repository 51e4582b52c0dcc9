// SPDX-License-Identifier: Apache-2.0
#include "kube/http/page_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kube/testing/http_client.h"

namespace railhead::kube {
namespace {

using ::testing::HasSubstr;

PageServer::Pages Counting(int& calls) {
  return {{"/metrics",
           [&calls] {
             ++calls;
             return HttpResponse{200, "text/plain; version=0.0.4; charset=utf-8",
                                 absl::StrCat("calls ", calls, "\n")};
           }},
          {"/bad", [] { return HttpResponse{.status = 503, .body = "no\n"}; }}};
}

TEST(PageServer, AnswersItsPathsAndNothingElse) {
  int calls = 0;
  const auto server = PageServer::Start("--flag", "127.0.0.1:0", Counting(calls));
  ASSERT_TRUE(server.ok()) << server.status();
  httplib::Client client = testing::HttpClient("127.0.0.1", (*server)->port());
  const auto first = client.Get("/metrics");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, 200);
  EXPECT_EQ(first->body, "calls 1\n");
  EXPECT_EQ(first->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(client.Get("/metrics")->body, "calls 2\n");
  const auto bad = client.Get("/bad");
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->status, 503);
  EXPECT_EQ(bad->body, "no\n");
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Get("/metrics/x")->status, 404);
  EXPECT_EQ(client.Post("/metrics", "{}", "application/json")->status, 405);
  EXPECT_EQ(client.Head("/metrics")->body, "");
}

TEST(PageServer, ListensWhereItIsTold) {
  int calls = 0;
  // Of another address, another program may have the port.
  const auto answers = [&calls](const char* host, const PageServer& server) {
    const int before = calls;
    return testing::HttpClient(host, server.port()).Get("/metrics") && calls > before;
  };
  const auto both = PageServer::Start("--flag", ":0", Counting(calls));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_TRUE(answers("127.0.0.1", **both));
  EXPECT_TRUE(answers("::1", **both));
  const auto v6 = PageServer::Start("--flag", "[::1]:0", Counting(calls));
  ASSERT_TRUE(v6.ok()) << v6.status();
  EXPECT_TRUE(answers("::1", **v6));
  EXPECT_FALSE(answers("127.0.0.1", **v6));
  const auto v4 = PageServer::Start("--flag", "127.0.0.1:0", Counting(calls));
  ASSERT_TRUE(v4.ok()) << v4.status();
  EXPECT_TRUE(answers("127.0.0.1", **v4));
  EXPECT_FALSE(answers("::1", **v4));
}

TEST(PageServer, RefusesBadAddressesAndUsedPorts) {
  for (const std::string address : {"", "9401", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536"}) {
    EXPECT_THAT(std::string(PageServer::Start("--flag", address, {}).status().message()),
                HasSubstr("--flag " + address));
  }
  const auto first = PageServer::Start("--flag", "127.0.0.1:0", {});
  ASSERT_TRUE(first.ok());
  const std::string address = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_THAT(std::string(PageServer::Start("--flag", address, {}).status().message()),
              HasSubstr("in use"));
}

}  // namespace
}  // namespace railhead::kube

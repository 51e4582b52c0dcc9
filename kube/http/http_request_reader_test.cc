// SPDX-License-Identifier: Apache-2.0
#include "kube/http/http_request_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace railhead::kube {
namespace {

using ReaderState = HttpRequestReader::State;

constexpr HttpReadLimits kLimits = {.head_bytes = 200, .body_bytes = 20};

struct ReadOutcome {
  ReaderState state = ReaderState::kHead;
  int refusal = 0;
  HttpRequest request;
  size_t taken = 0;
  bool keeps = false;
};

// Gives the text in pieces of `piece` bytes.
ReadOutcome ReadIn(absl::string_view text, size_t piece) {
  HttpRequestReader reader(kLimits);
  ReadOutcome outcome;
  while (outcome.taken < text.size()) {
    const size_t taken = reader.Take(text.substr(outcome.taken, piece));
    outcome.taken += taken;
    if (taken == 0) break;
  }
  outcome.state = reader.state();
  outcome.refusal = reader.refusal();
  outcome.keeps = reader.keeps_connection();
  if (outcome.state == ReaderState::kDone) outcome.request = reader.Release();
  return outcome;
}

// The same, however it is cut.
ReadOutcome Read(absl::string_view text) {
  ReadOutcome whole = ReadIn(text, text.size());
  for (size_t piece = 1; piece < 8; ++piece) {
    const ReadOutcome cut = ReadIn(text, piece);
    EXPECT_EQ(whole.state, cut.state) << text;
    EXPECT_EQ(whole.refusal, cut.refusal) << text;
    EXPECT_EQ(whole.request.body, cut.request.body) << text;
    EXPECT_EQ(whole.request.path, cut.request.path) << text;
    if (whole.state != ReaderState::kRefused) {
      EXPECT_EQ(whole.taken, cut.taken) << text;
    }
  }
  return whole;
}

TEST(HttpRequestReaderTest, ReadsWhatClientsSend) {
  const ReadOutcome get = Read("GET /metrics?x=y HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_EQ(get.state, ReaderState::kDone);
  EXPECT_EQ(get.request.method, "GET");
  EXPECT_EQ(get.request.path, "/metrics");
  EXPECT_TRUE(get.keeps);
  const ReadOutcome post = Read(
      "POST /mutate HTTP/1.1\r\nhost: a\r\nCONTENT-TYPE: application/json\r\n"
      "Content-Length: 2\r\nConnection: Close\r\n\r\n{}GET /next HTTP/1.1\r\n");
  ASSERT_EQ(post.state, ReaderState::kDone);
  EXPECT_EQ(post.request.method, "POST");
  EXPECT_EQ(post.request.content_type, "application/json");
  EXPECT_EQ(post.request.body, "{}");
  EXPECT_FALSE(post.keeps);
  EXPECT_FALSE(Read("GET / HTTP/1.0\r\n\r\n").keeps);
  EXPECT_EQ(Read("\r\n\r\nGET / HTTP/1.1\r\n\r\n").state, ReaderState::kDone);
}

TEST(HttpRequestReaderTest, ReadsChunkedBodies) {
  const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  const ReadOutcome two =
      Read(head + "2\r\nab\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nrest");
  ASSERT_EQ(two.state, ReaderState::kDone);
  EXPECT_EQ(two.request.body, "ab0123456789");
  EXPECT_EQ(Read(head + "0\r\n\r\n").request.body, "");
  EXPECT_EQ(Read(head + "15\r\n").refusal, 413);
  EXPECT_EQ(Read(head + "14\r\n01234567890123456789\r\n1\r\n").refusal, 413);
  EXPECT_EQ(Read(head + "ffffffffffffffff\r\n").refusal, 400);
  EXPECT_EQ(Read(head + "-1\r\n").refusal, 400);
  EXPECT_EQ(Read(head + "\r\n").refusal, 400);
  EXPECT_EQ(Read(head + "1\r\nab\r\n").refusal, 400);
  EXPECT_EQ(Read(head + "1\nab\r\n").refusal, 400);
  EXPECT_EQ(Read(head + std::string(300, '0')).refusal, 400);
}

TEST(HttpRequestReaderTest, RefusesTheRestByStatus) {
  const auto with = [](absl::string_view field) {
    return absl::StrCat("POST / HTTP/1.1\r\n", field, "\r\n\r\n");
  };
  const std::vector<std::pair<std::string, int>> cases = {
      {"hello\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\n\r\n", 400},
      {"GET x HTTP/1.1\r\n\r\n", 400},
      {"GET /a\x01 HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\n\r\n", 505},
      {"PUT / HTTP/1.1\r\n\r\n", 405},
      {with("no colon"), 400},
      {with("space : x"), 400},
      {with(" folded: x"), 400},
      {with("a: \x01"), 400},
      {with("a: b\nc: d"), 400},
      {with("Content-Length: 21"), 413},
      {with("Content-Length: -1"), 400},
      {with("Content-Length: 1, 1"), 400},
      {with("Content-Length: 1\r\nContent-Length: 2"), 400},
      {with("Content-Length: 99999999999999999999"), 400},
      {with("Content-Length: 1\r\nTransfer-Encoding: chunked"), 400},
      {with("Transfer-Encoding: gzip, chunked"), 501},
      {with("Content-Encoding: gzip"), 415},
      {with("Content-Type: multipart/form-data"), 415},
      {"GET / HTTP/1.1\r\nX: " + std::string(200, 'x'), 431},
      {std::string(201, 'x'), 431},
  };
  for (const auto& [text, status] : cases) {
    const ReadOutcome outcome = Read(text);
    EXPECT_EQ(outcome.state, ReaderState::kRefused) << text;
    EXPECT_EQ(outcome.refusal, status) << text;
  }
}

// Memory follows what has arrived, not what was announced.
TEST(HttpRequestReaderTest, HoldsNoMoreThanTwiceWhatArrived) {
  HttpRequestReader reader({.body_bytes = 64U << 20U});
  reader.Take("POST / HTTP/1.1\r\nContent-Length: 60000000\r\n\r\n");
  EXPECT_LT(reader.held_bytes(), 1000U);
  const std::string piece(10'000, 'x');
  for (size_t arrived = piece.size(); arrived < 3'000'000; arrived += piece.size()) {
    reader.Take(piece);
    ASSERT_LE(reader.held_bytes(), 2 * arrived + (17U << 10U));
  }
}

TEST(HttpRequestReaderTest, TakesNothingOfTheNextRequest) {
  HttpRequestReader reader(kLimits);
  const std::string first = "GET /1 HTTP/1.1\r\n\r\n";
  EXPECT_EQ(reader.Take(first + "GET /2"), first.size());
  EXPECT_EQ(reader.Take("GET /2"), 0U);
  EXPECT_EQ(reader.Release().path, "/1");
  EXPECT_FALSE(reader.begun());
  EXPECT_EQ(reader.Take("GET /2 HTTP/1.1\r\n\r\n"), 19U);
  EXPECT_EQ(reader.Release().path, "/2");
}

}  // namespace
}  // namespace railhead::kube

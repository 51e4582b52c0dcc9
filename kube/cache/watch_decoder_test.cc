// SPDX-License-Identifier: Apache-2.0
#include "kube/cache/watch_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace railhead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kMaxLine = 4096;

std::string Line(absl::string_view type, absl::string_view name, int version) {
  return absl::StrCat(R"({"type":")", type, R"(","object":{"metadata":{"name":")", name,
                      R"(","resourceVersion":")", version, R"("}}})", "\n");
}

// What came of a stream: events as "type name version", and how it ended.
struct Outcome {
  std::vector<std::string> events;
  absl::Status end;
};

Outcome Decode(const std::vector<std::string>& pieces) {
  Outcome outcome;
  WatchDecoder decoder(kMaxLine);
  for (const std::string& piece : pieces) {
    outcome.end = decoder.Feed(piece, [&outcome](const WatchEvent& event) {
      static constexpr const char* kNames[] = {"added", "modified", "deleted", "bookmark"};
      outcome.events.push_back(absl::StrCat(kNames[static_cast<int>(event.type)], " ",
                                            StringAt(event.object, {"metadata", "name"}), " ",
                                            event.resource_version));
      return absl::OkStatus();
    });
    if (!outcome.end.ok()) break;
  }
  return outcome;
}

TEST(WatchDecoderTest, EventsComeInOrderHoweverTheBytesAreCut) {
  const std::string text = Line("ADDED", "a", 1) + Line("MODIFIED", "a", 2) + "\n" +
                           Line("BOOKMARK", "", 3) + Line("DELETED", "a", 4);
  for (size_t size = 1; size <= text.size(); ++size) {
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size(); at += size) pieces.push_back(text.substr(at, size));
    const Outcome outcome = Decode(pieces);
    EXPECT_THAT(outcome.events,
                ElementsAre("added a 1", "modified a 2", "bookmark  3", "deleted a 4"));
    EXPECT_TRUE(outcome.end.ok()) << outcome.end;
  }
}

TEST(WatchDecoderTest, ALineWithoutItsEndIsNoEventYet) {
  EXPECT_THAT(Decode({R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}})"}).events,
              ElementsAre());
}

TEST(WatchDecoderTest, AnErrorEventIsTheServersError) {
  const Outcome gone =
      Decode({Line("ADDED", "a", 1) +
              R"({"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}})"
              "\n" +
              Line("ADDED", "b", 2)});
  EXPECT_THAT(gone.events, ElementsAre("added a 1"));
  EXPECT_EQ(gone.end.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(gone.end.message()), HasSubstr("410 Expired: too old"));
  for (const char* object : {R"({})", R"({"code":"410"})", R"({"code":0})", R"({"code":-410})",
                             R"({"code":18446744073709551615})"}) {
    EXPECT_EQ(Decode({absl::StrCat(R"({"type":"ERROR","object":)", object, "}\n")}).end.code(),
              absl::StatusCode::kUnavailable)
        << object;
  }
}

TEST(WatchDecoderTest, WhatIsNoEventIsALossOfData) {
  for (const std::string& line :
       {std::string("<html>"), std::string("[]"), std::string("{}"), std::string("7"),
        std::string(R"({"type":"ADDED"})"), std::string(R"({"type":"ADDED","object":[]})"),
        std::string(R"({"type":"ADDED","object":{}})"),
        std::string(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":7}}})"),
        std::string(R"({"type":"NEWS","object":{"metadata":{"resourceVersion":"7"}}})"),
        std::string(R"({"object":{"metadata":{"resourceVersion":"7"}}})"), std::string(300, '[')}) {
    const Outcome outcome = Decode({line + "\n" + Line("ADDED", "a", 1)});
    EXPECT_EQ(outcome.end.code(), absl::StatusCode::kDataLoss) << line;
    EXPECT_THAT(outcome.events, ElementsAre()) << line;
  }
}

TEST(WatchDecoderTest, ALineIsBoundedFromItsFirstByteOn) {
  const std::string line = Line("ADDED", std::string(kMaxLine, 'x'), 1);
  EXPECT_EQ(Decode({line}).end.code(), absl::StatusCode::kDataLoss);
  const std::string half(kMaxLine / 2, ' ');
  EXPECT_TRUE(Decode({half, half}).end.ok());
  EXPECT_EQ(Decode({half, half, " "}).end.code(), absl::StatusCode::kDataLoss);
  // The bound is one line's, not the stream's.
  EXPECT_THAT(Decode(std::vector<std::string>(200, Line("ADDED", "a", 1))).events,
              ::testing::SizeIs(200));
}

TEST(WatchDecoderTest, TheReceiversErrorEndsIt) {
  WatchDecoder decoder(kMaxLine);
  int taken = 0;
  const absl::Status end =
      decoder.Feed(Line("ADDED", "a", 1) + Line("ADDED", "b", 2), [&taken](const WatchEvent&) {
        ++taken;
        return absl::ResourceExhaustedError("enough");
      });
  EXPECT_EQ(end, absl::ResourceExhaustedError("enough"));
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace railhead::kube

// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/nri/frames.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace railhead::device_plugin::nri {
namespace {

using ::testing::HasSubstr;

std::string Bytes(std::initializer_list<int> numbers) {
  std::string bytes;
  for (const int number : numbers) bytes.push_back(static_cast<char>(number));
  return bytes;
}

std::string Piece(int connection, const std::string& bytes) {
  return Bytes({0, 0, 0, connection, 0, 0, static_cast<int>(bytes.size() >> 8U),
                static_cast<int>(bytes.size() & 0xffU)}) +
         bytes;
}

absl::Status Take(MessageReader& reader, absl::string_view bytes, std::vector<Message>& messages) {
  return reader.Take(bytes, [&messages](const Message& message) {
    messages.push_back(message);
    return absl::OkStatus();
  });
}

TEST(FramesTest, AMessageIsWrittenAsTheProtocolSays) {
  EXPECT_EQ(Encode({kRuntimeService, 1, MessageType::kRequest, "abc"}),
            Bytes({0, 0, 0, 2, 0, 0, 0, 13, 0, 0, 0, 3, 0, 0, 0, 1, 1, 0}) + "abc");
}

TEST(FramesTest, MessagesAreFoundInPiecesOfAnySize) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::vector<Message> sent;
    std::string streams[2];
    for (unsigned i = 0; i < 1 + random() % 6; ++i) {
      Message message;
      message.connection = 1 + random() % 2;
      message.stream = static_cast<uint32_t>(random());
      message.type = static_cast<MessageType>(1 + random() % 3);
      message.payload = std::string(random() % 3 == 0 ? 0 : random() % 400, 'x');
      sent.push_back(message);
      streams[message.connection - 1] += Encode(message).substr(8);
    }
    // The bytes of both connections, mixed in pieces that know no messages.
    std::string wire;
    while (!streams[0].empty() || !streams[1].empty()) {
      const int k = streams[0].empty() || (!streams[1].empty() && random() % 2 == 0) ? 1 : 0;
      const size_t some = std::min<size_t>(random() % 300, streams[k].size());
      wire += Piece(k + 1, streams[k].substr(0, some));
      streams[k].erase(0, some);
    }
    MessageReader reader;
    std::vector<Message> found;
    for (size_t at = 0; at < wire.size();) {
      const size_t some = 1 + random() % 200;
      ASSERT_TRUE(Take(reader, absl::string_view(wire).substr(at, some), found).ok());
      at += some;
    }
    ASSERT_EQ(found.size(), sent.size());
    for (const uint32_t connection : {kPluginService, kRuntimeService}) {
      std::vector<Message> expected;
      std::vector<Message> got;
      const auto of = [connection](const Message& m) { return m.connection == connection; };
      std::copy_if(sent.begin(), sent.end(), std::back_inserter(expected), of);
      std::copy_if(found.begin(), found.end(), std::back_inserter(got), of);
      ASSERT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].stream, expected[i].stream);
        EXPECT_EQ(got[i].type, expected[i].type);
        EXPECT_EQ(got[i].payload, expected[i].payload);
      }
    }
  }
}

TEST(FramesTest, WhatIsNoMessageIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {Piece(3, "x"), "for connection 3, which does not exist"},
      {Piece(1, Bytes({0, 0x40, 0, 1, 0, 0, 0, 1, 1, 0})), "a message of 4194305 bytes"},
      {Piece(1, Bytes({0, 0, 0, 0, 0, 0, 0, 1, 4, 0})), "unknown type 4"},
      {Piece(2, Bytes({0, 0, 0, 0, 0, 0, 0, 1, 0, 0})), "unknown type 0"},
  };
  for (const auto& [bytes, message] : cases) {
    MessageReader reader;
    std::vector<Message> none;
    const absl::Status refused = Take(reader, bytes, none);
    EXPECT_TRUE(absl::IsInvalidArgument(refused));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(message));
    EXPECT_TRUE(none.empty());
  }
}

TEST(FramesTest, TheTakersErrorEndsTheReading) {
  MessageReader reader;
  int taken = 0;
  const Message message = {kPluginService, 1, MessageType::kRequest, ""};
  const absl::Status end = reader.Take(Encode(message) + Encode(message), [&taken](const Message&) {
    ++taken;
    return absl::AbortedError("enough");
  });
  EXPECT_EQ(end, absl::AbortedError("enough"));
  EXPECT_EQ(taken, 1);
}

}  // namespace
}  // namespace railhead::device_plugin::nri

// SPDX-License-Identifier: Apache-2.0
//
// Both ends of connections in one process, over loopback. tests/nccl has them in two processes, and
// with rails that fail.
#include "plugins/nccl/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "plugins/nccl/connection_for_test.h"
#include "plugins/nccl/listener.h"
#include "plugins/nccl/local_rails.h"
#include "runtime/base/now.h"

namespace railhead::nccl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(ConnectionTest, AReceiveMayBeLargerThanItsMessage) {
  std::string text(8, '-');
  Connection::Request* const request = receiver_->Receive({Into(text)}).value();
  EXPECT_EQ(Deliver("abc"), absl::OkStatus());
  EXPECT_THAT(Await(*receiver_, request).value(), ElementsAre(3));
  EXPECT_EQ(text, "abc-----");
}

TEST_P(ConnectionTest, AGroupIsMatchedByTags) {
  std::string a(4, '-');
  std::string b(4, '-');
  std::string c;
  Connection::Request* const request =
      receiver_->Receive({Into(a, 5), Into(b, 6), Into(c, 7)}).value();
  EXPECT_EQ(Deliver("bb", 6), absl::OkStatus());
  EXPECT_EQ(Deliver("", 7), absl::OkStatus());
  EXPECT_EQ(receiver_->Test(request, nullptr).value(), false);
  EXPECT_EQ(Deliver("aaa", 5), absl::OkStatus());
  EXPECT_THAT(Await(*receiver_, request, 3).value(), ElementsAre(3, 2, 0));
  EXPECT_EQ(a + b, "aaa-bb--");
}

// Small messages do not wait for their receives, and large ones do not pass others of their tag.
TEST_P(ConnectionTest, MessagesOfATagKeepTheirOrder) {
  std::mt19937 random(3);
  std::vector<std::string> texts;
  std::vector<Connection::Request*> sends;
  for (int i = 0; i < 60; ++i) {
    texts.emplace_back(random() % 2 == 0 ? random() % 100 : random() % 300'000,
                       static_cast<char>('A' + i));
  }
  for (const std::string& text : texts) sends.push_back(sender_->Send(Bytes(text), 1).value());
  for (const std::string& text : texts) {
    std::string got(text.size() + 1, '-');
    const auto sizes = Await(*receiver_, receiver_->Receive({Into(got)}).value());
    ASSERT_TRUE(sizes.ok()) << sizes.status();
    EXPECT_THAT(*sizes, ElementsAre(static_cast<int>(text.size())));
    EXPECT_EQ(got, text + "-");
  }
  for (Connection::Request* send : sends) EXPECT_TRUE(Await(*sender_, send).ok());
}

// The process's thread acknowledges while nobody calls.
TEST_P(ConnectionTest, ASendEndsAlthoughTheReceiverIsAway) {
  std::string text(3, '-');
  Connection::Request* const request = receiver_->Receive({Into(text)}).value();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Deliver("abc"), absl::OkStatus());
  sender_->Settle(MonotonicNow() + kPatience);
  EXPECT_TRUE(Await(*receiver_, request).ok());
}

TEST_P(ConnectionTest, ItEndsAtOnceWhicheverSideIsFirst) {
  for (const bool sender_first : {true, false}) {
    sender_ = Connect(*own_, listener_->handle()).value();
    receiver_ = AcceptOne();
    std::string text(3, '-');
    Connection::Request* const request = receiver_->Receive({Into(text)}).value();
    EXPECT_EQ(Deliver("abc"), absl::OkStatus());
    EXPECT_TRUE(Await(*receiver_, request).ok());
    const absl::Time begin = MonotonicNow();
    std::shared_ptr<Connection>& first = sender_first ? sender_ : receiver_;
    std::shared_ptr<Connection>& second = sender_first ? receiver_ : sender_;
    first->Settle(begin + kPatience);
    first.reset();
    second->Settle(begin + kPatience);
    second.reset();
    EXPECT_LT(MonotonicNow() - begin, kPatience / 2);
  }
}

// Messages sent before the close notice arrive.
TEST_P(ConnectionTest, AReceiveAfterTheCloseNoticeFails) {
  EXPECT_EQ(Deliver("abc"), absl::OkStatus());
  sender_->Settle(MonotonicNow() + kPatience);
  sender_.reset();
  std::string text(3, '-');
  EXPECT_TRUE(Await(*receiver_, receiver_->Receive({Into(text)}).value()).ok());
  const auto more = Await(*receiver_, receiver_->Receive({Into(text)}).value());
  EXPECT_EQ(more.status(), absl::UnavailableError("the sender has closed the connection"));
}

TEST_P(ConnectionTest, ItMayEndWithOpenRequests) {
  std::string text(1 << 20, '-');
  ASSERT_TRUE(receiver_->Receive({Into(text)}).ok());
  const std::string sent(1 << 20, 'x');
  ASSERT_TRUE(sender_->Send(Bytes(sent), 2).ok());
  sender_.reset();
  receiver_.reset();
}

TEST_P(ConnectionTest, AListenerAcceptsSeveralSenders) {
  const std::shared_ptr<Connection> other = Connect(*own_, listener_->handle()).value();
  const std::shared_ptr<Connection> accepted = AcceptOne();
  ASSERT_NE(accepted, nullptr);
  std::string one(3, '-');
  std::string two(3, '-');
  Connection::Request* const first = receiver_->Receive({Into(one)}).value();
  Connection::Request* const second = accepted->Receive({Into(two)}).value();
  EXPECT_TRUE(Await(*other, other->Send(Bytes("two"), 1).value()).ok());
  EXPECT_EQ(Deliver("one"), absl::OkStatus());
  EXPECT_TRUE(Await(*receiver_, first).ok());
  EXPECT_TRUE(Await(*accepted, second).ok());
  EXPECT_EQ(one + two, "onetwo");
  EXPECT_EQ(listener_->Accept().value(), nullptr);
}

TEST_P(ConnectionTest, ItOutlivesItsListener) {
  listener_.reset();
  std::string text(3, '-');
  Connection::Request* const request = receiver_->Receive({Into(text)}).value();
  EXPECT_EQ(Deliver("abc"), absl::OkStatus());
  EXPECT_TRUE(Await(*receiver_, request).ok());
}

INSTANTIATE_TEST_SUITE_P(Kinds, ConnectionTest, ::testing::Values(RailKind::kTcp, RailKind::kVerbs),
                         [](const auto& kind) {
                           return kind.param == RailKind::kTcp ? "tcp" : "verbs";
                         });

TEST(UnservedConnectionTest, FailsAfterTheTimeoutWithTheCause) {
  comm::CommunicatorOptions options = Loopback();
  options.setup.settings.timeout = absl::Seconds(1);
  const std::unique_ptr<LocalRails> rails = LocalRails::Open(std::move(options)).value();
  const std::unique_ptr<Listener> listener = Listener::Start(*rails).value();
  // Nobody accepts.
  const std::shared_ptr<Connection> sender = Connect(*rails, listener->handle()).value();
  const std::vector<std::byte> large(1 << 20);
  Connection::Request* const request = sender->Send(large, 1).value();
  absl::StatusOr<bool> done = false;
  const absl::Time deadline = MonotonicNow() + kPatience;
  while (done.ok() && MonotonicNow() < deadline) done = sender->Test(request, nullptr);
  EXPECT_TRUE(absl::IsUnavailable(done.status()));
  EXPECT_THAT(std::string(done.status().message()), HasSubstr("has had a connection for 1 s: "));
}

TEST(LocalRailsTest, WithoutASecretThatIsWantedThereIsNoPlugin) {
  comm::CommunicatorOptions options = Loopback();
  options.setup.settings.require_secret = true;
  const auto rails = LocalRails::Open(std::move(options));
  EXPECT_TRUE(absl::IsFailedPrecondition(rails.status()));
  EXPECT_THAT(std::string(rails.status().message()), HasSubstr("RAILHEAD_SECRET_FILE"));
}

TEST(LocalRailsTest, RequiredRdmaIsMissed) {
  comm::CommunicatorOptions options;
  options.setup.root = "/nonexistent";
  options.setup.settings.metrics_port = 0;
  options.setup.settings.require_rdma = true;
  const auto rails = LocalRails::Open(std::move(options));
  EXPECT_TRUE(absl::IsFailedPrecondition(rails.status()));
  EXPECT_THAT(std::string(rails.status().message()), HasSubstr("request rdma/hca in its pod"));
}

}  // namespace
}  // namespace railhead::nccl

// SPDX-License-Identifier: Apache-2.0
//
// Both ends of a connection in one process, for tests: over loopback, or over fake NICs.
#ifndef RAILHEAD_PLUGINS_NCCL_CONNECTION_FOR_TEST_H_
#define RAILHEAD_PLUGINS_NCCL_CONNECTION_FOR_TEST_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/nccl/connection.h"
#include "plugins/nccl/listener.h"
#include "plugins/nccl/local_rails.h"
#include "runtime/base/now.h"
#include "runtime/comm/api/fake_rails_for_test.h"

namespace railhead::nccl {

inline constexpr absl::Duration kPatience = absl::Seconds(20);

inline comm::CommunicatorOptions Loopback() {
  comm::CommunicatorOptions options;
  options.setup.settings.socket_ifname = "lo";
  options.setup.settings.transport = config::TransportChoice::kTcp;
  options.setup.settings.metrics_port = 0;
  return options;
}

// Over a TCP rail, or two RDMA rails of fake NICs.
class ConnectionTest : public ::testing::TestWithParam<RailKind> {
 protected:
  void SetUp() override {
    if (GetParam() == RailKind::kVerbs) fake_.emplace(/*ranks=*/2);
    own_ = RailsOf(0);
    other_ = RailsOf(1);
    listener_ = Listener::Start(*other_).value();
    sender_ = Connect(*own_, listener_->handle()).value();
    receiver_ = AcceptOne();
    ASSERT_NE(receiver_, nullptr);
  }

  std::unique_ptr<LocalRails> RailsOf(int end) {
    comm::CommunicatorOptions options = Loopback();
    if (fake_.has_value()) {
      options.setup.settings.transport = config::TransportChoice::kVerbs;
      options.setup.settings.rails_file = fake_->File(end);
      options.setup.open_rdma_rail = [this](const fabric::PodRail& rail) {
        return fake_->Open(rail);
      };
    }
    return LocalRails::Open(std::move(options)).value();
  }

  std::shared_ptr<Connection> AcceptOne() {
    const absl::Time deadline = MonotonicNow() + kPatience;
    while (MonotonicNow() < deadline) {
      if (std::shared_ptr<Connection> one = listener_->Accept().value(); one != nullptr) return one;
    }
    return nullptr;
  }

  // Calls Test until it is true, or fails.
  static absl::StatusOr<std::vector<int>> Await(Connection& connection,
                                                Connection::Request* request, size_t count = 1) {
    std::vector<int> sizes(count, -1);
    const absl::Time deadline = MonotonicNow() + kPatience;
    while (MonotonicNow() < deadline) {
      const absl::StatusOr<bool> done = connection.Test(request, sizes.data());
      if (!done.ok()) return done.status();
      if (*done) return sizes;
    }
    return absl::DeadlineExceededError("no end");
  }
  absl::Status Deliver(absl::string_view text, int tag = 1) {
    return Await(*sender_, sender_->Send(Bytes(text), tag).value()).status();
  }
  static absl::Span<const std::byte> Bytes(absl::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
  }
  static Connection::Slot Into(std::string& text, int tag = 1) {
    return {reinterpret_cast<std::byte*>(text.data()), text.size(), tag};
  }

  std::optional<comm::FakeRails> fake_;
  std::unique_ptr<LocalRails> own_;    // the sender's
  std::unique_ptr<LocalRails> other_;  // the receiver's
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Connection> sender_;
  std::shared_ptr<Connection> receiver_;
};

}  // namespace railhead::nccl

#endif  // RAILHEAD_PLUGINS_NCCL_CONNECTION_FOR_TEST_H_

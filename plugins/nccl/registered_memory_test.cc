// SPDX-License-Identifier: Apache-2.0
//
// Messages between registered memory of hosts and GPUs, over fake NICs. The memory of a GPU cannot
// be accessed by the CPU: a copy of it ends this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plugins/nccl/connection_for_test.h"
#include "plugins/nccl/gpu_memory.h"
#include "plugins/nccl/memory.h"
#include "runtime/device/fake_cuda.h"
#include "runtime/transport/verbs/fake_verbs.h"

namespace railhead::nccl {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 700'000;

// How the sender's and the receiver's memory lies.
struct Kinds {
  bool from_gpu;
  bool to_gpu;
  bool dma_buf;
};

class RegisteredMemoryTest : public ConnectionTest {
 protected:
  // A registered piece of memory; `bytes` is where the test can access it.
  struct Piece {
    std::byte* data = nullptr;
    std::byte* bytes = nullptr;
    std::unique_ptr<Memory> memory;
  };

  void SetUp() override {
    ConnectionTest::SetUp();
    fake_->verbs().SetGpus(cuda_);
  }

  Piece Make(const Connection& connection, bool on_gpu, bool dma_buf) {
    Piece piece;
    if (!on_gpu) {
      piece.data = piece.bytes = host_.emplace_back(std::make_unique<std::byte[]>(kBytes)).get();
      piece.memory = connection.Register({piece.data, kBytes}, false, nullptr).value();
      return piece;
    }
    piece.data = cuda_->Allocate(kBytes);
    piece.bytes = cuda_->Bytes(piece.data);
    const auto gpu = device::Memory::Find(*cuda_, piece.data).value();
    const device::DmaBuf buffer = gpu->Export({piece.data, kBytes}).value();
    piece.memory =
        connection.Register({piece.data, kBytes}, true, dma_buf ? &buffer : nullptr).value();
    return piece;
  }

  // Sends messages of random sizes, of which some are lost in time by `harm`, and checks all bytes.
  // Memory is used for something else as soon as a message has arrived.
  template <class Harm>
  void Exchange(const Kinds& kinds, int messages, Harm harm) {
    const std::string later(kBytes, 0x66);
    std::mt19937 random(7);
    const Piece from = Make(*sender_, kinds.from_gpu, kinds.dma_buf);
    const Piece to = Make(*receiver_, kinds.to_gpu, kinds.dma_buf);
    for (int i = 0; i < messages; ++i) {
      const size_t most = std::vector<size_t>{1, 30, 5000, 100'000, kBytes}[random() % 5];
      const size_t size = random() % (most + 1);
      const size_t at = random() % (kBytes - size + 1);
      std::memset(from.bytes + at, static_cast<int>(random() % 80), size);
      for (size_t k = 0; k < size; k += 97) from.bytes[at + k] = static_cast<std::byte>(random());
      std::memset(to.bytes, 0x55, kBytes);
      const bool late = random() % 2 == 0;
      Connection::Request* receive = nullptr;
      const auto post = [&] {
        receive = receiver_->Receive({{to.data + at, size, 1, to.memory.get()}}).value();
      };
      if (!late) post();
      Connection::Request* send =
          sender_->Send({from.data + at, size}, 1, from.memory.get()).value();
      if (late) post();
      harm(random);
      EXPECT_EQ(Received(receive, send), static_cast<int>(size)) << "message " << i;
      if (kinds.to_gpu) {
        ASSERT_EQ(receiver_->Flush(*to.memory, to.data + at), absl::OkStatus());
      }
      ASSERT_EQ(std::memcmp(from.bytes + at, to.bytes + at, size), 0)
          << "message " << i << " of " << size << " bytes";
      std::memset(to.bytes, 0x66, kBytes);
      if (send != nullptr) {
        ASSERT_TRUE(Await(*sender_, send).ok());
      }
      ASSERT_EQ(std::memcmp(to.bytes, later.data(), kBytes), 0) << "written after message " << i;
    }
    EXPECT_EQ(cuda_->copies(), 0);
  }

  // Bytes that the sender's NIC of a rail has sent from there.
  uint64_t Sent(int rail, const Piece& piece) const {
    uint64_t bytes = 0;
    for (const auto& region : fake_->verbs().regions(absl::StrCat("fake0_", rail))) {
      if (region.address == reinterpret_cast<uint64_t>(piece.data)) bytes += region.bytes_sent;
    }
    return bytes;
  }
  // Both sides work, as NCCL's proxies do, until the receive is done. Returns its size; `send` is
  // null once that is done.
  int Received(Connection::Request* receive, Connection::Request*& send) {
    int size = -1;
    const absl::Time deadline = MonotonicNow() + kPatience;
    while (MonotonicNow() < deadline) {
      if (send != nullptr && sender_->Test(send, nullptr).value()) send = nullptr;
      if (receiver_->Test(receive, &size).value()) return size;
    }
    return -1;
  }

  std::shared_ptr<device::FakeCuda> cuda_ = std::make_shared<device::FakeCuda>();
  std::vector<std::unique_ptr<std::byte[]>> host_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, RegisteredMemoryTest, ::testing::Values(RailKind::kVerbs),
                         [](const auto& /*kind*/) { return "verbs"; });

TEST_P(RegisteredMemoryTest, MessagesOfAllKinds) {
  for (const bool from_gpu : {false, true}) {
    for (const bool to_gpu : {false, true}) {
      SCOPED_TRACE(
          absl::StrCat("from ", from_gpu ? "GPU" : "host", ", to ", to_gpu ? "GPU" : "host"));
      Exchange({from_gpu, to_gpu, to_gpu}, 25, [](std::mt19937& /*random*/) {});
    }
  }
}

TEST_P(RegisteredMemoryTest, RailsThatAreLostAndReturnChangeNoByte) {
  const auto harm = [this](std::mt19937& random) {
    const std::string device = absl::StrCat("fake", random() % 2, "_", random() % 2);
    for (const char* const nic : {"fake0_0", "fake0_1", "fake1_0", "fake1_1"}) {
      fake_->verbs().SetPortState(nic, IBV_PORT_ACTIVE);
    }
    if (random() % 2 == 0) fake_->verbs().SetPortState(device, IBV_PORT_DOWN);
  };
  Exchange({true, true, false}, 25, harm);
  Exchange({false, true, true}, 25, harm);
  Exchange({false, false, false}, 25, harm);
}

TEST_P(RegisteredMemoryTest, AGroupMayHaveMemoryOfBothKinds) {
  const Piece from = Make(*sender_, true, true);
  const Piece gpu = Make(*receiver_, true, false);
  const Piece host = Make(*receiver_, false, false);
  for (size_t i = 0; i < kBytes; ++i) from.bytes[i] = static_cast<std::byte>(i * 7 + i / 300);
  constexpr size_t kHalf = kBytes / 2;
  Connection::Request* const receive = receiver_
                                           ->Receive({{gpu.data, kHalf, 5, gpu.memory.get()},
                                                      {host.data, kHalf, 6, host.memory.get()}})
                                           .value();
  Connection::Request* const second =
      sender_->Send({from.data + kHalf, kHalf}, 6, from.memory.get()).value();
  Connection::Request* const first =
      sender_->Send({from.data, kHalf}, 5, from.memory.get()).value();
  ASSERT_TRUE(Await(*receiver_, receive, 2).ok());
  EXPECT_TRUE(std::equal(from.bytes, from.bytes + kHalf, gpu.bytes));
  EXPECT_TRUE(std::equal(from.bytes + kHalf, from.bytes + kBytes, host.bytes));
  EXPECT_TRUE(Await(*sender_, first).ok());
  EXPECT_TRUE(Await(*sender_, second).ok());
}

// The NIC that NCCL has chosen is near the GPU.
TEST_P(RegisteredMemoryTest, GpuMemoryGoesByTheChosenRailAndByOthersWhileItIsLost) {
  for (const bool from_gpu : {false, true}) {
    sender_ = Connect(*own_, listener_->handle(), 1).value();
    receiver_ = AcceptOne();
    const Piece from = Make(*sender_, from_gpu, false);
    const Piece to = Make(*receiver_, true, false);
    const auto send_by = [&](int rail) {
      std::array<uint64_t, 2> before = {Sent(0, from), Sent(1, from)};
      for (int i = 0; i < 8; ++i) {
        Connection::Request* const receive =
            receiver_->Receive({{to.data, kBytes, 1, to.memory.get()}}).value();
        Connection::Request* send =
            sender_->Send({from.data, kBytes}, 1, from.memory.get()).value();
        ASSERT_EQ(Received(receive, send), static_cast<int>(kBytes));
        if (send != nullptr) {
          ASSERT_TRUE(Await(*sender_, send).ok());
        }
      }
      EXPECT_GE(Sent(rail, from) - before.at(static_cast<size_t>(rail)), 6 * kBytes);
      EXPECT_LE(Sent(1 - rail, from) - before.at(static_cast<size_t>(1 - rail)), kBytes / 2);
    };
    // Both rails connect, and the sender learns of the receiver's memory.
    Connection::Request* const receive =
        receiver_->Receive({{to.data, 100, 1, to.memory.get()}}).value();
    Connection::Request* send = sender_->Send({from.data, 100}, 1, from.memory.get()).value();
    ASSERT_EQ(Received(receive, send), 100);
    if (send != nullptr) {
      ASSERT_TRUE(Await(*sender_, send).ok());
    }
    absl::SleepFor(absl::Milliseconds(300));
    send_by(1);
    fake_->verbs().SetPortState("fake0_1", IBV_PORT_DOWN);
    absl::SleepFor(absl::Milliseconds(300));
    send_by(0);
    fake_->verbs().SetPortState("fake0_1", IBV_PORT_ACTIVE);
  }
}

// A sender remembers 1024 of them.
TEST_P(RegisteredMemoryTest, MemoryThatWasForgottenIsToldAgain) {
  constexpr size_t kSize = 20'000;
  const Piece from = Make(*sender_, false, false);
  const Piece to = Make(*receiver_, true, false);
  std::vector<std::unique_ptr<Memory>> pieces;
  for (size_t i = 0; i < 1100; ++i) {
    pieces.push_back(receiver_->Register({to.data + 8 * i, kSize}, true, nullptr).value());
  }
  pieces.push_back(nullptr);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t which = i + 1 < pieces.size() ? i : 0;
    std::memset(from.bytes, static_cast<int>(i % 250 + 1), kSize);
    Connection::Request* const receive =
        receiver_->Receive({{to.data + 8 * which, kSize, 1, pieces[which].get()}}).value();
    Connection::Request* send = sender_->Send({from.data, kSize}, 1, from.memory.get()).value();
    ASSERT_EQ(Received(receive, send), static_cast<int>(kSize));
    if (send != nullptr) {
      ASSERT_TRUE(Await(*sender_, send).ok());
    }
    ASSERT_EQ(std::memcmp(from.bytes, to.bytes + 8 * which, kSize), 0) << i;
  }
}

TEST_P(RegisteredMemoryTest, GpuMemoryThatANicCannotReachIsAnErrorWithTheFix) {
  cuda_->SetPeermem(false);
  std::byte* const data = cuda_->Allocate(4096);
  const absl::Status refused = sender_->Register({data, 4096}, true, nullptr).status();
  EXPECT_THAT(std::string(refused.message()),
              ::testing::AllOf(HasSubstr("cannot register 4096 bytes of GPU memory: rail 0"),
                               HasSubstr("RAILHEAD_NCCL_GPU_MEMORY=off")));
}

TEST(GpuMemoryOfTest, SettingKernelAndRailsDecide) {
  const RailForGpus good = {"rail 0 (mlx5_0)", "", true, true};
  const RailForGpus old = {"rail 0 (mlx5_0)", "", true, false};
  const RailForGpus iwarp = {"rail 1 (iw0)", "", false, true};
  const RailForGpus down = {"rail 1 (mlx5_1)", "its port is DOWN", true, true};
  const auto of = [](const char* setting, const std::vector<RailForGpus>& rails) {
    return GpuMemoryOf(setting, "/nonexistent", rails).value();
  };
  EXPECT_TRUE(of("", {good, good}).dma_buf);
  EXPECT_TRUE(of("auto", {good}).dma_buf);
  EXPECT_FALSE(of("auto", {good}).peermem);
  EXPECT_FALSE(of("off", {good}).dma_buf);
  EXPECT_EQ(of("off", {good}).why_not, "RAILHEAD_NCCL_GPU_MEMORY=off");
  EXPECT_TRUE(of("peermem", {old}).peermem);
  EXPECT_FALSE(of("peermem", {good}).dma_buf);
  EXPECT_THAT(of("", {old}).why_not, HasSubstr("nvidia-peermem is not loaded"));
  EXPECT_THAT(of("dmabuf", {good, old}).why_not, HasSubstr("takes no dma-bufs"));
  EXPECT_THAT(of("", {good, iwarp}).why_not, HasSubstr("rail 1 (iw0) is iWARP"));
  EXPECT_THAT(of("peermem", {good, down}).why_not, HasSubstr("is not open: its port is DOWN"));
  EXPECT_EQ(of("", {}).why_not, "the rails are TCP");
  EXPECT_THAT(std::string(GpuMemoryOf("yes", "/", {good}).status().message()),
              HasSubstr("RAILHEAD_NCCL_GPU_MEMORY='yes' is not allowed; it is auto, off"));
}

}  // namespace
}  // namespace railhead::nccl

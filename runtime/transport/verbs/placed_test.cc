// SPDX-License-Identifier: Apache-2.0
//
// Payloads that are written straight into the peer's memory: of the host and of GPUs, over fake
// NICs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/collectives/registered_memory.h"
#include "runtime/device/fake_cuda.h"
#include "runtime/rails/peer.h"
#include "runtime/transport/verbs/rails_for_test.h"
#include "runtime/transport/verbs/self_pair.h"
#include "runtime/transport/verbs/verbs_pair_for_test.h"

namespace railhead::transport::verbs {
namespace {

using ::testing::HasSubstr;

const Logger kQuiet(LogLevel::kError, "");

std::string Pattern(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

absl::Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

class PlacedTest : public EveryNetworkTest {
 protected:
  void SetUp() override {
    EveryNetworkTest::SetUp();
    ConnectBoth();
  }
  void TearDown() override {
    shared_.clear();
    EveryNetworkTest::TearDown();
  }

  uint32_t Share(Side& side, std::string& memory) {
    absl::StatusOr<std::unique_ptr<SharedMemory>> shared = side.device->Share(
        {reinterpret_cast<std::byte*>(memory.data()), memory.size()}, nullptr, false, kQuiet);
    if (!shared.ok()) return 0;
    shared_.push_back(*std::move(shared));
    return shared_.back()->remote_key();
  }
  static FrameHeader HeaderTo(const std::string& memory, size_t offset, uint32_t key) {
    FrameHeader header = {1, offset};
    header.awaited = true;
    header.place = {reinterpret_cast<uintptr_t>(memory.data()) + offset, key};
    return header;
  }

  std::vector<std::unique_ptr<SharedMemory>> shared_;
};

INSTANTIATE_TEST_SUITE_P(Networks, PlacedTest, ::testing::ValuesIn(kEveryWay), WayName);

TEST_P(PlacedTest, ThePayloadIsThereWhenTheFrameArrives) {
  std::string memory(200'000, '-');
  const uint32_t key = Share(b_, memory);
  std::string known = Pattern(65536, 1);
  Share(a_, known);
  const std::string unknown = Pattern(777, 2);
  ASSERT_TRUE(*a_.link->TrySend(HeaderTo(memory, 5, key), BytesOf(known)));
  ASSERT_TRUE(*a_.link->TrySend(HeaderTo(memory, 100'000, key), BytesOf(unknown)));
  PollUntilQuiet();
  ASSERT_EQ(b_.received.size(), 2U);
  EXPECT_TRUE(b_.received[0].first.placed);
  EXPECT_EQ(memory.substr(0, 5) + memory.substr(65541, 3), "--------");
  EXPECT_EQ(memory.substr(5, known.size()), known);
  EXPECT_EQ(memory.substr(100'000, unknown.size()), unknown);
  EXPECT_EQ(a_.unacknowledged, 0U);
}

TEST_P(PlacedTest, ARepeatIsNotPlaced) {
  std::string memory(8192, '-');
  FrameHeader header = HeaderTo(memory, 0, Share(b_, memory));
  header.repeated = true;
  header.lost_rails = 0x8005;
  const std::string text = Pattern(8192, 3);
  ASSERT_TRUE(*a_.link->TrySend(header, BytesOf(text)));
  b_.received.clear();
  PollUntilQuiet();
  ASSERT_EQ(b_.received.size(), 1U);
  EXPECT_FALSE(b_.received[0].first.placed);
  EXPECT_EQ(b_.received[0].first.lost_rails, 0x8005);
  EXPECT_EQ(b_.received[0].second, text);
  EXPECT_EQ(memory, std::string(8192, '-'));
}

TEST_P(PlacedTest, MemoryThatIsNotSharedIsNotWritten) {
  std::string memory(8192, '-');
  const uint32_t key = Share(b_, memory);
  shared_.clear();
  ASSERT_TRUE(*a_.link->TrySend(HeaderTo(memory, 0, key), BytesOf(Pattern(4096, 4))));
  absl::Status error;
  for (int i = 0; i < 100 && error.ok(); ++i) {
    fake_->AdvanceTime(absl::Milliseconds(100));
    error = a_.Poll().status();
    if (error.ok()) error = b_.Poll().status();
  }
  EXPECT_TRUE(absl::IsUnavailable(error)) << error;
  EXPECT_EQ(memory, std::string(8192, '-'));
}

class SelfPairTest : public VerbsPairTest {
 protected:
  void SetUp() override {
    VerbsPairTest::SetUp();
    OpenDevice(a_, "fake0");
    fake_->SetGpus(cuda_);
  }
  std::shared_ptr<device::FakeCuda> cuda_ = std::make_shared<device::FakeCuda>();
};

TEST_F(SelfPairTest, TheNicReadsAndWritesMemoryOfAGpu) {
  constexpr size_t kBytes = 150'000;
  std::byte* const data = cuda_->Allocate(kBytes, 1);
  std::byte* const bytes = cuda_->Bytes(data);
  std::fill_n(bytes, kBytes, std::byte{7});
  const auto gpu = *device::Memory::Find(*cuda_, data);
  for (const bool dma_buf : {true, false}) {
    const absl::StatusOr<device::DmaBuf> buffer = gpu->Export({data, kBytes});
    absl::StatusOr<std::unique_ptr<SharedMemory>> shared =
        a_.device->Share({data, kBytes}, dma_buf ? &*buffer : nullptr, true, kQuiet);
    ASSERT_TRUE(shared.ok()) << shared.status();
    EXPECT_TRUE(std::all_of(bytes, bytes + kBytes, [](std::byte b) { return b == std::byte{7}; }))
        << "the trial leaves it as it was";
    const std::string text = Pattern(140'000, 5);
    ASSERT_EQ((*shared)->Write(data + 3, BytesOf(text)), absl::OkStatus());
    EXPECT_EQ((*shared)->Flush(data + 3), absl::OkStatus());
    EXPECT_TRUE(std::equal(text.begin(), text.end(), reinterpret_cast<const char*>(bytes) + 3));
    std::fill_n(bytes, kBytes, std::byte{7});
  }
  EXPECT_EQ(cuda_->copies(), 0);
}

TEST_F(SelfPairTest, APathThatChangesBytesIsRefused) {
  std::byte* const data = cuda_->Allocate(4096);
  fake_->CorruptNextSend("fake0", 9, 0x5a);
  const auto shared = a_.device->Share({data, 4096}, nullptr, true, kQuiet);
  EXPECT_TRUE(absl::IsInternal(shared.status()));
  EXPECT_THAT(std::string(shared.status().message()),
              HasSubstr("rail 0, device fake0 port 1 reads other bytes than it has written"));
}

TEST_F(SelfPairTest, MemoryThatNoNicCanReachIsAnError) {
  std::byte* const data = cuda_->Allocate(4096);
  cuda_->SetPeermem(false);
  EXPECT_THAT(std::string(a_.device->Share({data, 4096}, nullptr, true, kQuiet).status().message()),
              HasSubstr("Bad address"));
}

// Memory of one side that is shared on all of its rails.
class Shared final : public collectives::RegisteredMemory {
 public:
  Shared(std::byte* data, size_t size, bool on_device,
         const std::vector<std::unique_ptr<VerbsDevice>>& devices)
      : on_device_(on_device) {
    remote_.address = reinterpret_cast<uintptr_t>(data);
    for (const std::unique_ptr<VerbsDevice>& device : devices) {
      by_rail_.push_back(*device->Share({data, size}, nullptr, on_device, kQuiet));
      remote_.keys.push_back(by_rail_.back()->remote_key());
    }
  }
  uint64_t number() const override { return 1; }
  const collectives::RemoteMemory& remote() const override { return remote_; }
  bool on_device() const override { return on_device_; }
  absl::Status Write(std::byte* to, absl::Span<const std::byte> from) const override {
    absl::Status written;
    for (const auto& rail : by_rail_) {
      written = rail->Write(to, from);
      if (written.ok()) break;
    }
    return written;
  }

 private:
  const bool on_device_;
  collectives::RemoteMemory remote_;
  std::vector<std::unique_ptr<SharedMemory>> by_rail_;
};

// Memory of the host, or of a GPU, which the CPU must not touch at `data`.
struct Block {
  std::byte* data;
  std::byte* bytes;  // for the test
};

class PlacedFaultsTest : public ::testing::TestWithParam<Network> {};

INSTANTIATE_TEST_SUITE_P(Networks, PlacedFaultsTest,
                         ::testing::Values(Network::kRoce, Network::kIwarp), NetworkName);

// Messages into few places of registered memory, each of which is used for something else as soon
// as its message has come: nothing of a message may arrive later. Rails are lost in all ways.
TEST_P(PlacedFaultsTest, NothingArrivesAfterAMessageIsComplete) {
  int schedules = 60;
  if (const char* wanted = std::getenv("RAILHEAD_SCHEDULES"); wanted != nullptr) {
    ASSERT_TRUE(absl::SimpleAtoi(wanted, &schedules));
  }
  constexpr size_t kPlace = 300'000;
  uint64_t failovers = 0;
  uint64_t strays = 0;
  for (int schedule = 0; schedule < schedules; ++schedule) {
    std::mt19937 random(static_cast<uint32_t>(schedule));
    const size_t rails = 1 + random() % 3;
    const bool on_gpu = GetParam() == Network::kRoce && random() % 2 == 0;
    const auto fake = std::make_shared<FakeVerbs>(DevicesOfRails(GetParam(), rails));
    const auto cuda = std::make_shared<device::FakeCuda>();
    fake->SetGpus(cuda);
    const size_t places = 1 + random() % 3;
    std::vector<char> host(2 * places * kPlace);
    const auto allocate = [&](size_t which) {
      auto* const own = reinterpret_cast<std::byte*>(host.data() + which * places * kPlace);
      if (!on_gpu) return Block{own, own};
      std::byte* const data = cuda->Allocate(places * kPlace);
      return Block{data, cuda->Bytes(data)};
    };
    const Block from = allocate(0);
    const Block to = allocate(1);
    {
      RailsOfTwoSides sides = ConnectRails(fake, rails, [&random] {
        VerbsSettings settings;
        settings.qps_per_rail = static_cast<uint8_t>(1 + random() % kMostQpsPerRail);
        return settings;
      });
      ASSERT_FALSE(HasFailure()) << "schedule " << schedule;
      const Shared source(from.data, places * kPlace, on_gpu, sides.devices[0]);
      const Shared target(to.data, places * kPlace, on_gpu, sides.devices[1]);
      if (random() % 4 != 0) fake->MoveAtRandom(random());
      rails::Peer a("rank 1", std::move(sides.rails[0]), kQuiet);
      rails::Peer b("rank 0", std::move(sides.rails[1]), kQuiet);

      const size_t messages = 20 + random() % 40;
      std::vector<std::string> texts;
      for (size_t m = 0; m < messages; ++m) {
        const size_t most = random() % 2 == 0 ? 3000 : kPlace;
        texts.push_back(Pattern(1 + random() % most, static_cast<uint32_t>(m)));
      }
      // By place: the ticket of its message, and what it must have in the meantime.
      std::vector<uint64_t> sends;
      std::vector<uint64_t> receives;
      std::vector<std::string> kept(places);
      size_t completed = 0;
      const auto sent = [&] {
        return static_cast<size_t>(std::count_if(
            sends.begin(), sends.end(), [&](uint64_t ticket) { return a.SendDone(ticket); }));
      };
      const uint32_t calm = 12 + random() % 60;
      const absl::Time begin = fake->Now();
      while (completed < messages || sent() < messages) {
        ASSERT_LT(fake->Now() - begin, absl::Seconds(3000))
            << "schedule " << schedule << ": " << a.DescribeProgress() << "\n"
            << b.DescribeProgress();
        // The sender reuses a place when its message is done, and sends only to a posted receive.
        if (sends.size() < receives.size() &&
            (sends.size() < places || a.SendDone(sends[sends.size() - places]))) {
          const std::string& text = texts[sends.size()];
          std::byte* const data = from.data + sends.size() % places * kPlace;
          std::copy_n(BytesOf(text).data(), text.size(), from.bytes + (data - from.data));
          collectives::RemoteMemory remote = target.remote();
          remote.address += sends.size() % places * kPlace;
          sends.push_back(a.PostDirect({data, text.size()}, remote));
        }
        if (receives.size() < messages && receives.size() < completed + places) {
          const size_t place = receives.size() % places;
          ASSERT_TRUE(std::equal(kept[place].begin(), kept[place].end(),
                                 reinterpret_cast<const char*>(to.bytes) + place * kPlace))
              << "schedule " << schedule << ": written after message " << receives.size() - places;
          collectives::ReceiveBuffer buffer;
          buffer.data = to.data + place * kPlace;
          buffer.size = texts[receives.size()].size();
          buffer.registered = &target;
          receives.push_back(b.PostReceive(buffer));
        }
        if (completed < receives.size() && b.ReceiveDone(receives[completed]) &&
            random() % 3 == 0) {
          const size_t place = completed % places;
          std::byte* const bytes = to.bytes + place * kPlace;
          const std::string& text = texts[completed];
          ASSERT_TRUE(std::equal(text.begin(), text.end(), reinterpret_cast<const char*>(bytes)))
              << "schedule " << schedule << ", message " << completed;
          kept[place].assign(text.size(), static_cast<char>(random()));
          std::copy_n(BytesOf(kept[place]).data(), text.size(), bytes);
          ++completed;
        }
        const std::string device = absl::StrCat(random() % 2 == 0 ? "a" : "b", random() % rails);
        if (random() % calm == 0) {
          switch (random() % 5) {
            case 0:
              fake->SetPortState(device, IBV_PORT_DOWN);
              break;
            case 1:
              fake->HoldCompletions(device, true);
              break;
            case 2:
            case 3:
              (random() % 2 == 0 ? a : b).link(random() % rails).Drop("the test says so");
              break;
            default:
              fake->LosePath(device, random() % kMostQpsPerRail, true);
              break;
          }
        }
        if (random() % (2 * calm) == 0) {
          Heal(*fake, rails);
        }
        fake->AdvanceTime(random() % 64 == 0 ? absl::Milliseconds(100)
                                             : absl::Microseconds(random() % 2000));
        for (rails::Peer* const peer : {&a, &b}) {
          const absl::StatusOr<bool> polled = peer->Poll(fake->Now());
          ASSERT_TRUE(polled.ok()) << "schedule " << schedule << ": " << polled.status();
        }
      }
      ASSERT_EQ(fake->violations(), std::vector<std::string>()) << "schedule " << schedule;
      ASSERT_EQ(cuda->copies(), 0) << "schedule " << schedule;
      for (size_t k = 0; k < rails; ++k) failovers += a.rail_health(k).failovers;
    }
    strays += fake->stray_writes();
  }
  EXPECT_GT(failovers, static_cast<uint64_t>(schedules) / 4);
  if (GetParam() == Network::kRoce) {
    EXPECT_GT(strays, static_cast<uint64_t>(schedules) / 4);
  }
}

}  // namespace
}  // namespace railhead::transport::verbs

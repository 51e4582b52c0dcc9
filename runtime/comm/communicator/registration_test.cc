// SPDX-License-Identifier: Apache-2.0
//
// Registered user memory: RDMA rails must send from it while it is registered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/fake_rails_for_test.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::comm {
namespace {

constexpr size_t kCount = size_t{1} << 18;
constexpr size_t kBytes = kCount * sizeof(float);

class RegistrationTest : public ::testing::Test {
 protected:
  // Returns a communicator over two fake rails; null after an error.
  rhComm_t Join(int rank) {
    CommunicatorOptions options;
    options.rendezvous = {rank, 2, "127.0.0.1", port_};
    config::Settings& settings = options.setup.settings;
    settings.transport = config::TransportChoice::kVerbs;
    settings.rails_file = rails_.File(rank);
    settings.metrics_port = 0;
    settings.timeout = absl::Seconds(60);
    settings.log_level = LogLevel::kError;
    options.setup.place = absl::StrCat("place ", rank);
    options.setup.open_rdma_rail = [this](const fabric::PodRail& rail) {
      return rails_.Open(rail);
    };
    auto made = Communicator::Create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return nullptr;
    auto comm = std::make_unique<rhComm>();
    comm->communicator = *std::move(made);
    return comm.release();
  }
  // Returns the number of frames that all NICs have sent from registered memory; all ranks must
  // call it.
  uint64_t NotCopied(rhComm_t comm) {
    EXPECT_EQ(rhBarrier(comm, nullptr), rhSuccess);
    const uint64_t sends = rails_.verbs().gathered_sends();
    EXPECT_EQ(rhBarrier(comm, nullptr), rhSuccess);
    return sends;
  }
  // Sums in place what a rank has.
  static void ExpectSum(rhComm_t comm, int rank, float* values) {
    for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(rank + i % 1000);
    EXPECT_EQ(rhAllReduce(values, values, kCount, rhFloat32, rhSum, comm, nullptr), rhSuccess)
        << rhGetLastError(comm);
    size_t wrong = 0;
    for (size_t i = 0; i < kCount; ++i) {
      wrong += values[i] == static_cast<float>(1 + 2 * (i % 1000)) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U);
  }

  int port_ = testing::FreePort();
  FakeRails rails_{2};
};

TEST_F(RegistrationTest, FromThenOnNothingIsCopiedUntilItEnds) {
  testing::RunRanks(2, [&](int rank) {
    rhComm_t comm = Join(rank);
    if (comm == nullptr) return false;
    std::vector<float> values(kCount);
    ExpectSum(comm, rank, values.data());
    EXPECT_EQ(NotCopied(comm), 0U);

    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
    ExpectSum(comm, rank, values.data());
    const uint64_t once = NotCopied(comm);
    EXPECT_GE(once, 2 * kBytes / 2 / (64 * 1024)) << "at least half of it, from each rank";

    EXPECT_EQ(rhCommDeregister(comm, handle), rhSuccess);
    ExpectSum(comm, rank, values.data());
    EXPECT_EQ(NotCopied(comm), once);
    EXPECT_EQ(rhCommDeregister(comm, handle), rhInvalidArgument);

    // A registration that the program does not release belongs to the communicator.
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
    ExpectSum(comm, rank, values.data());
    EXPECT_GT(NotCopied(comm), once);
    EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
    return true;
  });
}

TEST_F(RegistrationTest, WindowsAreKnownToo) {
  testing::RunRanks(2, [&](int rank) {
    rhComm_t comm = Join(rank);
    if (comm == nullptr) return false;
    void* memory = nullptr;
    rhWindow_t window = nullptr;
    EXPECT_EQ(rhMemAlloc(&memory, kBytes), rhSuccess);
    EXPECT_EQ(rhCommWindowRegister(comm, memory, kBytes, &window, 0), rhSuccess);
    ExpectSum(comm, rank, static_cast<float*>(memory));
    const uint64_t once = NotCopied(comm);
    EXPECT_GT(once, 0U);
    EXPECT_EQ(rhCommWindowDeregister(comm, window), rhSuccess);
    ExpectSum(comm, rank, static_cast<float*>(memory));
    EXPECT_EQ(NotCopied(comm), once);

    // Memory may be freed before its window, and before its registration.
    void* handle = nullptr;
    EXPECT_EQ(rhCommWindowRegister(comm, memory, kBytes, &window, 0), rhSuccess);
    EXPECT_EQ(rhCommRegister(comm, memory, kBytes / 2, &handle), rhSuccess);
    ExpectSum(comm, rank, static_cast<float*>(memory));
    EXPECT_EQ(rhMemFree(memory), rhSuccess);
    EXPECT_EQ(rhCommWindowDeregister(comm, window), rhSuccess);
    EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
    return true;
  });
}

}  // namespace
}  // namespace railhead::comm

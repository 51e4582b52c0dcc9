// SPDX-License-Identifier: Apache-2.0
//
// The C API from a program's view, with ranks as threads: what a communicator reports about
// itself, wrong arguments, errors, abort and revocation, and unique ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/comm/setup/unique_id.h"
#include "runtime/net/address.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunRanks;

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() {
    // Before any thread exists.
    ::setenv("RAILHEAD_SOCKET_IFNAME", "lo", 1);
    ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
    ::setenv("RAILHEAD_RAILS_FILE", "/nonexistent/rails.json", 1);
    ::setenv("RAILHEAD_TIMEOUT_SECONDS", "20", 1);
    ::setenv("RAILHEAD_TRANSPORT", "tcp", 1);
  }

  // Runs body(comm, rank) on every rank of a fresh group.
  template <class Body>
  void WithGroup(int world, Body body) {
    rhUniqueId id;
    ASSERT_EQ(rhGetUniqueId(&id), rhSuccess) << rhGetLastError(nullptr);
    std::latch formed(world);
    RunRanks(world, [&](int rank) {
      rhComm_t comm = nullptr;
      EXPECT_EQ(rhCommInitRank(&comm, world, id, rank), rhSuccess) << rhGetLastError(nullptr);
      formed.arrive_and_wait();  // a body may abort the group, which must not meet another's start
      if (comm != nullptr) body(comm, rank);
      return true;
    });
  }
};

TEST_F(ApiTest, MemoryMayBeMadeKnownWhateverTheNetwork) {
  WithGroup(2, [](rhComm_t comm, int rank) {
    std::vector<float> values(100003, static_cast<float>(rank + 1));
    void* first = nullptr;
    void* second = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), 400012, &first), rhSuccess);
    EXPECT_EQ(rhCommRegister(comm, values.data(), 400012, &second), rhSuccess);
    EXPECT_NE(first, second);
    EXPECT_EQ(
        rhAllReduce(values.data(), values.data(), values.size(), rhFloat32, rhSum, comm, nullptr),
        rhSuccess)
        << rhGetLastError(comm);
    EXPECT_EQ(values, std::vector<float>(values.size(), 3.0F));
    EXPECT_EQ(rhCommDeregister(comm, first), rhSuccess);
    EXPECT_EQ(rhCommDeregister(comm, first), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm),
                 "rhCommDeregister: handle is not a registration of this communicator, or not any "
                 "more");
    EXPECT_EQ(rhCommRegister(nullptr, values.data(), 4, &first), rhInvalidArgument);
    EXPECT_EQ(rhCommRegister(comm, values.data(), 4, nullptr), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm), "rhCommRegister: handle is NULL");
    EXPECT_EQ(rhCommRegister(comm, nullptr, 4, &first), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm), "rhCommRegister: buff is NULL");
    EXPECT_EQ(rhCommRegister(comm, values.data(), 0, &first), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm), "rhCommRegister: size is 0");
    EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
  });
}

TEST_F(ApiTest, AGroupKnowsItselfAndReduces) {
  for (const int world : {1, 2, 3, 5}) {
    WithGroup(world, [world](rhComm_t comm, int rank) {
      int value = -1;
      EXPECT_EQ(rhCommCount(comm, &value), rhSuccess);
      EXPECT_EQ(value, world);
      EXPECT_EQ(rhCommUserRank(comm, &value), rhSuccess);
      EXPECT_EQ(value, rank);
      std::vector<float> send(10007, static_cast<float>(rank + 1));
      std::vector<float> receive(send.size());
      EXPECT_EQ(
          rhAllReduce(send.data(), receive.data(), send.size(), rhFloat32, rhSum, comm, nullptr),
          rhSuccess)
          << rhGetLastError(comm);
      const auto sum = static_cast<float>(world * (world + 1) / 2);
      EXPECT_EQ(receive, std::vector<float>(send.size(), sum));
      EXPECT_EQ(rhAllReduce(nullptr, nullptr, 0, rhFloat32, rhSum, comm, nullptr), rhSuccess);
      EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
    });
  }
}

TEST_F(ApiTest, InfoSaysWhatItRunsOnAndCountsBytes) {
  WithGroup(2, [](rhComm_t comm, int) {
    std::vector<float> values(100000);
    rhRailInfo_t before;
    before.struct_size = sizeof before;
    EXPECT_EQ(rhCommRailInfo(comm, 0, &before), rhSuccess);
    // The other rank must not be ahead; that costs a few bytes.
    EXPECT_EQ(rhBarrier(comm, nullptr), rhSuccess);
    EXPECT_EQ(
        rhAllReduce(values.data(), values.data(), values.size(), rhFloat32, rhSum, comm, nullptr),
        rhSuccess);
    rhCommInfo_t info;
    info.struct_size = sizeof info;
    EXPECT_EQ(rhCommGetInfo(comm, &info), rhSuccess);
    EXPECT_STREQ(info.transport, "tcp");
    EXPECT_EQ(info.rails, 1);
    EXPECT_EQ(info.degraded, 0);
    EXPECT_STREQ(info.degraded_reason, "");
    rhRailInfo_t rail;
    rail.struct_size = sizeof rail;
    EXPECT_EQ(rhCommRailInfo(comm, 0, &rail), rhSuccess);
    EXPECT_STREQ(rail.device, "lo");
    EXPECT_STREQ(rail.transport, "tcp");
    EXPECT_EQ(rail.up, 1);
    // Half of the values go each way twice.
    EXPECT_GE(rail.tx_bytes - before.tx_bytes, 400000U);
    EXPECT_LE(rail.tx_bytes - before.tx_bytes, 400100U);
    EXPECT_GE(rail.rx_bytes - before.rx_bytes, 400000U);
    EXPECT_LE(rail.rx_bytes - before.rx_bytes, 400100U);

    EXPECT_EQ(rhCommRailInfo(comm, 1, &rail), rhInvalidArgument);
    EXPECT_EQ(rhCommRailInfo(comm, -1, &rail), rhInvalidArgument);
    rail.struct_size = 1;
    EXPECT_EQ(rhCommRailInfo(comm, 0, &rail), rhInvalidArgument);
    info.struct_size = 1;
    EXPECT_EQ(rhCommGetInfo(comm, &info), rhInvalidArgument);
    EXPECT_THAT(rhGetLastError(comm), HasSubstr("struct_size"));
    rhCommDestroy(comm);
  });
}

TEST_F(ApiTest, WrongArgumentsAreRefusedWithAText) {
  WithGroup(1, [](rhComm_t comm, int) {
    alignas(8) std::array<float, 8> a{};
    alignas(8) std::array<float, 8> b{};
    const auto reduce = [&](const void* send, void* receive, size_t count, rhDataType_t type,
                            rhRedOp_t op, const char* text) {
      EXPECT_EQ(rhAllReduce(send, receive, count, type, op, comm, nullptr), rhInvalidArgument);
      EXPECT_THAT(rhGetLastError(comm), HasSubstr(text));
    };
    const auto* odd = reinterpret_cast<const char*>(a.data()) + 1;
    reduce(nullptr, b.data(), 8, rhFloat32, rhSum, "sendbuf is NULL");
    reduce(a.data(), nullptr, 8, rhFloat32, rhSum, "recvbuf is NULL");
    reduce(odd, b.data(), 4, rhFloat32, rhSum, "aligned");
    reduce(a.data(), a.data() + 2, 4, rhFloat32, rhSum, "overlap");
    reduce(a.data(), b.data(), SIZE_MAX, rhFloat32, rhSum, "too large");
    reduce(a.data() + 1, b.data(), 2, rhFloat64, rhSum, "aligned to 8 bytes");
    reduce(a.data(), b.data(), 8, static_cast<rhDataType_t>(99), rhSum, "does not exist");
    reduce(a.data(), b.data(), 8, rhFloat32, rhBxor, "works on integers only");
    reduce(a.data(), b.data(), 8, rhFloat32, static_cast<rhRedOp_t>(77), "does not exist");
    // Refused arguments do not harm the communicator.
    EXPECT_EQ(rhAllReduce(a.data(), b.data(), 8, rhFloat32, rhSum, comm, nullptr), rhSuccess);
    rhCommDestroy(comm);
  });

  EXPECT_EQ(rhAllReduce(nullptr, nullptr, 0, rhFloat32, rhSum, nullptr, nullptr),
            rhInvalidArgument);
  EXPECT_THAT(rhGetLastError(nullptr), HasSubstr("comm is NULL"));
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  rhComm_t comm = nullptr;
  EXPECT_EQ(rhCommInitRank(&comm, 2, id, 2), rhInvalidArgument);
  EXPECT_EQ(rhCommInitRank(&comm, 0, id, 0), rhInvalidArgument);
  EXPECT_EQ(rhCommInitRank(nullptr, 1, id, 0), rhInvalidArgument);
  id.internal[0] ^= 1;
  EXPECT_EQ(rhCommInitRank(&comm, 1, id, 0), rhInvalidArgument);
  EXPECT_THAT(rhGetLastError(nullptr), HasSubstr("rhGetUniqueId"));
  EXPECT_EQ(rhCommCount(nullptr, nullptr), rhInvalidArgument);
  EXPECT_EQ(rhCommDestroy(nullptr), rhSuccess);
  EXPECT_EQ(rhCommAbort(nullptr), rhSuccess);
  EXPECT_EQ(rhGetVersion(nullptr), rhInvalidArgument);
}

// Later headers have larger structs: an older program gets the fields that it knows, and nothing
// beyond them.
TEST_F(ApiTest, StructsOfOlderProgramsAreFilledAsFarAsTheyGo) {
  WithGroup(1, [](rhComm_t comm, int) {
    rhCommInfo_t info;
    std::memset(&info, 0x5a, sizeof info);
    info.struct_size = offsetof(rhCommInfo_t, unused_memory_reason);
    EXPECT_EQ(rhCommGetInfo(comm, &info), rhSuccess) << rhGetLastError(comm);
    EXPECT_EQ(info.struct_size, offsetof(rhCommInfo_t, unused_memory_reason));
    EXPECT_STREQ(info.transport, "tcp");
    EXPECT_EQ(info.rejected_connections, 0U);
    EXPECT_EQ(info.unused_memory_reason[0], 0x5a);

    rhRailInfo_t rail;
    std::memset(&rail, 0x5a, sizeof rail);
    rail.struct_size = offsetof(rhRailInfo_t, retransmits);
    EXPECT_EQ(rhCommRailInfo(comm, 0, &rail), rhSuccess) << rhGetLastError(comm);
    EXPECT_STREQ(rail.transport, "tcp");
    EXPECT_EQ(rail.retransmits, 0x5a5a5a5a5a5a5a5aU);

    // A program with a newer header gets zeros in fields that this library does not know.
    struct {
      rhCommInfo_t known;
      std::array<char, 64> news;
    } newer;
    std::memset(&newer, 0x5a, sizeof newer);
    newer.known.struct_size = sizeof newer;
    EXPECT_EQ(rhCommGetInfo(comm, &newer.known), rhSuccess) << rhGetLastError(comm);
    EXPECT_EQ(newer.news, (std::array<char, 64>{}));

    // A struct that was not initialized.
    info.struct_size = 3;
    EXPECT_EQ(rhCommGetInfo(comm, &info), rhInvalidArgument);
    rail.struct_size = 0;
    EXPECT_EQ(rhCommRailInfo(comm, 0, &rail), rhInvalidArgument);
    rhCommDestroy(comm);
  });
}

TEST_F(ApiTest, AShrinkOfLessThanNothingIsRefused) {
  WithGroup(1, [](rhComm_t comm, int) {
    const int nobody = 0;
    rhComm_t smaller = nullptr;
    EXPECT_EQ(rhCommShrink(comm, &nobody, -1, &smaller, nullptr), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm), "rhCommShrink: exclude_count -1 is negative");
    rhCommDestroy(comm);
  });
}

// For example a watchdog in another thread that polls all the time.
TEST_F(ApiTest, ALastErrorStaysWhileAnotherThreadAsksHowItGoes) {
  std::atomic<bool> has_failed = false;
  WithGroup(2, [&](rhComm_t comm, int rank) {
    if (rank == 1) {
      while (!has_failed) std::this_thread::yield();
      rhCommAbort(comm);
      return;
    }
    EXPECT_EQ(rhBroadcast(nullptr, nullptr, 1, rhInt8, 5, comm, nullptr), rhInvalidArgument);
    const char* const text = rhGetLastError(comm);
    has_failed = true;
    rhResult_t state = rhSuccess;
    while (state == rhSuccess) ASSERT_EQ(rhCommGetAsyncError(comm, &state), rhSuccess);
    // The abort status is available, and the earlier text is unchanged.
    EXPECT_THAT(rhGetLastError(comm), HasSubstr("rhCommAbort was called"));
    EXPECT_STREQ(text, "rhBroadcast: root 5 does not exist; ranks go from 0 to 1");
    rhCommDestroy(comm);
  });
}

TEST_F(ApiTest, VersionIsTheHeaders) {
  int version = 0;
  EXPECT_EQ(rhGetVersion(&version), rhSuccess);
  EXPECT_EQ(version, RH_VERSION_CODE);
  EXPECT_EQ(absl::StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100),
            RAILHEAD_VERSION);
}

TEST_F(ApiTest, EveryResultHasWords) {
  for (const rhResult_t result : {rhSuccess, rhSystemError, rhInternalError, rhInvalidArgument,
                                  rhInvalidUsage, rhRemoteError, rhInProgress}) {
    EXPECT_THAT(rhGetErrorString(result), Not(HasSubstr("unknown")));
  }
  EXPECT_THAT(rhGetErrorString(static_cast<rhResult_t>(1234)), HasSubstr("unknown"));
}

TEST_F(ApiTest, AbortEndsTheCollectivesOfAllRanks) {
  WithGroup(3, [](rhComm_t comm, int rank) {
    std::vector<float> values(1000);
    const auto reduce = [&] {
      return rhAllReduce(values.data(), values.data(), values.size(), rhFloat32, rhSum, comm,
                         nullptr);
    };
    if (rank == 2) {
      EXPECT_EQ(reduce(), rhSuccess);
      EXPECT_EQ(rhCommAbort(comm), rhSuccess);
      return;
    }
    // The second one fails at the latest.
    if (reduce() == rhSuccess) {
      EXPECT_EQ(reduce(), rhRemoteError);
    }
    EXPECT_THAT(rhGetLastError(comm), HasSubstr("rank 2: rhCommAbort was called"));
    EXPECT_EQ(reduce(), rhRemoteError) << "a failed communicator stays failed";
    EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
  });
}

TEST_F(ApiTest, RevokedCommunicatorsFailAndCanBeShrunkAndDestroyed) {
  WithGroup(3, [](rhComm_t comm, int rank) {
    std::array<int, 4> values = {rank, rank, rank, rank};
    const auto reduce = [&](rhComm_t by) {
      return rhAllReduce(values.data(), values.data(), values.size(), rhInt32, rhSum, by, nullptr);
    };
    EXPECT_EQ(rhCommRevoke(comm, 1), rhInvalidArgument);
    EXPECT_EQ(rhCommRevoke(nullptr, 0), rhInvalidArgument);
    if (rank == 2) {
      // Another thread is in a call, or about to begin one: the communicator must stay.
      rhResult_t result = rhSuccess;
      std::thread worker([&] { result = reduce(comm); });
      EXPECT_EQ(rhCommRevoke(comm, 0), rhSuccess);
      worker.join();
      EXPECT_THAT(result, AnyOf(rhSuccess, rhRemoteError));
      EXPECT_EQ(reduce(comm), rhRemoteError);
      EXPECT_EQ(rhCommRevoke(comm, 0), rhSuccess) << "a second time is none too many";
      EXPECT_EQ(rhCommAbort(comm), rhSuccess);
      return;
    }
    rhResult_t state = rhSuccess;
    while (state == rhSuccess) ASSERT_EQ(rhCommGetAsyncError(comm, &state), rhSuccess);
    // Also what need not wait for others: a root's broadcast.
    EXPECT_EQ(
        rhBroadcast(values.data(), values.data(), values.size(), rhInt32, rank, comm, nullptr),
        rhRemoteError);
    EXPECT_EQ(reduce(comm), rhRemoteError);
    EXPECT_THAT(rhGetLastError(comm), HasSubstr("rank 2: rhCommRevoke was called"));
    const int lost = 2;
    rhComm_t rest = nullptr;
    ASSERT_EQ(rhCommShrink(comm, &lost, 1, &rest, nullptr), rhSuccess) << rhGetLastError(comm);
    EXPECT_EQ(rhCommDestroy(comm), rhSuccess);
    values.fill(rank);
    EXPECT_EQ(reduce(rest), rhSuccess);
    EXPECT_THAT(values, Each(1));
    EXPECT_EQ(rhCommDestroy(rest), rhSuccess);
  });
}

TEST_F(ApiTest, AbortFromAnotherThreadEndsOnesOwnCollective) {
  std::atomic<bool> aborted = false;
  WithGroup(2, [&aborted](rhComm_t comm, int rank) {
    std::array<float, 8> values{};
    const auto reduce = [&] {
      return rhAllReduce(values.data(), values.data(), 8, rhFloat32, rhSum, comm, nullptr);
    };
    if (rank == 1) {
      // Stays away from the collective until the other rank has ended the group.
      while (!aborted) absl::SleepFor(absl::Milliseconds(1));
      // Data that the other rank sent may arrive before the abort; data that it did not send never
      // does.
      if (const rhResult_t first = reduce(); first != rhSuccess) {
        EXPECT_EQ(first, rhRemoteError);
      }
      EXPECT_EQ(reduce(), rhRemoteError);
      rhCommDestroy(comm);
      return;
    }
    const auto sent = [comm] {
      rhRailInfo_t rail;
      rail.struct_size = sizeof rail;
      EXPECT_EQ(rhCommRailInfo(comm, 0, &rail), rhSuccess);
      return rail.tx_bytes;
    };
    const uint64_t before = sent();
    rhResult_t result = rhSuccess;
    std::thread worker([&] { result = reduce(); });
    while (sent() == before) std::this_thread::yield();  // until the collective runs
    EXPECT_EQ(reduce(), rhInvalidUsage);
    EXPECT_EQ(rhCommDestroy(comm), rhInvalidUsage);
    EXPECT_EQ(rhCommAbort(comm), rhSuccess);
    aborted = true;
    worker.join();
    EXPECT_EQ(result, rhRemoteError);
  });
}

TEST_F(ApiTest, RanksThatPassDifferentCountsGetAnErrorOrAreStopped) {
  ::setenv("RAILHEAD_START_TIMEOUT_SECONDS", "20", 1);
  ::setenv("RAILHEAD_TIMEOUT_SECONDS", "4", 1);
  WithGroup(2, [](rhComm_t comm, int rank) {
    std::vector<float> values(2000);
    EXPECT_NE(rhAllReduce(values.data(), values.data(), rank == 0 ? 1000 : 2000, rhFloat32, rhSum,
                          comm, nullptr),
              rhSuccess);
    rhCommDestroy(comm);
  });
}

TEST(UniqueIdTest, IdsTravelAndBrokenOnesAreRefused) {
  const absl::StatusOr<comm::UniqueId> id = comm::MakeUniqueId(*net::IpAddress::Parse("10.1.2.3"));
  ASSERT_TRUE(id.ok());
  const std::string bytes = comm::Encode(*id);
  ASSERT_EQ(bytes.size(), 128U);
  const absl::StatusOr<comm::UniqueId> parsed = comm::ParseUniqueId(bytes);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->address.ToString(), "10.1.2.3");
  EXPECT_EQ(parsed->port, id->port);
  EXPECT_EQ(parsed->key, id->key);
  EXPECT_FALSE(comm::ParseUniqueId(std::string(128, '\0')).ok());
  EXPECT_FALSE(comm::ParseUniqueId(std::string(128, '\xff')).ok());

  // Another id with the same key but another port does not get the socket.
  comm::UniqueId other = *parsed;
  other.port ^= 1;
  EXPECT_FALSE(comm::TakeListener(other).has_value());
  EXPECT_TRUE(comm::TakeListener(*parsed).has_value());
  EXPECT_FALSE(comm::TakeListener(*parsed).has_value()) << "it is closed now";
}

TEST(UniqueIdTest, KeysDiffer) {
  const net::IpAddress address = *net::IpAddress::Parse("127.0.0.1");
  const auto a = comm::MakeUniqueId(address);
  const auto b = comm::MakeUniqueId(address);
  EXPECT_NE(a->key, b->key);
  EXPECT_TRUE(comm::TakeListener(*a).has_value());
  EXPECT_TRUE(comm::TakeListener(*b).has_value());
}

}  // namespace
}  // namespace railhead

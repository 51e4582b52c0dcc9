// SPDX-License-Identifier: Apache-2.0
//
// Tests of the C API from a program's view: ranks as threads, and ranks as processes that die.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/comm/setup/unique_id.h"
#include "runtime/net/fd.h"
#include "runtime/testing/http.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using testing::Environment;
using testing::FreePort;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::Process;
using testing::RankEnvironment;
using testing::RunRanks;

absl::Time In(double seconds) { return MonotonicNow() + absl::Seconds(seconds); }

// ---- Ranks in threads ----

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

// ---- Ranks in processes ----

// Joins by environment; "" or the error.
std::string Join(rhComm_t* comm) {
  const rhResult_t result = rhCommInitFromEnv(comm);
  return result == rhSuccess
             ? ""
             : absl::StrCat(rhGetErrorString(result), ": ", rhGetLastError(nullptr));
}

std::string Reduce(rhComm_t comm, std::vector<float>& values) {
  const rhResult_t result =
      rhAllReduce(values.data(), values.data(), values.size(), rhFloat32, rhSum, comm, nullptr);
  return result == rhSuccess ? ""
                             : absl::StrCat(rhGetErrorString(result), ": ", rhGetLastError(comm));
}

// Forks a rank for each environment and returns the results of their bodies; "" for a rank that
// leaves a child behind, or stands still for good.
constexpr double kOutputs = 40;  // seconds, less than the timeout of RankEnvironment
std::vector<std::string> RunForks(const std::vector<Environment>& environments,
                                  const std::function<std::string(int rank)>& body,
                                  double seconds = kOutputs, int parent = -1) {
  std::vector<Process> processes;
  for (size_t rank = 0; rank < environments.size(); ++rank) {
    processes.push_back(
        Process::Fork(environments[rank], [&] { return body(static_cast<int>(rank)); }));
  }
  const absl::Time deadline = In(seconds);
  std::vector<std::string> outputs;
  for (size_t rank = 0; rank < processes.size(); ++rank) {
    const bool left = static_cast<int>(rank) == parent;
    outputs.push_back(left ? "" : processes[rank].Wait(deadline).output);
  }
  return outputs;
}

std::vector<Environment> Environments(int world, const Environment& common = {}) {
  const int port = FreePort();
  std::vector<Environment> environments;
  for (int rank = 0; rank < world; ++rank) {
    Environment environment = RankEnvironment(rank, world, port);
    for (const auto& [name, value] : common) environment[name] = value;
    environments.push_back(std::move(environment));
  }
  return environments;
}

TEST(ProcessesTest, ReduceByEnvironment) {
  for (const int world : {1, 2, 3, 4}) {
    const std::vector<std::string> outputs = RunForks(Environments(world), [world](int rank) {
      rhComm_t comm = nullptr;
      std::string error = Join(&comm);
      if (!error.empty()) return error;
      std::vector<float> values(250001, static_cast<float>(rank));
      error = Reduce(comm, values);
      if (!error.empty()) return error;
      for (const float value : values) {
        if (value != static_cast<float>(world * (world - 1) / 2)) return std::string("wrong");
      }
      rhCommDestroy(comm);
      return std::string("right");
    });
    EXPECT_EQ(outputs, std::vector<std::string>(static_cast<size_t>(world), "right"));
  }
}

// The bits of a small positive whole number in any type.
std::string Encode(rhDataType_t type, int value) {
  const auto bytes_of = [](auto number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const auto small_float = [&](int mantissa_bits, int bias) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
    const auto mantissa = static_cast<uint32_t>((2 * fraction - 1) * (1U << mantissa_bits));
    return static_cast<uint16_t>(static_cast<uint32_t>(exponent - 1 + bias) << mantissa_bits |
                                 mantissa);
  };
  switch (type) {
    case rhInt8:
    case rhUint8:
      return bytes_of(static_cast<uint8_t>(value));
    case rhInt16:
    case rhUint16:
      return bytes_of(static_cast<uint16_t>(value));
    case rhInt32:
    case rhUint32:
      return bytes_of(static_cast<uint32_t>(value));
    case rhInt64:
    case rhUint64:
      return bytes_of(static_cast<uint64_t>(value));
    case rhFloat16:
      return bytes_of(small_float(10, 15));
    case rhBfloat16:
      return bytes_of(small_float(7, 127));
    case rhFloat8e4m3:
      return bytes_of(static_cast<uint8_t>(small_float(3, 7)));
    case rhFloat8e5m2:
      return bytes_of(static_cast<uint8_t>(small_float(2, 15)));
    case rhFloat32:
      return bytes_of(static_cast<float>(value));
    case rhFloat64:
      return bytes_of(static_cast<double>(value));
  }
  return "";
}

int Combine(rhRedOp_t op, int a, int b) {
  switch (op) {
    case rhSum:
    case rhAvg:
      return a + b;
    case rhProd:
      return a * b;
    case rhMax:
      return std::max(a, b);
    case rhMin:
      return std::min(a, b);
    case rhBand:
      return a & b;
    case rhBor:
      return a | b;
    case rhBxor:
      return a ^ b;
  }
  return 0;
}

// Value of one of three ranks at index i; small enough that every type holds every result. Repeats
// after three values.
int Given(int rank, size_t i) { return (static_cast<size_t>(rank) + i) % 3 == 0 ? 2 : 1; }

// The first `count` values of these three, again and again.
std::string Repeated(const std::string& three, size_t count) {
  std::string values;
  values.reserve(count * (three.size() / 3) + three.size());
  while (values.size() < count * (three.size() / 3)) values += three;
  values.resize(count * (three.size() / 3));
  return values;
}

std::string ReduceEverything(rhComm_t comm, int rank, int world) {
  for (int type = rhInt8; type <= rhUint16; ++type) {
    for (int op = rhSum; op <= rhBxor; ++op) {
      const auto t = static_cast<rhDataType_t>(type);
      const auto o = static_cast<rhRedOp_t>(op);
      const bool is_float = t >= rhFloat16 && t <= rhFloat8e5m2;
      if (is_float && (o >= rhBand || o == rhAvg)) continue;
      std::string given;
      std::string right;
      for (size_t i = 0; i < 3; ++i) {
        int result = Given(0, i);
        for (int other = 1; other < world; ++other) result = Combine(o, result, Given(other, i));
        given += Encode(t, Given(rank, i));
        const std::string bits = Encode(t, std::max(1, o == rhAvg ? result / world : result));
        right += result == 0 ? std::string(bits.size(), 0) : bits;
      }
      for (const size_t count : {size_t{1}, size_t{1000}, size_t{300001}}) {
        const std::string send = Repeated(given, count);
        const std::string expected = Repeated(right, count);
        std::string receive(send.size(), 'x');
        if (rhAllReduce(send.data(), receive.data(), count, t, o, comm, nullptr) != rhSuccess) {
          return rhGetLastError(comm);
        }
        if (receive != expected) {
          return absl::StrCat("type ", type, ", op ", op, ", count ", count, " is wrong");
        }
      }
    }
  }
  return "";
}

class ProcessesByTransportTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ProcessesByTransportTest, EveryTypeAndOperator) {
  const std::string transport = GetParam();
  const std::vector<std::string> outputs = RunForks(
      Environments(3, {{"RAILHEAD_TRANSPORT", transport}}),
      [&](int rank) {
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        if (!error.empty()) return error;
        rhCommInfo_t info{};
        info.struct_size = sizeof info;
        rhCommGetInfo(comm, &info);
        error = ReduceEverything(comm, rank, 3);
        rhCommDestroy(comm);
        return error.empty() ? std::string(info.transport) : error;
      },
      300);
  EXPECT_EQ(outputs, std::vector<std::string>(3, transport));
}

INSTANTIATE_TEST_SUITE_P(Transports, ProcessesByTransportTest, ::testing::Values("tcp", "shm"));

TEST(ProcessesTest, RanksOfOnePodShareMemoryUnlessSomebodyWantsOtherwise) {
  const auto transports = [](const std::vector<Environment>& environments) {
    return RunForks(environments, [](int rank) {
      rhComm_t comm = nullptr;
      std::string error = Join(&comm);
      std::vector<float> values(5000, static_cast<float>(rank));
      if (error.empty()) error = Reduce(comm, values);
      if (!error.empty()) return error;
      rhCommInfo_t info{};
      info.struct_size = sizeof info;
      rhRailInfo_t rail{};
      rail.struct_size = sizeof rail;
      if (rhCommGetInfo(comm, &info) != rhSuccess || rhCommRailInfo(comm, 0, &rail) != rhSuccess) {
        return std::string(rhGetLastError(comm));
      }
      rhCommDestroy(comm);
      return absl::StrCat(info.transport, " ", rail.device, info.degraded != 0 ? " degraded" : "",
                          " ", std::string_view(rail.transport) == "shm" ? rail.tx_bytes : 0);
    });
  };
  // Both ways each byte once: 2(n-1)/n of the values.
  EXPECT_EQ(transports(Environments(2, {{"RAILHEAD_TRANSPORT", "auto"}})),
            std::vector<std::string>(2, "shm memory 20000"));
  std::vector<Environment> mixed = Environments(2, {{"RAILHEAD_TRANSPORT", "auto"}});
  mixed[1]["RAILHEAD_TRANSPORT"] = "tcp";
  EXPECT_EQ(transports(mixed), std::vector<std::string>(2, "tcp lo 0"));
  mixed[0]["RAILHEAD_TRANSPORT"] = "shm";
  for (const std::string& output : transports(mixed)) {
    EXPECT_THAT(output, HasSubstr("shared memory was chosen (RAILHEAD_TRANSPORT=shm on rank 0 "
                                  "(pod p0)) but cannot be used: rank 1 (pod p1): "
                                  "RAILHEAD_TRANSPORT=tcp is set there"));
  }
}

// Prometheus asks one port of the pod.
TEST(ProcessesTest, RanksOfOnePodShareAMetricsPage) {
  const int port = railhead::testing::FreePort();
  const std::vector<std::string> pages = RunForks(
      Environments(3, {{"RAILHEAD_METRICS_PORT", absl::StrCat(port)}, {"RAILHEAD_POD", "pod"}}),
      [port](int) {
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        std::vector<float> values(1000);
        if (error.empty()) error = Reduce(comm, values);
        if (!error.empty()) return error;
        std::string page = railhead::testing::HttpGet(port, "/metrics");
        error = Reduce(comm, values);
        rhCommDestroy(comm);
        return error.empty() ? page : error;
      });
  for (const std::string& page : pages) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_THAT(
          page,
          AllOf(HasSubstr(absl::StrCat("railhead_runtime_info{job=\"default\",rank=\"", rank)),
                HasSubstr(absl::StrCat("railhead_rail_transmit_bytes_total{job=\"default\",rank=\"",
                                       rank))));
    }
  }
}

class DeathTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeathTest, AKilledRankIsNamedByAllOthersLongBeforeTheTimeout) {
  for (const int world : {2, 4}) {
    for (int victim = 0; victim < world; ++victim) {
      const std::vector<std::string> outputs =
          RunForks(Environments(world, {{"RAILHEAD_TRANSPORT", GetParam()}}), [victim](int rank) {
            rhComm_t comm = nullptr;
            std::string error = Join(&comm);
            std::vector<float> values(262144);
            for (int i = 0; error.empty() && i < 1000000; ++i) {
              if (rank == victim && i == 5) ::raise(SIGKILL);
              error = Reduce(comm, values);
            }
            return error;
          });
      for (int rank = 0; rank < world; ++rank) {
        if (rank == victim) continue;
        EXPECT_THAT(outputs[static_cast<size_t>(rank)],
                    AllOf(HasSubstr(absl::StrCat("rank ", victim, " (pod p", victim, ")")),
                          HasSubstr("all_reduce number")))
            << "rank " << rank << " of " << world;
      }
    }
  }
}

// Like a data loader: a child that shares its parent's descriptors and outlives it.
TEST_P(DeathTest, AKilledRankIsNamedAlthoughItsChildLives) {
  constexpr int kWorld = 3;
  constexpr int kVictim = 1;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const net::Fd until_here(ends[0]);
  net::Fd here(ends[1]);
  const std::vector<std::string> outputs = RunForks(
      Environments(kWorld, {{"RAILHEAD_TRANSPORT", GetParam()}}),
      [&](int rank) {
        here.Reset();
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        std::vector<float> values(1000);
        for (int i = 0; error.empty() && i < 1000000; ++i) {
          if (rank == kVictim && i == 5) {
            if (::fork() == 0) {
              // The test must not wait for output of the child.
              for (const int pipe : {STDOUT_FILENO, STDERR_FILENO}) ::close(pipe);
              char end = 0;
              [[maybe_unused]] const ssize_t got = ::read(until_here.get(), &end, 1);
              _exit(0);
            }
            ::raise(SIGKILL);
          }
          error = Reduce(comm, values);
        }
        return error;
      },
      kOutputs, kVictim);
  for (int rank = 0; rank < kWorld; ++rank) {
    if (rank == kVictim) continue;
    EXPECT_THAT(outputs[static_cast<size_t>(rank)],
                AllOf(HasSubstr("rank 1 (pod p1)"), HasSubstr("all_reduce number")))
        << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, DeathTest, ::testing::Values("tcp", "shm"));

// Stops this process, as a debugger does, until it is killed.
void Stop() { ::raise(SIGSTOP); }

// One hundred reductions of two ranks with a timeout of 4 s; before the sixth one, rank 1 calls
// `before_the_sixth`. `stopped`: who does not come back from it.
std::vector<std::string> Hundred(const std::string& transport, void (*before_the_sixth)(),
                                 int stopped = -1) {
  return RunForks(
      Environments(2, {{"RAILHEAD_TIMEOUT_SECONDS", "4"}, {"RAILHEAD_TRANSPORT", transport}}),
      [&](int rank) {
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        std::vector<float> values(1000);
        for (int i = 0; error.empty() && i < 100; ++i) {
          if (rank == 1 && i == 5) before_the_sixth();
          error = Reduce(comm, values);
        }
        if (error.empty()) rhCommDestroy(comm);
        return error;
      },
      kOutputs, stopped);
}

TEST(ProcessesTest, ARankThatStandsStillInSharedMemoryIsNamed) {
  EXPECT_THAT(Hundred("shm", Stop, 1)[0],
              AllOf(HasSubstr("rank 0 (pod p0): all_reduce number 5 (4000 bytes)"),
                    HasSubstr("nothing has moved for 4s in shared memory"),
                    HasSubstr("waiting for rank 1")));
}

TEST(ProcessesTest, ARankThatStandsStillIsNamed) {
  EXPECT_THAT(Hundred("tcp", Stop, 1)[0],
              AllOf(HasSubstr("rank 0 (pod p0): all_reduce number 5 (4000 bytes)"),
                    HasSubstr("nothing has moved for 4s"), HasSubstr("with rank 1 (pod p1)"),
                    HasSubstr("rail 0 (lo, tcp)")));
}

// For example while it writes a checkpoint.
TEST(ProcessesTest, ARankThatCallsLateIsWaitedFor) {
  for (const char* transport : {"tcp", "shm"}) {
    EXPECT_THAT(Hundred(transport, [] { absl::SleepFor(absl::Seconds(9)); }), Each(""));
  }
}

// A signal that the program's threads block waits for them.
TEST(ProcessesTest, TheLibrarysThreadsTakeNoSignals) {
  std::vector<Environment> environments = Environments(2);
  for (Environment& environment : environments) {
    environment["RAILHEAD_METRICS_PORT"] = absl::StrCat(testing::FreePort());
  }
  const auto outputs = RunForks(environments, [](int) -> std::string {
    rhComm_t comm = nullptr;
    if (std::string error = Join(&comm); !error.empty()) return error;
    rhStream_t stream = nullptr;
    rhStreamCreate(&stream);
    sigset_t terminate;
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &terminate, nullptr);
    ::kill(::getpid(), SIGTERM);
    const timespec longest = {10, 0};
    const bool waited = sigtimedwait(&terminate, nullptr, &longest) == SIGTERM;
    struct sigaction pipe = {};
    ::sigaction(SIGPIPE, nullptr, &pipe);
    rhStreamDestroy(stream);
    rhCommDestroy(comm);
    return absl::StrCat(waited ? "waited" : "lost", pipe.sa_handler == SIG_DFL ? "" : ", ignored");
  });
  EXPECT_THAT(outputs, Each("waited"));
}

TEST(ProcessesTest, APinThatCannotBeFollowedIsAnErrorOnAllRanks) {
  for (const auto& [transport, pin] :
       {std::pair("tcp", "all_reduce=hierarchical"), std::pair("tcp", "all_gather=hierarchical"),
        std::pair("shm", "all_reduce=ring"), std::pair("shm", "all_gather=bruck")}) {
    const auto outputs = RunForks(
        Environments(3, {{"RAILHEAD_ALGO", pin}, {"RAILHEAD_TRANSPORT", transport}}), [](int) {
          rhComm_t comm = nullptr;
          return Join(&comm);
        });
    EXPECT_THAT(outputs, Each(AllOf(HasSubstr("invalid argument"), HasSubstr("RAILHEAD_ALGO"),
                                    HasSubstr(pin), HasSubstr("cannot be followed"))));
  }
}

TEST(ProcessesTest, ARankWithTooFewDescriptorsSaysHowManyItNeeds) {
  const auto outputs = RunForks(
      Environments(3, {{"RAILHEAD_SOCKET_IFNAME", "lo,lo,lo,lo,lo,lo,lo,lo"}}), [](int rank) {
        const rlimit limit = {20, 20};
        if (rank == 1) ::setrlimit(RLIMIT_NOFILE, &limit);
        rhComm_t comm = nullptr;
        return Join(&comm);
      });
  EXPECT_THAT(outputs,
              Each(AllOf(HasSubstr("rank 1 (pod p1)"),
                         HasSubstr("Too many open files (EMFILE: this process may have 20"),
                         HasSubstr("it needs about "))));
}

// Most limits are low by default only.
TEST(ProcessesTest, ARankRaisesItsLimitOfDescriptors) {
  const auto outputs = RunForks(
      Environments(3, {{"RAILHEAD_SOCKET_IFNAME", "lo,lo,lo,lo,lo,lo,lo,lo"}}), [](int rank) {
        const rlimit limit = {20, 1000};
        if (rank == 1) ::setrlimit(RLIMIT_NOFILE, &limit);
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        std::vector<float> values(1000);
        if (error.empty()) error = Reduce(comm, values);
        if (error.empty()) rhCommDestroy(comm);
        return error;
      });
  EXPECT_THAT(outputs, Each(""));
}

// How long ranks may stand still is another matter.
TEST(ProcessesTest, RanksMayStartAsFarApartAsTheStartAllows) {
  const auto outputs = RunForks(Environments(2, {{"RAILHEAD_TIMEOUT_SECONDS", "4"},
                                                 {"RAILHEAD_START_TIMEOUT_SECONDS", "30"}}),
                                [](int rank) {
                                  if (rank == 1) absl::SleepFor(absl::Seconds(6));
                                  rhComm_t comm = nullptr;
                                  std::string error = Join(&comm);
                                  if (error.empty()) rhCommDestroy(comm);
                                  return error;
                                });
  EXPECT_THAT(outputs, Each(""));
}

TEST(ProcessesTest, ARankThatLeavesEarlyIsNamed) {
  const std::vector<std::string> outputs = RunForks(Environments(3), [](int rank) {
    rhComm_t comm = nullptr;
    std::string error = Join(&comm);
    if (rank == 2 || !error.empty()) return error;  // exits without leaving
    std::vector<float> values(1000);
    return Reduce(comm, values);
  });
  EXPECT_THAT(outputs[0], HasSubstr("rank 2 (pod p2)"));
  EXPECT_THAT(outputs[1], HasSubstr("rank 2 (pod p2)"));
}

TEST(ProcessesTest, RequiredRdmaWithoutDevicesFailsOnAllRanksWithTheSameReason) {
  std::vector<Environment> environments = Environments(3);
  for (Environment& environment : environments) environment["RAILHEAD_TRANSPORT"] = "auto";
  environments[1]["RAILHEAD_REQUIRE_RDMA"] = "1";
  const std::vector<std::string> outputs = RunForks(environments, [](int) {
    rhComm_t comm = nullptr;
    return Join(&comm);
  });
  for (const std::string& output : outputs) {
    EXPECT_EQ(output, outputs[0]);
    EXPECT_THAT(output, AllOf(HasSubstr("RAILHEAD_REQUIRE_RDMA=1 on rank 1 (pod p1)"),
                              HasSubstr("rank 0 (pod p0): it was given no RDMA device")));
  }
}

TEST(ProcessesTest, AWrongVariableOnOneRankIsToldToAll) {
  std::vector<Environment> environments = Environments(3);
  environments[2]["RAILHEAD_TRANSPORT"] = "carrier-pigeon";
  const std::vector<std::string> outputs = RunForks(environments, [](int) {
    rhComm_t comm = nullptr;
    return Join(&comm);
  });
  for (const std::string& output : outputs) {
    EXPECT_THAT(output, AllOf(HasSubstr("invalid argument"), HasSubstr("rank 2 (pod p2)"),
                              HasSubstr("RAILHEAD_TRANSPORT='carrier-pigeon'"),
                              HasSubstr("auto, verbs, tcp or shm")));
  }
}

TEST(ProcessesTest, ASecretFileIsUsedAndItsAbsenceNamed) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/secret-", ::getpid());
  std::ofstream(path) << "0123456789abcdef\n";
  const auto join = [](int) {
    rhComm_t comm = nullptr;
    std::string error = Join(&comm);
    if (error.empty()) rhCommDestroy(comm);
    return error;
  };
  EXPECT_EQ(RunForks(Environments(2, {{"RAILHEAD_SECRET_FILE", path}}), join),
            (std::vector<std::string>{"", ""}));
  EXPECT_THAT(RunForks(Environments(1, {{"RAILHEAD_SECRET_FILE", path + "-none"}}), join)[0],
              AllOf(HasSubstr("rank 0 (pod p0): RAILHEAD_SECRET_FILE="), HasSubstr("-none")));
  ::unlink(path.c_str());
}

TEST(ProcessesTest, WantedRdmaThatIsNotThereIsDegradedNotFatal) {
  const std::vector<std::string> outputs =
      RunForks(Environments(2, {{"RAILHEAD_TRANSPORT", "verbs"}}), [](int) {
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        if (!error.empty()) return error;
        rhCommInfo_t info;
        info.struct_size = sizeof info;
        rhCommGetInfo(comm, &info);
        std::string text =
            absl::StrCat(info.transport, " ", info.degraded, " ", info.degraded_reason);
        rhCommDestroy(comm);
        return text;
      });
  for (const std::string& output : outputs) {
    EXPECT_THAT(output, AllOf(HasSubstr("tcp 1 TCP instead of RDMA"), HasSubstr("rank 0 (pod p0)"),
                              HasSubstr("rank 1 (pod p1)")));
  }
}

TEST(ProcessesTest, MetricsAreServedAndATakenPortDoesNotStopTheJob) {
  std::vector<Environment> environments = Environments(2, {{"RAILHEAD_JOB", "scraped"}});
  const std::string port = absl::StrCat(FreePort());
  for (Environment& environment : environments) {
    environment["RAILHEAD_METRICS_PORT"] = port;
    environment["RAILHEAD_ALGO"] = "all_reduce=ring,broadcast=binomial";
  }
  const std::vector<std::string> outputs = RunForks(environments, [&port](int rank) -> std::string {
    rhComm_t comm = nullptr;
    std::string error = Join(&comm);
    if (!error.empty()) return error;
    std::vector<float> values(1000);
    for (int i = 0; i < 7; ++i) absl::StrAppend(&error, Reduce(comm, values));
    if (!error.empty()) return error;
    // A communicator of this one is counted with it, under the same rank, also when it is gone.
    rhComm_t reversed = nullptr;
    if (rhCommSplit(comm, 0, -rank, &reversed, nullptr) != rhSuccess) return rhGetLastError(comm);
    for (int i = 0; i < 5; ++i) {
      if (rhBroadcast(values.data(), values.data(), 1, rhFloat32, 0, reversed, nullptr) !=
          rhSuccess) {
        return rhGetLastError(reversed);
      }
    }
    rhCommDestroy(reversed);
    // Whichever rank got the port serves it; rank 0 looks while the other waits for it.
    const std::string page =
        rank == 0 ? testing::HttpGet(std::stoi(port), "/metrics") : std::string("fine");
    absl::StrAppend(&error, Reduce(comm, values));
    rhCommDestroy(comm);
    return error.empty() ? page : error;
  });
  EXPECT_EQ(outputs[1], "fine");
  EXPECT_THAT(outputs[0],
              AllOf(HasSubstr("railhead_rail_transmit_bytes_total{job=\"scraped\",rank="),
                    // The other rank may still be finishing its seventh.
                    ::testing::ContainsRegex("algorithm=\"ring\",size_class=\"<=4KiB\"} [67]"),
                    HasSubstr("railhead_degraded{job=\"scraped\""),
                    HasSubstr("world_size=\"2\",transport=\"tcp\",requested=\"tcp\",fallback="),
                    ::testing::ContainsRegex(
                        "railhead_collective_operations_total.*collective=\"broadcast\",.*} 5"),
                    // One rank alone.
                    ::testing::Not(AllOf(HasSubstr("rank=\"0\""), HasSubstr("rank=\"1\""))),
                    HasSubstr("rail=\"0\",device=\"lo\",port=\"0\",transport=\"tcp\"} 1")));
}

TEST(ProcessesTest, AUniqueIdWorksAcrossForks) {
  ::setenv("RAILHEAD_SOCKET_IFNAME", "lo", 1);
  rhUniqueId id;
  ASSERT_EQ(rhGetUniqueId(&id), rhSuccess);
  const std::vector<std::string> outputs = RunForks(Environments(3), [&id](int rank) {
    rhComm_t comm = nullptr;
    if (rhCommInitRank(&comm, 3, id, rank) != rhSuccess)
      return std::string(rhGetLastError(nullptr));
    std::vector<float> values(1000, 1.0F);
    const std::string error = Reduce(comm, values);
    rhCommDestroy(comm);
    return error.empty() ? absl::StrCat(values[999]) : error;
  });
  EXPECT_EQ(outputs, std::vector<std::string>(3, "3"));
}

}  // namespace
}  // namespace railhead

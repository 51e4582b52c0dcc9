// SPDX-License-Identifier: Apache-2.0
//
// rhIsend and rhIrecv over every network: concurrently with each other and with collectives, and
// after errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/comm/api/fake_rails_for_test.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/comm/hierarchy/places_for_test.h"
#include "runtime/testing/forked_ranks.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead::comm {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::Process;
using testing::RunForks;

using Body = std::function<std::string(rhComm_t& comm, int rank)>;

// One of the networks that a test is run over.
class Network {
 public:
  Network(std::string name, int ranks) : name_(std::move(name)), ranks_(ranks) {
    if (name_ == "verbs") rails_ = std::make_unique<FakeRails>(ranks);
  }

  FakeRails& rails() const { return *rails_; }
  absl::Duration timeout = absl::Seconds(60);

  // Returns the results of `body` on all ranks, which run as threads. The body may destroy the
  // communicator and set it to null.
  std::vector<std::string> Run(const Body& body) {
    Meeting meeting;
    const int port = testing::FreePort();
    return testing::RunRanks(ranks_, [&](int rank) -> std::string {
      auto made = Join(rank, meeting, port);
      if (!made.ok()) return std::string(made.status().message());
      auto comm = std::make_unique<rhComm>();
      comm->communicator = *std::move(made);
      rhComm_t handle = comm.release();
      std::string text = body(handle, rank);
      if (handle != nullptr && rhCommDestroy(handle) != rhSuccess) {
        text = absl::StrCat(text, "; ", rhGetLastError(handle));
        rhCommAbort(handle);
      }
      return text;
    });
  }

 private:
  absl::StatusOr<std::unique_ptr<Communicator>> Join(int rank, Meeting& meeting, int port) const {
    if (rails_ == nullptr) {
      World world;
      for (int i = 0; i < ranks_; ++i) world.place_of.push_back(name_ == "places" ? i / 2 : 0);
      world.algorithms = "";
      world.timeout = timeout;
      if (name_ == "tcp") world.transport = config::TransportChoice::kTcp;
      return world.Join(rank, meeting);
    }
    CommunicatorOptions options;
    options.rendezvous = {rank, ranks_, "127.0.0.1", port};
    config::Settings& settings = options.setup.settings;
    settings.transport = config::TransportChoice::kVerbs;
    settings.rails_file = rails_->File(rank);
    settings.metrics_port = 0;
    settings.timeout = timeout;
    settings.start_timeout = absl::Seconds(60);
    settings.log_level = LogLevel::kError;
    options.setup.place = absl::StrCat("place ", rank);
    options.setup.open_rdma_rail = [this](const fabric::PodRail& rail) {
      return rails_->Open(rail);
    };
    return Communicator::Create(std::move(options));
  }

  const std::string name_;
  const int ranks_;
  std::unique_ptr<FakeRails> rails_;
};

std::vector<std::string> All(int ranks, const std::string& text) {
  return std::vector<std::string>(static_cast<size_t>(ranks), text);
}

std::vector<int> Numbers(size_t count, int first) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

rhRequest_t Isend(const std::vector<int>& data, int peer, int tag, rhComm_t comm) {
  rhRequest_t request = nullptr;
  EXPECT_EQ(rhIsend(data.data(), data.size(), rhInt32, peer, tag, comm, &request), rhSuccess)
      << rhGetLastError(comm);
  return request;
}
rhRequest_t Irecv(std::vector<int>& data, int peer, int tag, rhComm_t comm) {
  rhRequest_t request = nullptr;
  EXPECT_EQ(rhIrecv(data.data(), data.size(), rhInt32, peer, tag, comm, &request), rhSuccess)
      << rhGetLastError(comm);
  return request;
}
// Waits for the request and frees it. Returns "" on success.
std::string Finish(rhRequest_t request) {
  if (request == nullptr) return "not begun";
  const rhResult_t result = rhRequestWait(request);
  const std::string text = result == rhSuccess ? "" : rhGetLastError(nullptr);
  EXPECT_EQ(rhRequestFree(request), rhSuccess);
  return text;
}

class TransfersTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TransfersTest, LargeOnesBothWaysMayBeWaitedForLater) {
  constexpr size_t kCount = size_t{8} << 20U;  // 32 MiB
  Network network(GetParam(), 2);
  EXPECT_EQ(network.Run([](rhComm_t& comm, int rank) -> std::string {
    const std::vector<int> out = Numbers(kCount, rank);
    std::vector<int> in(kCount);
    rhRequest_t send = Isend(out, 1 - rank, 3, comm);
    rhRequest_t receive = Irecv(in, 1 - rank, 3, comm);
    std::string text = rank == 0 ? Finish(send) : Finish(receive);
    text += rank == 0 ? Finish(receive) : Finish(send);
    return in == Numbers(kCount, 1 - rank) ? text : "wrong data";
  }),
            All(2, ""));
}

TEST_P(TransfersTest, AnEarlyReceiveDoesNotHoldUpCollectives) {
  Network network(GetParam(), 3);
  EXPECT_EQ(network.Run([](rhComm_t& comm, int rank) -> std::string {
    std::vector<int> in(100000);
    const int from = (rank + 2) % 3;
    rhRequest_t receive = Irecv(in, from, 0, comm);
    std::vector<int> sums(50000, rank);
    for (int i = 0; i < 3; ++i) {
      if (rhAllReduce(sums.data(), sums.data(), sums.size(), rhInt32, rhSum, comm, nullptr) !=
          rhSuccess) {
        return rhGetLastError(comm);
      }
    }
    int done = 1;
    EXPECT_EQ(rhRequestTest(receive, &done), rhSuccess);
    EXPECT_EQ(done, 0);
    if (rhBarrier(comm, nullptr) != rhSuccess) return rhGetLastError(comm);
    std::vector<int> nothing;
    rhRequest_t send = Isend(nothing, from, 1, comm);
    rhRequest_t empty = Irecv(nothing, (rank + 1) % 3, 1, comm);
    const std::vector<int> out = Numbers(100000, rank);
    rhRequest_t last = Isend(out, (rank + 1) % 3, 0, comm);
    std::string text = Finish(last) + Finish(receive) + Finish(empty) + Finish(send);
    if (sums != std::vector<int>(sums.size(), 27)) return "wrong sums";
    return in == Numbers(100000, from) ? text : "wrong data";
  }),
            All(3, ""));
}

TEST_P(TransfersTest, AnySourceAndTagAreToldAndShorterOnesFit) {
  Network network(GetParam(), 4);
  EXPECT_EQ(network.Run([](rhComm_t& comm, int rank) -> std::string {
    if (rank != 0) {
      const std::vector<int> out = Numbers(static_cast<size_t>(rank) * 10000, rank);
      return Finish(Isend(out, 0, 10 + rank, comm));
    }
    std::map<int, size_t> seen;
    for (int i = 0; i < 3; ++i) {
      std::vector<int> in(40000);
      rhRequest_t request = Irecv(in, RH_ANY_SOURCE, RH_ANY_TAG, comm);
      if (rhRequestWait(request) != rhSuccess) return rhGetLastError(nullptr);
      rhRequestInfo_t info{};
      info.struct_size = sizeof info;
      EXPECT_EQ(rhRequestGetInfo(request, &info), rhSuccess);
      EXPECT_EQ(info.tag, 10 + info.peer);
      seen[info.peer] = info.bytes;
      in.resize(info.bytes / sizeof(int));
      if (in != Numbers(in.size(), info.peer)) return "wrong data";
      EXPECT_EQ(rhRequestFree(request), rhSuccess);
    }
    const std::map<int, size_t> expected = {{1, 40000}, {2, 80000}, {3, 120000}};
    return seen == expected ? "" : "not one from each";
  }),
            All(4, ""));
}

// ---- Random programs ----

struct Message {
  int from = 0;
  int to = 0;
  int tag = 0;
  size_t count = 0;
};

// Random program in rounds, each of which ends with a collective of all ranks. Transfers of a round
// are waited for in any order in a later round.
struct Program {
  std::vector<std::vector<Message>> rounds;
  std::vector<bool> any_source;  // by rank, of its receives
};

Program RandomProgram(std::mt19937& random, int ranks) {
  Program program;
  for (int rank = 0; rank < ranks; ++rank) program.any_source.push_back(random() % 3 == 0);
  program.rounds.resize(1 + random() % 4);
  for (auto& round : program.rounds) {
    round.resize(random() % 16);
    for (Message& message : round) {
      message.from = static_cast<int>(random() % static_cast<unsigned>(ranks));
      message.to = static_cast<int>(random() % static_cast<unsigned>(ranks));
      message.tag = static_cast<int>(random() % 3);
      constexpr std::array<size_t, 6> kSizes = {1, 100, 4097, 5000, 70000, 1200000};
      message.count = random() % kSizes[random() % kSizes.size()];
    }
  }
  return program;
}

int FirstOf(size_t round, size_t message) {
  return static_cast<int>(round * 1000000 + message * 1000);
}

// Runs a rank's part. Messages with the same source and tag are received in order.
std::string Play(const Program& program, rhComm_t comm, int rank, unsigned seed) {
  std::mt19937 random(seed * 16 + static_cast<unsigned>(rank));
  struct Open {
    rhRequest_t request;
    std::vector<int> data;
    bool sends;
  };
  std::vector<std::unique_ptr<Open>> open;
  // By source and tag: what is to come, with its number of values.
  std::map<std::pair<int, int>, std::vector<std::pair<int, size_t>>> expected;
  for (size_t r = 0; r < program.rounds.size(); ++r) {
    std::vector<std::pair<size_t, bool>> mine;
    for (size_t m = 0; m < program.rounds[r].size(); ++m) {
      const Message& message = program.rounds[r][m];
      if (message.from == rank) mine.emplace_back(m, true);
      if (message.to == rank) mine.emplace_back(m, false);
    }
    // Sends and receives change places; those of a kind stay in their order.
    for (size_t i = 0; i + 1 < mine.size(); ++i) {
      if (mine[i].second != mine[i + 1].second && random() % 2 == 0) {
        std::swap(mine[i], mine[i + 1]);
      }
    }
    for (const auto& [m, sends] : mine) {
      const Message& message = program.rounds[r][m];
      auto one = std::make_unique<Open>();
      one->sends = sends;
      if (sends) {
        one->data = Numbers(message.count, FirstOf(r, m));
        one->request = Isend(one->data, message.to, message.tag, comm);
      } else {
        const bool any = program.any_source[static_cast<size_t>(rank)];
        one->data.assign(1200000, -1);
        one->request = Irecv(one->data, any ? RH_ANY_SOURCE : message.from, message.tag, comm);
        expected[{message.from, message.tag}].emplace_back(FirstOf(r, m), message.count);
      }
      if (one->request == nullptr) return "not begun";
      open.push_back(std::move(one));
      if (random() % 4 == 0) absl::SleepFor(absl::Microseconds(random() % 2000));
    }
    std::vector<int> ranks(1000 * r, rank);
    if (rhAllReduce(ranks.data(), ranks.data(), ranks.size(), rhInt32, rhMax, comm, nullptr) !=
        rhSuccess) {
      return rhGetLastError(comm);
    }
    int all = 0;
    rhCommCount(comm, &all);
    if (ranks != std::vector<int>(ranks.size(), all - 1)) return "a wrong all-reduce";
    for (const auto& one : open) {
      int done = 0;
      if (rhRequestTest(one->request, &done) != rhSuccess) return rhGetLastError(nullptr);
    }
  }
  // All in any order; what came is compared afterwards, in the order of posting.
  std::vector<Open*> receives;
  for (const auto& one : open) {
    if (!one->sends) receives.push_back(one.get());
  }
  std::vector<size_t> order(open.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::map<Open*, rhRequestInfo_t> infos;
  for (const size_t i : order) {
    Open& one = *open[i];
    if (rhRequestWait(one.request) != rhSuccess) return rhGetLastError(nullptr);
    rhRequestInfo_t& info = infos[&one];
    info.struct_size = sizeof info;
    if (rhRequestGetInfo(one.request, &info) != rhSuccess) return rhGetLastError(nullptr);
    rhRequestFree(one.request);
  }
  std::map<std::pair<int, int>, size_t> next;
  for (Open* one : receives) {
    const rhRequestInfo_t& info = infos[one];
    const std::pair<int, int> from = {info.peer, info.tag};
    const size_t number = next[from]++;
    if (number >= expected[from].size()) return "one too many";
    const auto [first, count] = expected[from][number];
    if (info.bytes != count * sizeof(int)) return "another size";
    one->data.resize(count + 1);
    if (one->data.back() != -1) return "written behind the end";
    one->data.pop_back();
    if (one->data != Numbers(count, first)) return "wrong data";
  }
  return "";
}

unsigned Seeds(unsigned usual) {
  const char* const wanted = std::getenv("RAILHEAD_SEEDS");
  return wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : usual;
}

TEST_P(TransfersTest, RandomProgramsBesideCollectives) {
  for (unsigned seed = 0; seed < Seeds(12); ++seed) {
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 4);
    std::vector<Program> programs;
    for (int i = 0; i < 4; ++i) programs.push_back(RandomProgram(random, ranks));
    Network network(GetParam(), ranks);
    ASSERT_EQ(network.Run([&](rhComm_t& comm, int rank) -> std::string {
      for (size_t i = 0; i < programs.size(); ++i) {
        const std::string text = Play(programs[i], comm, rank, seed);
        if (!text.empty()) return absl::StrCat("program ", i, ": ", text);
        // A program's receives of any source must not get the next one's messages.
        if (rhBarrier(comm, nullptr) != rhSuccess) return rhGetLastError(comm);
      }
      return "";
    }),
              All(ranks, ""))
        << "seed " << seed << ", " << ranks << " ranks";
  }
}

// ---- Errors ----

TEST_P(TransfersTest, AMessageThatIsTooLongEndsTheJobAndNamesBothSides) {
  for (const size_t count : {size_t{9}, size_t{100000}}) {
    Network network(GetParam(), 3);
    const auto texts = network.Run([&](rhComm_t& comm, int rank) -> std::string {
      std::vector<int> data(count, rank);
      if (rank == 0) data.resize(8);
      std::string text;
      if (rank == 0) text = Finish(Irecv(data, 1, 5, comm));
      if (rank == 1) text = Finish(Isend(data, 0, 5, comm));
      if (rank == 0 && data != std::vector<int>(8, 0)) return "written to";
      // Ranks that could have sent it earlier, and ranks without part in it, get the error in a
      // later call.
      if (text.empty()) {
        EXPECT_EQ(rhBarrier(comm, nullptr), rhInternalError);
        text = rhGetLastError(comm);
      }
      rhRequest_t request = nullptr;
      EXPECT_EQ(rhIsend(data.data(), 1, rhInt32, 0, 0, comm, &request), rhInternalError);
      EXPECT_EQ(request, nullptr);
      return text;
    });
    EXPECT_THAT(texts, Each(AllOf(HasSubstr(absl::StrCat("rank 1 sends ", 4 * count,
                                                         " bytes with tag 5 to rank 0")),
                                  HasSubstr("room for only 32"))));
  }
}

TEST_P(TransfersTest, APeerThatComesLateIsWaitedFor) {
  Network network(GetParam(), 2);
  network.timeout = absl::Seconds(4);
  EXPECT_EQ(network.Run([](rhComm_t& comm, int rank) -> std::string {
    std::vector<int> in(100000);
    const std::vector<int> out = Numbers(100000, rank);
    if (rank == 1) absl::SleepFor(absl::Seconds(9));
    rhRequest_t send = Isend(out, 1 - rank, 0, comm);
    rhRequest_t receive = Irecv(in, 1 - rank, 0, comm);
    return Finish(send) + Finish(receive);
  }),
            All(2, ""));
}

TEST_P(TransfersTest, WhatIsNotDoneKeepsTheCommunicatorUntilItIsAborted) {
  Network network(GetParam(), 2);
  EXPECT_EQ(network.Run([](rhComm_t& comm, int rank) -> std::string {
    std::vector<int> in(10);
    rhRequest_t request = Irecv(in, 1 - rank, 0, comm);
    for (const auto call : {rhCommDestroy, rhCommFinalize}) {
      if (call(comm) != rhInvalidUsage) return "not refused";
      EXPECT_THAT(rhGetLastError(comm),
                  HasSubstr("1 transfers of rhIsend and rhIrecv are not done"));
    }
    EXPECT_EQ(rhRequestFree(request), rhInvalidUsage);
    rhRequestInfo_t info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(rhRequestGetInfo(request, &info), rhInvalidUsage);
    rhBarrier(comm, nullptr);
    EXPECT_EQ(rhCommAbort(comm), rhSuccess);
    comm = nullptr;
    // It outlives the communicator.
    int done = 0;
    EXPECT_EQ(rhRequestTest(request, &done), rhRemoteError);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(rhRequestWait(request), rhRemoteError);
    EXPECT_EQ(rhRequestWait(request), rhRemoteError);
    EXPECT_THAT(rhGetLastError(nullptr), HasSubstr("rhCommAbort was called"));
    EXPECT_EQ(rhRequestGetInfo(request, &info), rhInvalidUsage);
    EXPECT_EQ(rhRequestFree(request), rhSuccess);
    return "";
  }),
            All(2, ""));
}

TEST_P(TransfersTest, WrongArgumentsChangeNothing) {
  Network network(GetParam(), 2);
  EXPECT_EQ(network.Run([](rhComm_t& comm, int rank) -> std::string {
    std::vector<int> data(10);
    rhRequest_t request = nullptr;
    const auto send = [&](const void* buffer, size_t count, int type, int peer, int tag) {
      return rhIsend(buffer, count, static_cast<rhDataType_t>(type), peer, tag, comm, &request);
    };
    EXPECT_EQ(send(data.data(), 1, rhInt32, 2, 0), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm), "rhIsend: peer 2 does not exist; ranks go from 0 to 1");
    EXPECT_EQ(send(data.data(), 1, rhInt32, RH_ANY_SOURCE, 0), rhInvalidArgument);
    EXPECT_EQ(send(data.data(), 1, rhInt32, 0, -1), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm), "rhIsend: tag -1 is negative; tags go from 0 to INT_MAX");
    EXPECT_EQ(send(data.data(), 1, 99, 0, 0), rhInvalidArgument);
    EXPECT_EQ(send(nullptr, 1, rhInt32, 0, 0), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm), "rhIsend: sendbuf is NULL");
    EXPECT_EQ(rhIrecv(nullptr, 1, rhInt32, 0, 0, comm, &request), rhInvalidArgument);
    EXPECT_STREQ(rhGetLastError(comm), "rhIrecv: recvbuf is NULL");
    EXPECT_EQ(rhIrecv(data.data(), 1, rhInt32, 0, -2, comm, &request), rhInvalidArgument);
    EXPECT_EQ(rhIrecv(data.data(), 1, rhInt32, -2, 0, comm, &request), rhInvalidArgument);
    EXPECT_EQ(rhIrecv(data.data(), 1, rhInt32, 0, 0, comm, nullptr), rhInvalidArgument);
    EXPECT_EQ(rhIrecv(data.data(), 1, rhInt32, 0, 0, nullptr, &request), rhInvalidArgument);
    rhGroupStart();
    EXPECT_EQ(rhIrecv(data.data(), 1, rhInt32, 0, 0, comm, &request), rhInvalidUsage);
    EXPECT_THAT(rhGetLastError(comm), HasSubstr("not allowed between rhGroupStart and rhGroupEnd"));
    rhGroupEnd();
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(rhRequestFree(nullptr), rhSuccess);
    // Two at a time wait for one that is done later.
    std::vector<int> in(10);
    request = Irecv(in, 1 - rank, 7, comm);
    std::thread other([&] { EXPECT_EQ(rhRequestWait(request), rhSuccess); });
    const std::vector<int> out = Numbers(10, 3);
    const std::string text = Finish(Isend(out, 1 - rank, 7, comm));
    EXPECT_EQ(rhRequestWait(request), rhSuccess);
    other.join();
    EXPECT_EQ(rhRequestFree(request), rhSuccess);
    return in == Numbers(10, 3) ? text : "wrong data";
  }),
            All(2, ""));
}

INSTANTIATE_TEST_SUITE_P(Networks, TransfersTest,
                         ::testing::Values("tcp", "shm", "verbs", "places"),
                         [](const auto& network) { return network.param; });

TEST(TransfersOverRailsTest, ARailThatIsLostChangesNothing) {
  constexpr size_t kCount = size_t{2} << 20U;
  for (unsigned seed = 0; seed < Seeds(3); ++seed) {
    Network network("verbs", 2);
    EXPECT_EQ(network.Run([&](rhComm_t& comm, int rank) -> std::string {
      std::vector<std::vector<int>> out;
      std::vector<std::vector<int>> in;
      std::vector<rhRequest_t> requests;
      for (int i = 0; i < 6; ++i) {
        const size_t count = i % 2 == 0 ? kCount : 100;
        out.push_back(Numbers(count, 10 * rank + i));
        in.emplace_back(count);
      }
      for (int i = 0; i < 6; ++i) {
        const auto at = static_cast<size_t>(i);
        requests.push_back(Isend(out[at], 1 - rank, i, comm));
        requests.push_back(Irecv(in[5 - at], 1 - rank, 5 - i, comm));
      }
      if (rank == 0) {
        absl::SleepFor(absl::Milliseconds(3 + 7 * seed));
        network.rails().verbs().SetPortState(absl::StrCat("fake", seed % 2, "_1"), IBV_PORT_DOWN);
      }
      std::string text;
      for (rhRequest_t request : requests) text += Finish(request);
      for (int i = 0; i < 6; ++i) {
        const auto at = static_cast<size_t>(i);
        if (in[at] != Numbers(in[at].size(), 10 * (1 - rank) + i)) return "wrong data";
      }
      return text;
    }),
              All(2, ""))
        << "seed " << seed;
  }
}

// A send is over when it is copied. A rank that then computes still repeats what a rail that has
// died unnoticed had taken.
TEST(TransfersOverRailsTest, ASendIsRepeatedWhileItsRankComputes) {
  constexpr int kMessages = 20;
  Network network("verbs", 2);
  std::promise<void> sent;
  std::promise<void> received;
  EXPECT_EQ(network.Run([&](rhComm_t& comm, int rank) -> std::string {
    const std::vector<int> out = Numbers(250, 7);
    std::vector<int> in(out.size());
    if (rhBarrier(comm, nullptr) != rhSuccess) return "no barrier";
    if (rank == 1) {
      sent.get_future().wait();
      for (int i = 0; i < kMessages; ++i) {
        if (rhRecv(in.data(), in.size(), rhInt32, 0, comm, nullptr) != rhSuccess) return "failed";
        if (in != out) return "wrong data";
      }
      received.set_value();
      return "";
    }
    const auto carried = [comm] {
      rhRailInfo_t rail{};
      rail.struct_size = sizeof rail;
      EXPECT_EQ(rhCommRailInfo(comm, 0, &rail), rhSuccess);
      return rail.tx_bytes;
    };
    const uint64_t before = carried();
    network.rails().verbs().LosePath("fake0_0", 0, true);
    for (int i = 0; i < kMessages; ++i) {
      if (rhSend(out.data(), out.size(), rhInt32, 1, comm, nullptr) != rhSuccess) return "failed";
    }
    if (carried() == before) return "nothing was lost";
    sent.set_value();
    const bool all =
        received.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    return all ? "" : "not all of it came";
  }),
            All(2, ""));
}

// Transfers have connections of their own, so a rail may be lost to them alone.
TEST(TransfersOverRailsTest, ARailThatOnlyTransfersHaveLostIsLost) {
  for (const int lost : {0, 1}) {
    Network network("verbs", 2);
    EXPECT_EQ(network.Run([&](rhComm_t& comm, int rank) -> std::string {
      const auto read = [comm, lost] {
        return comm->communicator->Rails()[static_cast<size_t>(lost)];
      };
      // Exchanges messages until both ranks see the rail as `up`.
      const std::vector<int> out = Numbers(size_t{1} << 18U, 10);
      const auto exchange_until = [&](bool up) -> std::string {
        const absl::Time deadline = MonotonicNow() + absl::Seconds(60);
        for (int tag = 0; MonotonicNow() < deadline; ++tag) {
          // Breaks each new connection, too. The NIC's second one is that of transfers.
          if (!up && rank == 0) {
            network.rails().verbs().LosePath(absl::StrCat("fake0_", lost), 1, true);
          }
          std::vector<int> in(out.size());
          rhRequest_t send = Isend(out, 1 - rank, tag, comm);
          rhRequest_t receive = Irecv(in, 1 - rank, tag, comm);
          if (std::string text = Finish(send) + Finish(receive); !text.empty()) return text;
          if (in != out) return "wrong data; ";
          int seen = read().up == up ? 1 : 0;
          if (rhAllReduce(&seen, &seen, 1, rhInt32, rhMin, comm, nullptr) != rhSuccess) {
            return rhGetLastError(comm);
          }
          if (seen == 1) return "";
        }
        return absl::StrCat("the rail is never ", up ? "up; " : "lost; ");
      };
      std::string text = exchange_until(true);
      if (read().peers != 2) absl::StrAppend(&text, read().peers, " links; ");
      text += exchange_until(false);
      if (read().failovers == 0) text += "no failover is counted; ";
      text += exchange_until(true);
      if (read().returns == 0) text += "no return is counted; ";
      return text;
    }),
              All(2, ""))
        << "rail " << lost;
  }
}

TEST(TransfersOverRailsTest, WhoWaitsForOneThatHasLeftIsTold) {
  Network network("tcp", 2);
  const auto texts = network.Run([](rhComm_t& comm, int rank) -> std::string {
    if (rank == 1) return "left";
    std::vector<int> in(10);
    return Finish(Irecv(in, 1, 0, comm));
  });
  EXPECT_THAT(texts[0], HasSubstr("has left the communicator, and this rank waits for it (1 "
                                  "transfers are unfinished, the oldest a receive of at most 40 "
                                  "bytes from rank 1 with tag 0)"));
}

TEST(TransfersOverRailsTest, OtherTransfersDoNotHideThatAPeerHasLeft) {
  Network network("tcp", 2);
  const auto texts = network.Run([](rhComm_t& comm, int rank) -> std::string {
    if (rank == 1) return "left";
    std::vector<int> in(10);
    std::vector<int> own(1);
    rhRequest_t waits = Irecv(in, 1, 0, comm);
    const absl::Time end = absl::Now() + absl::Seconds(60);
    int done = 0;
    while (done == 0 && rhRequestTest(waits, &done) == rhSuccess && absl::Now() < end) {
      rhRequest_t send = nullptr;
      rhRequest_t receive = nullptr;
      // They fail from when that one does.
      if (rhIrecv(own.data(), 1, rhInt32, 0, 0, comm, &receive) == rhSuccess) {
        rhIsend(own.data(), 1, rhInt32, 0, 0, comm, &send);
        rhRequestWait(receive);
        if (send != nullptr) rhRequestWait(send);
      }
      rhRequestFree(receive);
      rhRequestFree(send);
      absl::SleepFor(absl::Milliseconds(5));
    }
    return absl::Now() < end ? Finish(waits) : "it is still waited for";
  });
  EXPECT_THAT(texts[0], HasSubstr("has left the communicator, and this rank waits for it"));
}

// Joins by environment, and returns "" or the error when all ranks have got through the start, so
// that one may stand still.
std::string Begin(rhComm_t* comm) {
  if (rhCommInitFromEnv(comm) != rhSuccess) return rhGetLastError(nullptr);
  // After the second one, each rank has received the last message of the first.
  for (int i = 0; i < 2; ++i) {
    if (rhBarrier(*comm, nullptr) != rhSuccess) return rhGetLastError(*comm);
  }
  return "";
}

class TransfersOfProcessesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TransfersOfProcessesTest, ADeathIsToldToWhoWaits) {
  const auto texts = RunForks(3, GetParam(), [](rhComm_t& comm, int rank) -> std::string {
    std::vector<int> in(10);
    rhRequest_t request = Irecv(in, 1, 0, comm);
    rhBarrier(comm, nullptr);
    if (rank == 1) ::raise(SIGKILL);
    std::string text = Finish(request);
    rhCommAbort(comm);
    comm = nullptr;
    return text;
  });
  for (const size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_THAT(texts[rank], HasSubstr("rank 1 (pod p1)"));
  }
}

// Rank 2 stops: in the middle of a message of rank 0, or before rank 0 waits for one. Messages
// between ranks 0 and 1 go on all the time, and do not hide that.
TEST_P(TransfersOfProcessesTest, OtherTransfersDoNotHideThatOneMakesNoProgress) {
  for (const bool in_the_middle : {true, false}) {
    const int port = testing::FreePort();
    std::vector<Process> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      testing::Environment environment = testing::RankEnvironment(rank, 3, port);
      environment["RAILHEAD_TRANSPORT"] = GetParam();
      environment["RAILHEAD_TIMEOUT_SECONDS"] = "4";
      ranks.push_back(Process::Fork(environment, [&]() -> std::string {
        rhComm_t comm = nullptr;
        if (std::string error = Begin(&comm); !error.empty()) return error;
        const absl::Time end = absl::Now() + absl::Seconds(40);
        // Returns why it failed.
        const auto repeat = [&](auto&& does) {
          std::string failure;
          while (failure.empty() && absl::Now() < end) failure = does();
          return failure.empty() ? "it did not fail" : failure;
        };
        const auto exchange = [&](int peer) {
          std::vector<int> in(10);
          const std::vector<int> out(10);
          rhRequest_t receive = nullptr;
          rhRequest_t send = nullptr;
          if (rhIrecv(in.data(), 10, rhInt32, peer, 1, comm, &receive) != rhSuccess ||
              rhIsend(out.data(), 10, rhInt32, peer, 1, comm, &send) != rhSuccess) {
            return std::string(rhGetLastError(comm));
          }
          absl::SleepFor(absl::Milliseconds(5));
          const std::string text = Finish(receive);
          return Finish(send) + text;
        };
        std::vector<int> large(size_t{4} << 20U);
        if (rank == 1) return repeat([&] { return exchange(0); });
        if (rank == 2) {
          std::thread stop([] {
            absl::SleepFor(absl::Seconds(1));
            ::raise(SIGSTOP);
          });
          if (in_the_middle) repeat([&] { return Finish(Irecv(large, 0, 0, comm)); });
          stop.join();
          return "";
        }
        std::thread other([&] { repeat([&] { return exchange(1); }); });
        std::string text = repeat([&] {
          return Finish(in_the_middle ? Isend(large, 2, 0, comm) : Irecv(large, 2, 0, comm));
        });
        other.join();
        return text;
      }));
    }
    const absl::Time deadline = MonotonicNow() + absl::Seconds(60);
    // In the middle of a message, rank 0 may say so before rank 2 has been silent for as long.
    const auto late =
        AnyOf(HasSubstr("no answer for 4s: rank 2 (pod p2) does not answer"),
              AllOf(HasSubstr("nothing has moved for 4s between this rank and rank 2"),
                    HasSubstr("the oldest a "), HasSubstr("rank 2 with tag 0")));
    EXPECT_THAT(ranks[0].Wait(deadline).output,
                AllOf(HasSubstr("rank 0 (pod p0): transfers (rhIsend, rhIrecv)"), late));
    EXPECT_THAT(ranks[1].Wait(deadline).output, late);
  }
}

// A server always has receives from any rank posted. While messages arrive, nobody asks whether
// rank 2, with which there is no transfer, is alive.
TEST_P(TransfersOfProcessesTest, ReceivesFromAnyRankThatAreMatchedOneAfterTheOtherDoNotTimeOut) {
  const int port = testing::FreePort();
  std::vector<Process> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    testing::Environment environment = testing::RankEnvironment(rank, 3, port);
    environment["RAILHEAD_TRANSPORT"] = GetParam();
    environment["RAILHEAD_TIMEOUT_SECONDS"] = "4";
    ranks.push_back(Process::Fork(environment, [rank]() -> std::string {
      rhComm_t comm = nullptr;
      if (std::string error = Begin(&comm); !error.empty()) return error;
      if (rank == 2) {
        ::raise(SIGSTOP);
        return "";
      }
      std::string text;
      const absl::Time end = absl::Now() + absl::Seconds(9);
      std::vector<int> data(10);
      if (rank == 1) {
        // Longer than the server listens, which then ends.
        while (text.empty() && absl::Now() < end + absl::Seconds(20)) {
          text = Finish(Isend(data, 0, 0, comm));
          absl::SleepFor(absl::Milliseconds(5));
        }
        return text;
      }
      std::vector<int> other(10);
      rhRequest_t first = Irecv(data, RH_ANY_SOURCE, RH_ANY_TAG, comm);
      rhRequest_t second = Irecv(other, RH_ANY_SOURCE, RH_ANY_TAG, comm);
      while (text.empty() && absl::Now() < end) {
        text = Finish(first);
        std::swap(first, second);
        std::swap(data, other);
        if (text.empty()) second = Irecv(other, RH_ANY_SOURCE, RH_ANY_TAG, comm);
      }
      return text.empty() ? "served" : text;
    }));
  }
  const absl::Time deadline = MonotonicNow() + absl::Seconds(60);
  EXPECT_EQ(ranks[0].Wait(deadline).output, "served");
}

TEST_P(TransfersOfProcessesTest, AChildHasNoPartInThem) {
  EXPECT_EQ(RunForks(2, GetParam(),
                     [](rhComm_t& comm, int rank) -> std::string {
                       std::vector<int> in(10);
                       rhRequest_t request = Irecv(in, 1 - rank, 0, comm);
                       const pid_t child = ::fork();
                       if (child == 0) {
                         int done = 0;
                         rhRequest_t other = nullptr;
                         const bool right =
                             rhRequestTest(request, &done) == rhInvalidUsage &&
                             rhRequestWait(request) == rhInvalidUsage &&
                             rhRequestFree(request) == rhSuccess &&
                             rhIsend(in.data(), 1, rhInt32, 0, 0, comm, &other) == rhInvalidUsage;
                         ::_exit(right ? 0 : 1);
                       }
                       int status = 1;
                       ::waitpid(child, &status, 0);
                       if (status != 0) return "the child was not refused";
                       const std::vector<int> out = Numbers(10, 1);
                       rhRequest_t send = Isend(out, 1 - rank, 0, comm);
                       return Finish(send) + Finish(request);
                     }),
            All(2, ""));
}

INSTANTIATE_TEST_SUITE_P(Networks, TransfersOfProcessesTest, ::testing::Values("tcp", "shm"),
                         [](const auto& network) { return network.param; });

// A stopped process is alive, and does not reply.
TEST(TransfersOfOneStoppedTest, APeerThatDoesNotAnswerEndsTheWait) {
  const int port = testing::FreePort();
  std::vector<Process> processes;
  for (int rank = 0; rank < 2; ++rank) {
    testing::Environment environment = testing::RankEnvironment(rank, 2, port);
    environment["RAILHEAD_TIMEOUT_SECONDS"] = "4";
    processes.push_back(Process::Fork(environment, [rank]() -> std::string {
      rhComm_t comm = nullptr;
      if (std::string error = Begin(&comm); !error.empty()) return error;
      if (rank == 1) {
        ::raise(SIGSTOP);
        return "";
      }
      std::vector<int> in(10);
      std::string text = Finish(Irecv(in, 1, 0, comm));
      rhCommAbort(comm);
      return text;
    }));
  }
  const std::string text = processes[0].Wait(MonotonicNow() + absl::Seconds(60)).output;
  EXPECT_THAT(text, HasSubstr("no answer for 4s: rank 1 (pod p1) does not answer"));
}

}  // namespace
}  // namespace railhead::comm

// SPDX-License-Identifier: Apache-2.0
//
// Calls with memory of fake GPUs; a CPU access to it crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/fake_rails_for_test.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/device/fake_cuda.h"
#include "runtime/rails/peer.h"
#include "runtime/testing/call.h"
#include "runtime/testing/ranks.h"

namespace railhead::comm {
namespace {

using config::TransportChoice;
using ::testing::AllOf;
using testing::Collective;
using testing::CollectiveCase;
using ::testing::HasSubstr;
using testing::RunRanks;
using testing::Trial;

// Ranks of this process, each with a GPU, that share memory or are connected over rails.
class GpuWorld {
 public:
  // `pods`: among which ranks are, those of one sharing memory; 0: each has its own.
  GpuWorld(int ranks, TransportChoice transport, int pods = 0)
      : ranks_(ranks),
        places_(pods > 0                             ? pods
                : transport == TransportChoice::kShm ? 1
                                                     : ranks),
        transport_(transport) {
    if (transport != TransportChoice::kVerbs) return;
    rails_.emplace(ranks);
    rails_->verbs().SetGpus(cuda_);
  }

  int ranks() const { return ranks_; }
  device::FakeCuda& cuda() { return *cuda_; }
  FakeRails& rails() { return *rails_; }
  // Calls body(comm, rank) on every rank and returns what it returns, or why there is no
  // communicator.
  template <class Body>
  std::vector<std::string> Run(Body body) {
    return RunRanks(ranks_, [&](int rank) -> std::string {
      absl::StatusOr<std::unique_ptr<Communicator>> made = Communicator::Create(Options(rank));
      if (!made.ok()) return std::string(made.status().message());
      auto comm = std::make_unique<rhComm>();
      comm->communicator = *std::move(made);
      std::string text = body(comm.get(), rank);
      rhCommDestroy(comm.release());
      return text;
    });
  }

  // RAILHEAD_ALGO of all ranks.
  void set_algorithms(std::string algorithms) { algorithms_ = std::move(algorithms); }

 private:
  CommunicatorOptions Options(int rank) {
    CommunicatorOptions options;
    options.rendezvous = {rank, ranks_, "127.0.0.1", port_};
    config::Settings& settings = options.setup.settings;
    // A transport that is asked for leaves out memory inside pods.
    const bool hierarchical = places_ > 1 && places_ < ranks_;
    settings.transport = hierarchical ? TransportChoice::kAuto : transport_;
    settings.socket_ifname = "lo";
    settings.pod = absl::StrCat("p", rank);
    settings.rails_file = rails_.has_value() ? rails_->File(rank) : "/nonexistent/rails.json";
    settings.metrics_port = 0;
    settings.timeout = absl::Seconds(60);
    settings.log_level = LogLevel::kError;
    settings.algorithms = hierarchical ? "broadcast=hierarchical" : algorithms_;
    options.setup.place = absl::StrCat("place ", rank * places_ / ranks_);
    options.setup.open_rdma_rail = [this](const fabric::PodRail& rail) {
      return rails_->Open(rail);
    };
    options.setup.cuda = cuda_;
    return options;
  }

  const int ranks_;
  const int places_;
  const TransportChoice transport_;
  const int port_ = testing::FreePort();
  std::string algorithms_;
  std::shared_ptr<device::FakeCuda> cuda_ = std::make_shared<device::FakeCuda>();
  std::optional<FakeRails> rails_;
};

// Copy of a buffer in GPU memory.
class Twin {
 public:
  Twin(device::FakeCuda& cuda, absl::Span<std::byte> host, int gpu)
      : cuda_(cuda), host_(host), data_(cuda.Allocate(host.size(), gpu, gpu % 2 == 0)) {
    std::copy(host.begin(), host.end(), cuda_.Bytes(data_));
  }
  ~Twin() { cuda_.Free(data_); }
  Twin(const Twin&) = delete;
  Twin& operator=(const Twin&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return host_.size(); }
  void FetchBack() { std::copy_n(cuda_.Bytes(data_), host_.size(), host_.begin()); }

 private:
  device::FakeCuda& cuda_;
  absl::Span<std::byte> host_;
  std::byte* const data_;
};

enum class Where { kBoth, kSend, kReceive, kNone };

// Runs the trial with buffers on the GPU, registered first if `known`; returns the error.
std::string PlayOnGpu(rhComm_t comm, device::FakeCuda& cuda, Trial& trial, int gpu, Where where,
                      bool known) {
  std::optional<Twin> send;
  std::optional<Twin> receive;
  if (where == Where::kBoth || where == Where::kSend) send.emplace(cuda, trial.send_memory(), gpu);
  if (where == Where::kBoth || where == Where::kReceive) {
    receive.emplace(cuda, trial.receive_memory(), gpu);
  }
  std::vector<void*> handles;
  for (const std::optional<Twin>* const twin : {&send, &receive}) {
    if (!known || !twin->has_value() || (*twin)->size() == 0) continue;
    if (rhCommRegister(comm, (*twin)->data(), (*twin)->size(), &handles.emplace_back()) !=
        rhSuccess) {
      return rhGetLastError(comm);
    }
  }
  trial.PassInstead(send.has_value() ? send->data() : nullptr,
                    receive.has_value() ? receive->data() : nullptr);
  const CollectiveCase& c = trial.what();
  uint64_t factor = trial.factor();
  Twin scalar(cuda, {reinterpret_cast<std::byte*>(&factor), sizeof factor}, gpu);
  rhRedOp_t op = c.op;
  if (c.scaled &&
      rhRedOpCreatePreMulSum(&op, scalar.data(), c.type, rhScalarDevice, comm) != rhSuccess) {
    return rhGetLastError(comm);
  }
  if (testing::Call(comm, trial, op) != rhSuccess) {
    return absl::StrCat(ToString(c), ": ", rhGetLastError(comm));
  }
  if (c.scaled) rhRedOpDestroy(op, comm);
  for (void* const handle : handles) rhCommDeregister(comm, handle);
  if (send.has_value()) send->FetchBack();
  if (receive.has_value()) receive->FetchBack();
  return trial.Check();
}

std::vector<CollectiveCase> Cases(int ranks) {
  std::vector<CollectiveCase> cases;
  std::vector<Collective> all(testing::kCollectives.begin(), testing::kCollectives.end());
  all.push_back(Collective::kSendReceive);
  for (const Collective collective : all) {
    const bool uneven = collective == Collective::kAllGather ||
                        collective == Collective::kReduceScatter ||
                        collective == Collective::kAllToAll;
    for (const size_t count : {0, 1, 1000, 40001}) {
      const int root = static_cast<int>(count) % ranks;
      for (const bool in_place : {false, true}) {
        cases.push_back({collective, rhInt32, rhSum, count, root, in_place});
        if (testing::Reduces(collective)) {
          cases.push_back({collective, rhFloat32, rhSum, count, root, in_place, true});
        }
      }
      if (uneven) {
        cases.push_back({collective, rhInt16, rhMax, count, root, false, false, true});
        if (collective != Collective::kAllToAll) {
          cases.push_back({collective, rhInt16, rhMax, count, root, true, false, true});
        }
      }
    }
  }
  return cases;
}

using Cell = std::tuple<TransportChoice, int>;
class GpuCollectivesTest : public ::testing::TestWithParam<Cell> {};

INSTANTIATE_TEST_SUITE_P(Transports, GpuCollectivesTest,
                         ::testing::Combine(::testing::Values(TransportChoice::kVerbs,
                                                              TransportChoice::kShm,
                                                              TransportChoice::kTcp),
                                            ::testing::Values(2, 3, 4)),
                         [](const auto& cell) {
                           return absl::StrCat(config::TransportChoiceName(std::get<0>(cell.param)),
                                               "_", std::get<1>(cell.param));
                         });

TEST_P(GpuCollectivesTest, AreRightWhereverBuffersAre) {
  const int ranks = std::get<1>(GetParam());
  GpuWorld world(ranks, std::get<0>(GetParam()));
  const std::vector<CollectiveCase> cases = Cases(ranks);
  const std::vector<std::string> results = world.Run([&](rhComm_t comm, int rank) {
    // All on GPUs, then every rank somewhere else, and then in memory that is known.
    for (int pass = 0; pass < 3; ++pass) {
      for (size_t i = 0; i < cases.size(); ++i) {
        const Where where =
            pass > 0 ? static_cast<Where>((i + static_cast<size_t>(rank)) % 4) : Where::kBoth;
        Trial trial(cases[i], rank, ranks, i);
        std::string wrong = PlayOnGpu(comm, world.cuda(), trial, rank, where, pass == 2);
        if (!wrong.empty()) return absl::StrCat("case ", i, ", pass ", pass, ": ", wrong);
      }
    }
    return std::string("right");
  });
  EXPECT_EQ(results, std::vector<std::string>(static_cast<size_t>(ranks), "right"));
  EXPECT_EQ(world.cuda().pinned(), 0U);
  EXPECT_EQ(world.cuda().retained(), 0U);
}

// The last rank's parts are empty, at a displacement far outside of the buffers.
TEST_P(GpuCollectivesTest, AnEmptyPartMayBeginAnywhere) {
  const int ranks = std::get<1>(GetParam());
  const auto count = static_cast<size_t>(ranks);
  GpuWorld world(ranks, std::get<0>(GetParam()));
  std::vector<size_t> sizes(count, 1);
  sizes.back() = 0;
  std::vector<size_t> begins(count);
  std::iota(begins.begin(), begins.end(), 0);
  begins.back() = size_t{1} << 62U;
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    device::FakeCuda& cuda = world.cuda();
    std::byte* const from = cuda.Allocate(count);
    std::byte* const to = cuda.Allocate(count);
    const bool is_last = rank + 1 == ranks;
    // One byte for each other rank: 16 * sender + receiver.
    std::string error;
    for (size_t i = 0; i < count; ++i) cuda.Bytes(from)[i] = static_cast<std::byte>(16 * rank + i);
    const std::vector<size_t> mine = is_last ? std::vector<size_t>(count) : sizes;
    if (rhAlltoAllv(from, mine.data(), begins.data(), to, mine.data(), begins.data(), rhUint8, comm,
                    nullptr) != rhSuccess) {
      error = absl::StrCat("all-to-all: ", rhGetLastError(comm));
    }
    for (size_t i = 0; i + 1 < count && !is_last && error.empty(); ++i) {
      if (cuda.Bytes(to)[i] != static_cast<std::byte>(16 * i + static_cast<size_t>(rank))) {
        error = "wrong all-to-all";
      }
    }
    if (error.empty() &&
        rhAllGatherv(from, to, sizes.data(), begins.data(), rhUint8, comm, nullptr) != rhSuccess) {
      error = absl::StrCat("all-gather: ", rhGetLastError(comm));
    }
    for (size_t i = 0; i + 1 < count && error.empty(); ++i) {
      if (cuda.Bytes(to)[i] != static_cast<std::byte>(16 * i)) error = "wrong all-gather";
    }
    cuda.Free(from);
    cuda.Free(to);
    return error;
  });
  EXPECT_EQ(results, std::vector<std::string>(count));
}

// A rank's memory on a GPU with values of its own.
class Values {
 public:
  Values(device::FakeCuda& cuda, size_t bytes, int seed)
      : cuda_(cuda), bytes_(bytes), data_(cuda.Allocate(bytes)) {
    Fill(seed);
  }
  ~Values() {
    if (data_ != nullptr) cuda_.Free(data_);
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  std::byte* data() const { return data_; }
  void Fill(int seed) {
    const std::string text = Text(bytes_, seed);
    std::memcpy(cuda_.Bytes(data_), text.data(), text.size());
  }
  std::string Get() const { return {reinterpret_cast<const char*>(cuda_.Bytes(data_)), bytes_}; }
  void Free() { cuda_.Free(std::exchange(data_, nullptr)); }

  static std::string Text(size_t bytes, int seed) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) {
      text[i] = static_cast<char>(i * 31 + i / 251 + static_cast<size_t>(seed));
    }
    return text;
  }

 private:
  device::FakeCuda& cuda_;
  const size_t bytes_;
  std::byte* data_;
};

constexpr size_t kBytes = (size_t{1} << 20) + 100;

// Sends from rank 0 to memory of the CPU of rank 1, and returns what comes there, or an error.
std::string Carry(rhComm_t comm, int rank, const void* data) {
  std::string got(kBytes, '\0');
  const rhResult_t result = rank == 0 ? rhSend(data, kBytes, rhUint8, 1, comm, nullptr)
                                      : rhRecv(got.data(), kBytes, rhUint8, 0, comm, nullptr);
  if (result != rhSuccess) return rhGetLastError(comm);
  return rank == 0 ? "sent" : got;
}

// Available hardware, and the expected way.
struct Offering {
  const char* what;
  bool driver_exports = true;
  int export_result = device::kCudaSuccess;
  int nic_refuses = 0;
  bool peermem = true;
  int synchronize_result = device::kCudaSuccess;
  fabric::GpuDirectWay way = fabric::GpuDirectWay::kDmabuf;
  std::vector<std::string> trouble = {};  // what the reason says
};

TEST(GpuDirectTest, DmaBufComesFirstThenPeermemThenTheHost) {
  using enum fabric::GpuDirectWay;
  const std::vector<Offering> offerings = {
      {"both"},
      {.what = "no peermem", .peermem = false},
      {.what = "no export", .driver_exports = false, .way = kPeermem},
      {.what = "a failing export", .export_result = 1, .way = kPeermem},
      {.what = "an old NIC", .nic_refuses = EOPNOTSUPP, .way = kPeermem},
      {.what = "neither",
       .driver_exports = false,
       .peermem = false,
       .way = kNone,
       .trouble = {"rank 0", "rail 0, device fake0_0 port 1", "GPU 0", "exports no dma-buf",
                   "Bad address", "load nvidia-peermem"}},
      {.what = "neither on the NIC's side",
       .nic_refuses = EOPNOTSUPP,
       .peermem = false,
       .way = kNone,
       .trouble = {"register 1048676 bytes of a dma-buf: Operation not supported"}},
      {.what = "copies that do not wait",
       .synchronize_result = device::kCudaNotSupported,
       .way = kNone,
       .trouble = {"rank 0", "rail 0, device fake0_0 port 1", "CUDA error 801", "cudaMalloc"}},
  };
  for (const Offering& offering : offerings) {
    SCOPED_TRACE(offering.what);
    GpuWorld world(2, TransportChoice::kVerbs);
    world.cuda().SetDmaBuf(offering.driver_exports);
    world.cuda().FailExports(offering.export_result);
    world.cuda().SetPeermem(offering.peermem);
    world.cuda().FailSynchronizing(offering.synchronize_result);
    world.rails().verbs().RefuseDmaBufs(offering.nic_refuses);
    const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
      Values values(world.cuda(), kBytes, 1);
      void* handle = nullptr;
      EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
      const auto ways = comm->communicator->memory().known_gpus().Ways();
      EXPECT_EQ(ways.size(), 2U);
      for (const auto& rail : ways) EXPECT_EQ(rail.way, offering.way);
      rhCommInfo_t info{};
      info.struct_size = sizeof info;
      EXPECT_EQ(rhCommGetInfo(comm, &info), rhSuccess);
      EXPECT_EQ(info.degraded, offering.way == kNone ? 1 : 0) << info.degraded_reason;
      for (const std::string& text : offering.trouble) {
        if (rank == 0) {
          EXPECT_THAT(std::string(info.degraded_reason), HasSubstr(text));
        }
      }
      std::string got = Carry(comm, rank, values.data());
      EXPECT_EQ(rhCommDeregister(comm, handle), rhSuccess);
      return got;
    });
    EXPECT_EQ(results, (std::vector<std::string>{"sent", Values::Text(kBytes, 1)}));
    const uint64_t gathered = world.rails().verbs().gathered_sends();
    if (offering.way == kNone) {
      EXPECT_EQ(gathered, 0U);
      EXPECT_EQ(world.cuda().copies(), 1) << "to pinned memory";
    } else {
      EXPECT_GE(gathered, kBytes / 65536) << "read by NICs";
      EXPECT_LE(world.cuda().copies(), 1) << "but for the last bytes, which are too few";
    }
  }
}

class GpuBroadcastTest : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuBroadcastTest, IsReadFromWhereItLies) {
  GpuWorld world(3, TransportChoice::kVerbs);
  world.set_algorithms(absl::StrCat("broadcast=", GetParam()));
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    Values values(world.cuda(), kBytes, rank);
    Values result(world.cuda(), kBytes, 7);
    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
    // Ends that are short, into memory of a GPU, of the CPU, and in place.
    for (const size_t bytes : {kBytes, size_t{100}, size_t{17000}}) {
      std::string host(bytes, '\0');
      for (void* const to : {static_cast<void*>(result.data()), static_cast<void*>(host.data()),
                             static_cast<void*>(rank == 1 ? values.data() : result.data())}) {
        if (rhBroadcast(values.data(), to, bytes, rhUint8, 1, comm, nullptr) != rhSuccess) {
          return rhGetLastError(comm);
        }
        if (to == host.data()) {
          EXPECT_EQ(host, Values::Text(kBytes, 1).substr(0, bytes));
        }
      }
      EXPECT_EQ(result.Get().substr(0, bytes), Values::Text(kBytes, 1).substr(0, bytes));
      result.Fill(7);
    }
    EXPECT_EQ(values.Get(), Values::Text(kBytes, rank)) << "it is not written to";
    return "right";
  });
  EXPECT_EQ(results, std::vector<std::string>(3, "right"));
  EXPECT_GE(world.rails().verbs().gathered_sends(), kBytes / 65536);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, GpuBroadcastTest,
                         ::testing::Values("ring", "binomial", "scatter_allgather"));

// Repeated data is copied by the GPU, and so is all data that a NIC can no longer read.
TEST(GpuDirectTest, LostRailsAndForgottenMemoryChangeNothing) {
  GpuWorld world(2, TransportChoice::kVerbs);
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    Values values(world.cuda(), kBytes, 1);
    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
    std::string all;
    for (int i = 0; i < 6; ++i) {
      if (rank == 0) {
        world.rails().verbs().FailNextSend(absl::StrCat("fake0_", i % 2), IBV_WC_RETRY_EXC_ERR);
      }
      if (i == 4) {
        EXPECT_EQ(rhCommDeregister(comm, handle), rhSuccess);
      }
      const std::string got = Carry(comm, rank, values.data());
      EXPECT_EQ(got, rank == 0 ? "sent" : Values::Text(kBytes, 1));
    }
    return "right";
  });
  EXPECT_EQ(results, std::vector<std::string>(2, "right"));
}

TEST(GpuDirectTest, AnAddressThatIsAllocatedAgainIsNotWhatWasRegistered) {
  GpuWorld world(2, TransportChoice::kVerbs);
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    Values values(world.cuda(), kBytes, 1);
    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
    world.cuda().Reallocate(values.data());
    values.Fill(2);
    return Carry(comm, rank, values.data());
  });
  EXPECT_EQ(results, (std::vector<std::string>{"sent", Values::Text(kBytes, 2)}));
  EXPECT_EQ(world.rails().verbs().gathered_sends(), 0U);
}

TEST(GpuDirectTest, AnOldRegistrationOfTheSameAddressIsNotSent) {
  for (const bool numbered : {true, false}) {
    GpuWorld world(2, TransportChoice::kVerbs);
    if (!numbered) world.cuda().WithoutIds();
    const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
      Values values(world.cuda(), kBytes + 100, 1);
      void* handle = nullptr;
      // The old one begins later than the new one, and holds all that is sent.
      EXPECT_EQ(rhCommRegister(comm, values.data() + 100, kBytes, &handle), rhSuccess);
      world.cuda().Reallocate(values.data());
      values.Fill(2);
      EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes + 100, &handle), rhSuccess);
      const std::string got = Carry(comm, rank, values.data() + 100);
      return rank == 0 || got == values.Get().substr(100) ? "right" : "stale";
    });
    EXPECT_EQ(results, std::vector<std::string>(2, "right"));
    EXPECT_EQ(world.rails().verbs().gathered_sends() > 0, numbered);
  }
}

// Its values may not be in its pages.
TEST(GpuDirectTest, ManagedMemoryIsNotGivenToNics) {
  GpuWorld world(2, TransportChoice::kVerbs);
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    std::byte* const managed = world.cuda().AllocateManaged(kBytes);
    const std::string text = Values::Text(kBytes, 1);
    std::memcpy(managed, text.data(), kBytes);
    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, managed, kBytes, &handle), rhSuccess);
    std::string got = Carry(comm, rank, managed);
    EXPECT_EQ(rhCommDeregister(comm, handle), rhSuccess);
    return got;
  });
  EXPECT_EQ(results, (std::vector<std::string>{"sent", Values::Text(kBytes, 1)}));
  EXPECT_EQ(world.rails().verbs().gathered_sends(), 0U);
}

int Degraded(rhComm_t comm) {
  rhCommInfo_t info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(rhCommGetInfo(comm, &info), rhSuccess);
  return info.degraded;
}

TEST(GpuDirectTest, TheWorstOfWhatIsKnownCountsWhileItIs) {
  GpuWorld world(2, TransportChoice::kVerbs);
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    if (rank == 0) {
      const auto ways = [&] { return comm->communicator->memory().known_gpus().Ways(); };
      const Values values(world.cuda(), kBytes, 1);
      void* good = nullptr;
      void* bad = nullptr;
      void* last = nullptr;
      EXPECT_EQ(rhCommRegister(comm, values.data(), 5000, &good), rhSuccess);
      world.cuda().FailSynchronizing(device::kCudaNotSupported);
      EXPECT_EQ(rhCommRegister(comm, values.data(), 6000, &bad), rhSuccess);
      world.cuda().FailSynchronizing(device::kCudaSuccess);
      EXPECT_EQ(rhCommRegister(comm, values.data(), 7000, &last), rhSuccess);
      EXPECT_EQ(Degraded(comm), 1) << "whatever came last";
      EXPECT_EQ(ways().size(), 2U);
      EXPECT_EQ(ways()[0].way, fabric::GpuDirectWay::kNone);
      EXPECT_EQ(rhCommDeregister(comm, bad), rhSuccess);
      EXPECT_EQ(Degraded(comm), 0);
      EXPECT_EQ(ways()[0].way, fabric::GpuDirectWay::kDmabuf);
      EXPECT_EQ(rhCommDeregister(comm, good), rhSuccess);
      EXPECT_EQ(rhCommDeregister(comm, last), rhSuccess);
      EXPECT_TRUE(ways().empty());
    }
    return rhBarrier(comm, nullptr) == rhSuccess ? "right" : rhGetLastError(comm);
  });
  EXPECT_EQ(results, std::vector<std::string>(2, "right"));
}

TEST(GpuDirectTest, AFewBytesOfABroadcastAreCopiedOnce) {
  GpuWorld world(3, TransportChoice::kVerbs);
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    const Values values(world.cuda(), kBytes, 1);
    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
    std::string host(rails::kCopied, '\0');
    if (rhBroadcast(values.data(), host.data(), host.size(), rhUint8, 1, comm, nullptr) !=
        rhSuccess) {
      return rhGetLastError(comm);
    }
    if (rank == 1) {
      EXPECT_EQ(world.cuda().pinned(), 1U) << "staged";
    }
    return host == Values::Text(kBytes, 1).substr(0, host.size()) ? "right" : "wrong";
  });
  EXPECT_EQ(results, std::vector<std::string>(3, "right"));
  EXPECT_EQ(world.cuda().copies(), 1);
  EXPECT_EQ(world.rails().verbs().gathered_sends(), 0U);
}

// Sends to other pods go over rails; what stays in a pod, and a broadcast, through memory of the
// host.
TEST(GpuDirectTest, SendsToOtherPodsAreReadWherePodsHaveSeveralRanks) {
  GpuWorld world(4, TransportChoice::kVerbs, 2);
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    const Values values(world.cuda(), kBytes, rank);
    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
    EXPECT_EQ(Degraded(comm), 0);
    std::string host(kBytes, '\0');
    if (rhBroadcast(values.data(), host.data(), kBytes, rhUint8, 3, comm, nullptr) != rhSuccess) {
      return rhGetLastError(comm);
    }
    EXPECT_EQ(host, Values::Text(kBytes, 3));
    const uint64_t before = world.rails().verbs().gathered_sends();
    for (const int to : {1, 2}) {
      if (rank == 0) {
        EXPECT_EQ(rhSend(values.data(), kBytes, rhUint8, to, comm, nullptr), rhSuccess);
        const uint64_t gathered = world.rails().verbs().gathered_sends() - before;
        if (to == 1) {
          EXPECT_EQ(gathered, 0U) << "staged";
        } else {
          EXPECT_GE(gathered, kBytes / 65536);
        }
      } else if (rank == to) {
        EXPECT_EQ(rhRecv(host.data(), kBytes, rhUint8, 0, comm, nullptr), rhSuccess);
        EXPECT_EQ(host, Values::Text(kBytes, 0));
      }
    }
    return rhBarrier(comm, nullptr) == rhSuccess ? "right" : rhGetLastError(comm);
  });
  EXPECT_EQ(results, std::vector<std::string>(4, "right"));
}

TEST(GpuFailureTest, MemoryFreedWhileRegisteredIsAnErrorOnAllRanks) {
  GpuWorld world(2, TransportChoice::kVerbs);
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    Values values(world.cuda(), kBytes, 1);
    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSuccess);
    std::byte* const gone = values.data();
    if (rank == 0) values.Free();
    return Carry(comm, rank, rank == 0 ? gone : values.data());
  });
  for (const std::string& result : results) {
    EXPECT_THAT(result, AllOf(HasSubstr("rank 0"), HasSubstr("rhSend"), HasSubstr("has been freed"),
                              HasSubstr("rhCommDeregister before")));
  }
}

class GpuFailureEverywhereTest : public ::testing::TestWithParam<TransportChoice> {};
INSTANTIATE_TEST_SUITE_P(Transports, GpuFailureEverywhereTest,
                         ::testing::Values(TransportChoice::kVerbs, TransportChoice::kShm,
                                           TransportChoice::kTcp),
                         [](const auto& transport) {
                           return std::string(config::TransportChoiceName(transport.param));
                         });

TEST_P(GpuFailureEverywhereTest, IsToldToAllRanksAndNobodyWaits) {
  struct Fault {
    const char* what;
    int copies = -1;  // how many copies still work
    bool pinning = false;
    const char* text;
  };
  for (const Fault& fault : {Fault{"copies out", 0, false, "to the host: made up for the test"},
                             Fault{"the copy in", 1, false, "from the host: made up for the test"},
                             Fault{"pinning", -1, true, "cannot pin 400000 bytes"}}) {
    SCOPED_TRACE(fault.what);
    GpuWorld world(2, GetParam());
    if (fault.copies >= 0) world.cuda().FailCopies(719, fault.copies);
    if (fault.pinning) world.cuda().FailPinning(device::kCudaOutOfMemory);
    const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
      std::vector<float> host(100000);
      Values values(world.cuda(), host.size() * sizeof(float), 1);
      void* const memory = rank == 1 ? static_cast<void*>(values.data()) : host.data();
      // The other rank may have its result before the copy fails, and learns of it then.
      for (int i = 0; i < 2; ++i) {
        if (rhAllReduce(memory, memory, host.size(), rhFloat32, rhSum, comm, nullptr) !=
            rhSuccess) {
          return rhGetLastError(comm);
        }
      }
      return "done";
    });
    for (const std::string& result : results) {
      EXPECT_THAT(result, AllOf(HasSubstr("rank 1"), HasSubstr("rhAllReduce"), HasSubstr("GPU 0"),
                                HasSubstr(fault.text)));
    }
  }
}

// Without the driver, the owner of a buffer is unknown, so the CPU must not access it.
TEST_P(GpuFailureEverywhereTest, ADriverThatHasFailedEndsTheJob) {
  GpuWorld world(2, GetParam());
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    const Values values(world.cuda(), kBytes, 1);
    if (rhBarrier(comm, nullptr) != rhSuccess) return rhGetLastError(comm);
    world.cuda().FailQuestions(700);
    void* handle = nullptr;
    EXPECT_EQ(rhCommRegister(comm, values.data(), kBytes, &handle), rhSystemError);
    EXPECT_THAT(rhGetLastError(comm), HasSubstr("CUDA error 700"));
    EXPECT_EQ(handle, nullptr);
    rhRedOp_t op = rhSum;
    EXPECT_EQ(rhRedOpCreatePreMulSum(&op, values.data(), rhFloat32, rhScalarDevice, comm),
              rhSystemError);
    if (rhBroadcast(values.data(), values.data(), kBytes, rhUint8, 0, comm, nullptr) == rhSuccess) {
      return absl::StrCat("rank ", rank, " did it");
    }
    return rhGetLastError(comm);
  });
  for (const std::string& result : results) {
    EXPECT_THAT(result, AllOf(HasSubstr("rhBroadcast"), HasSubstr("made up for the test"),
                              HasSubstr("CUDA error 700"), HasSubstr("Xid")));
  }
}

// A stream's thread has no context of its own.
TEST(GpuStreamTest, CallsOnAStreamAreRight) {
  GpuWorld world(2, TransportChoice::kShm);
  const auto results = world.Run([&](rhComm_t comm, int rank) -> std::string {
    Values values(world.cuda(), kBytes, rank);
    rhStream_t stream = nullptr;
    EXPECT_EQ(rhStreamCreate(&stream), rhSuccess);
    EXPECT_EQ(rhBroadcast(values.data(), values.data(), kBytes, rhUint8, 1, comm, stream),
              rhSuccess);
    EXPECT_EQ(rhStreamDestroy(stream), rhSuccess);
    return values.Get();
  });
  EXPECT_EQ(results, std::vector<std::string>(2, Values::Text(kBytes, 1)));
}

// A program that did not ask for a GPU, although one of its libraries might.
TEST(GpuAbsentTest, NothingIsAskedOfADriverThatIsNotInUse) {
  for (const bool loaded : {false, true}) {
    GpuWorld world(2, TransportChoice::kShm);
    world.cuda().SetLoaded(loaded);
    world.cuda().SetInitialized(false);
    const auto results = world.Run([](rhComm_t comm, int rank) -> std::string {
      int value = rank;
      EXPECT_EQ(rhAllReduce(&value, &value, 1, rhInt32, rhSum, comm, nullptr), rhSuccess);
      return absl::StrCat(value);
    });
    EXPECT_EQ(results, std::vector<std::string>(2, "1"));
    EXPECT_EQ(world.cuda().copies(), 0);
  }
}

}  // namespace
}  // namespace railhead::comm

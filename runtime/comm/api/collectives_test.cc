// SPDX-License-Identifier: Apache-2.0
//
// Every collective of the C API, by ranks in processes, over rails and in shared memory.
#include "runtime/testing/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "railhead/railhead.h"
#include "runtime/collectives/ways.h"
#include "runtime/reduce/reduce.h"
#include "runtime/testing/arithmetic.h"
#include "runtime/testing/call.h"
#include "runtime/testing/forked_ranks.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using testing::Call;
using testing::Collective;
using testing::CollectiveCase;
using testing::HasRoot;
using ::testing::HasSubstr;
using testing::kCollectives;
using testing::Reduces;
using testing::RunForks;
using testing::Trial;

std::string RunCases(rhComm_t comm, int rank, int ranks, const std::vector<CollectiveCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    Trial trial(cases[i], rank, ranks, i);
    std::string error = testing::Play(comm, trial);
    if (!error.empty()) return absl::StrCat("case ", i, ": ", error);
  }
  return "";
}

class CollectivesTest : public ::testing::TestWithParam<std::string> {
 protected:
  static void Run(int ranks, const std::vector<CollectiveCase>& cases) {
    const std::vector<std::string> outputs =
        RunForks(ranks, GetParam(), [&](rhComm_t comm, int rank) {
          std::string error = RunCases(comm, rank, ranks, cases);
          return error.empty() ? std::string("right") : error;
        });
    EXPECT_EQ(outputs, std::vector<std::string>(static_cast<size_t>(ranks), "right"));
  }
};

TEST_P(CollectivesTest, EverySizeInAndOutOfPlaceFromEveryRoot) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    std::vector<CollectiveCase> cases;
    // In bytes: around what is done at once, a chunk in shared memory and a segment on a ring.
    for (const size_t count : {0, 1, 2, 63, 65, 8192, 8193, 32768, 32769, 131071, 131073, 300001}) {
      for (const Collective collective : kCollectives) {
        for (int root = 0; root < (HasRoot(collective) ? ranks : 1); ++root) {
          cases.push_back({collective, rhUint8, rhSum, count, root, false});
          cases.push_back({collective, rhUint8, rhSum, count, root, true});
        }
      }
    }
    Run(ranks, cases);
  }
}

// Each algorithm as a user asks for it, among numbers of ranks that are no powers of two.
TEST(PinnedTest, EveryAlgorithmGivesTheRightResults) {
  std::map<Collective, std::vector<std::string>> algorithms;
  size_t most = 0;
  for (const collectives::Way& way : collectives::Ways()) {
    if (way.algorithm == collectives::Algorithm::kHierarchical) continue;
    algorithms[way.collective].emplace_back(Name(way.algorithm));
    most = std::max(most, algorithms[way.collective].size());
  }
  for (const int ranks : {3, 5, 6, 7}) {
    for (size_t number = 0; number < most; ++number) {
      std::vector<std::string> pins;
      std::vector<std::pair<Collective, std::string>> wanted;
      std::vector<CollectiveCase> cases;
      for (const auto& [collective, names] : algorithms) {
        const std::string& name = names[number % names.size()];
        pins.push_back(absl::StrCat(Name(collective), "=", name));
        wanted.emplace_back(collective, absl::StrCat(": ", name, ", set by RAILHEAD_ALGO"));
        const bool uneven =
            collective == Collective::kAllGather || collective == Collective::kReduceScatter;
        for (const size_t count : {0, 1, 1003, 40001}) {
          const int root = static_cast<int>(count) % ranks;
          cases.push_back({collective, rhInt32, rhSum, count, root, false});
          cases.push_back({collective, rhFloat32, rhAvg, count, root, true});
          if (uneven) cases.push_back({collective, rhInt16, rhMax, count, root, true, false, true});
        }
      }
      ::setenv("RAILHEAD_ALGO", absl::StrJoin(pins, ",").c_str(), 1);
      const auto outputs = RunForks(ranks, "tcp", [&](rhComm_t comm, int rank) -> std::string {
        for (const auto& [collective, text] : wanted) {
          std::array<char, 4096> explained{};
          rhCommExplain(comm, Name(collective), 1000, explained.data(), explained.size());
          if (std::string(explained.data()).find(text) == std::string::npos) {
            return explained.data();
          }
        }
        const std::string error = RunCases(comm, rank, ranks, cases);
        return error.empty() ? "right" : error;
      });
      ::unsetenv("RAILHEAD_ALGO");
      EXPECT_EQ(outputs, std::vector<std::string>(static_cast<size_t>(ranks), "right"))
          << absl::StrJoin(pins, ",");
    }
  }
}

TEST_P(CollectivesTest, EveryTypeAndOperator) {
  for (int ranks = 1; ranks <= 5; ranks += 2) {
    std::vector<CollectiveCase> cases;
    for (int type = rhInt8; type <= rhUint16; ++type) {
      for (int op = rhSum; op <= rhBxor; ++op) {
        const auto t = static_cast<rhDataType_t>(type);
        const auto o = static_cast<rhRedOp_t>(op);
        for (const Collective collective : kCollectives) {
          if (Reduces(collective) ? !reduce::CanReduce(t, o) : op != rhSum) continue;
          cases.push_back({collective, t, o, 1, ranks - 1, true});
          cases.push_back({collective, t, o, 5003, ranks / 2, false});
        }
      }
    }
    Run(ranks, cases);
  }
}

TEST_P(CollectivesTest, LargeOnes) {
  std::vector<CollectiveCase> cases;
  for (const Collective collective : kCollectives) {
    cases.push_back({collective, rhFloat32, rhAvg, 1100003, 1, false});
    cases.push_back({collective, rhInt64, rhMax, 524289, 0, true});
  }
  Run(3, cases);
}

TEST_P(CollectivesTest, AnySuccession) {
  for (int ranks = 2; ranks <= 5; ++ranks) {
    std::mt19937 random(static_cast<unsigned>(ranks));
    std::vector<CollectiveCase> cases;
    for (int i = 0; i < 300; ++i) {
      const size_t largest = size_t{1} << (random() % 19);
      cases.push_back({kCollectives[random() % kCollectives.size()],
                       random() % 2 == 0 ? rhInt32 : rhFloat16, rhAvg, random() % largest,
                       static_cast<int>(random() % static_cast<unsigned>(ranks)),
                       random() % 2 == 0});
    }
    Run(ranks, cases);
  }
}

// Enough calls in a few size classes that ranks learn the fastest algorithms during the test. The
// larger buffer has a random size, on any rank.
TEST_P(CollectivesTest, WhileAlgorithmsAreLearnt) {
  for (const int ranks : {3, 4}) {
    std::mt19937 random(static_cast<unsigned>(ranks));
    std::vector<CollectiveCase> cases;
    for (const Collective collective : kCollectives) {
      const bool parts = collective != Collective::kAllReduce &&
                         collective != Collective::kBroadcast && collective != Collective::kReduce;
      for (const size_t largest : {64, 4096, 200000}) {
        for (int i = 0; i < 40; ++i) {
          const size_t bytes = largest - random() % (largest / 2);
          cases.push_back({collective, rhInt32, rhSum,
                           std::max<size_t>(1, bytes / 4 / static_cast<size_t>(parts ? ranks : 1)),
                           static_cast<int>(random() % static_cast<unsigned>(ranks)),
                           random() % 2 == 0});
        }
      }
    }
    std::shuffle(cases.begin(), cases.end(), random);
    Run(ranks, cases);
  }
}

// Parts of 0, 3, 6, ... values with a gap before each, and of rank 1 more than fits a cell.
struct Uneven {
  explicit Uneven(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      counts.push_back(rank == 1 ? 140001 : 3 * static_cast<size_t>(rank));
      total += 5;
      displs.push_back(total);
      total += counts.back();
    }
  }
  std::vector<size_t> counts;
  std::vector<size_t> displs;
  size_t total = 0;
};

TEST_P(CollectivesTest, PartsThatDiffer) {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const std::vector<std::string> outputs =
        RunForks(ranks, GetParam(), [&](rhComm_t comm, int rank) -> std::string {
          const auto self = static_cast<size_t>(rank);
          const Uneven uneven(ranks);
          const auto value = [](size_t of, size_t i) { return static_cast<int>(of * 1000003 + i); };
          std::vector<int> expected(uneven.total, -1);
          for (size_t r = 0; r < uneven.counts.size(); ++r) {
            for (size_t i = 0; i < uneven.counts[r]; ++i) {
              expected[uneven.displs[r] + i] = value(r, i);
            }
          }
          // All-gather, apart and in place.
          std::vector<int> mine(uneven.counts[self]);
          for (size_t i = 0; i < mine.size(); ++i) mine[i] = value(self, i);
          std::vector<int> all(uneven.total, -1);
          if (rhAllGatherv(mine.data(), all.data(), uneven.counts.data(), uneven.displs.data(),
                           rhInt32, comm, nullptr) != rhSuccess) {
            return rhGetLastError(comm);
          }
          if (all != expected) return "wrong all-gather";
          all.assign(uneven.total, -1);
          std::copy(mine.begin(), mine.end(), all.data() + uneven.displs[self]);
          if (rhAllGatherv(all.data() + uneven.displs[self], all.data(), uneven.counts.data(),
                           uneven.displs.data(), rhInt32, comm, nullptr) != rhSuccess) {
            return rhGetLastError(comm);
          }
          if (all != expected) return "wrong all-gather in place";

          // Reduce-scatter: the parts follow each other.
          std::vector<int> send;
          size_t before = 0;
          for (size_t r = 0; r < uneven.counts.size(); ++r) {
            for (size_t i = 0; i < uneven.counts[r]; ++i) send.push_back(rank + value(r, i));
            if (r < self) before += uneven.counts[r];
          }
          std::vector<int> sum(mine.size());
          if (rhReduceScatterv(send.data(), sum.data(), uneven.counts.data(), rhInt32, rhSum, comm,
                               nullptr) != rhSuccess) {
            return rhGetLastError(comm);
          }
          for (size_t i = 0; i < sum.size(); ++i) {
            const int wanted = ranks * value(self, i) + ranks * (ranks - 1) / 2;
            if (sum[i] != wanted) return "wrong reduce-scatter";
          }
          if (rhReduceScatterv(send.data(), send.data() + before, uneven.counts.data(), rhInt32,
                               rhSum, comm, nullptr) != rhSuccess) {
            return rhGetLastError(comm);
          }
          if (!std::equal(sum.begin(), sum.end(), send.data() + before)) {
            return "wrong reduce-scatter in place";
          }

          // All-to-all: rank a sends 7000 a + b values to rank b.
          const auto size = [](size_t from, size_t to) { return 7000 * from + to; };
          std::vector<size_t> sendcounts;
          std::vector<size_t> recvcounts;
          std::vector<int> out;
          std::vector<int> wanted;
          for (size_t r = 0; r < uneven.counts.size(); ++r) {
            sendcounts.push_back(size(self, r));
            recvcounts.push_back(size(r, self));
            for (size_t i = 0; i < size(self, r); ++i) out.push_back(value(self * 10 + r, i));
            for (size_t i = 0; i < size(r, self); ++i) wanted.push_back(value(r * 10 + self, i));
          }
          std::vector<int> in(wanted.size());
          if (rhAlltoAllv(out.data(), sendcounts.data(), nullptr, in.data(), recvcounts.data(),
                          nullptr, rhInt32, comm, nullptr) != rhSuccess) {
            return rhGetLastError(comm);
          }
          return in == wanted ? "right" : "wrong all-to-all";
        });
    EXPECT_EQ(outputs, std::vector<std::string>(static_cast<size_t>(ranks), "right"));
  }
}

// Each rank multiplies by 2 + its number.
TEST_P(CollectivesTest, OwnFactors) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    const std::vector<std::string> outputs =
        RunForks(ranks, GetParam(), [&](rhComm_t comm, int rank) -> std::string {
          const int factors = 2 * ranks + ranks * (ranks - 1) / 2;
          for (const auto type : {rhInt32, rhFloat32, rhFloat16, rhBfloat16, rhFloat8e4m3}) {
            const auto format = testing::FormatOf(type);
            const size_t element = reduce::SizeOf(type);
            const auto encode = [&](int value) -> uint64_t {
              return type == rhInt32 ? static_cast<uint64_t>(value)
                                     : testing::Encode(format, value);
            };
            const auto fill = [&](size_t count, int value) {
              std::vector<std::byte> bytes(count * element);
              const uint64_t bits = encode(value);
              for (size_t i = 0; i < count; ++i) {
                std::memcpy(bytes.data() + i * element, &bits, element);
              }
              return bytes;
            };
            uint64_t scalar = encode(2 + rank);
            rhRedOp_t op = rhSum;
            if (rhRedOpCreatePreMulSum(&op, &scalar, type, rhScalarHostImmediate, comm) !=
                rhSuccess) {
              return rhGetLastError(comm);
            }
            const size_t count = 1000;
            const auto parts = static_cast<size_t>(ranks) * count;
            std::vector<std::byte> in = fill(parts, 1);
            std::vector<std::byte> out(parts * element);
            const auto is = [&](const std::vector<std::byte>& bytes, size_t n) {
              return std::memcmp(bytes.data(), fill(n, factors).data(), n * element) == 0;
            };
            if (rhAllReduce(in.data(), out.data(), parts, type, op, comm, nullptr) != rhSuccess ||
                !is(out, parts)) {
              return absl::StrCat("all-reduce of type ", type, " ", rhGetLastError(comm));
            }
            if (rhReduceScatter(in.data(), out.data(), count, type, op, comm, nullptr) !=
                    rhSuccess ||
                !is(out, count)) {
              return absl::StrCat("reduce-scatter of type ", type, " ", rhGetLastError(comm));
            }
            if (rhReduce(in.data(), out.data(), parts, type, op, 0, comm, nullptr) != rhSuccess ||
                (rank == 0 && !is(out, parts))) {
              return absl::StrCat("reduce of type ", type, " ", rhGetLastError(comm));
            }
            if (in != fill(parts, 1)) return "the input was written to";
            if (rhAllReduce(in.data(), in.data(), parts, type, op, comm, nullptr) != rhSuccess ||
                !is(in, parts)) {
              return absl::StrCat("in place, type ", type, " ", rhGetLastError(comm));
            }
            if (rhRedOpDestroy(op, comm) != rhSuccess) return rhGetLastError(comm);
            if (rhAllReduce(in.data(), in.data(), 1, type, op, comm, nullptr) !=
                rhInvalidArgument) {
              return "an operator worked after its end";
            }
          }
          return "right";
        });
    EXPECT_EQ(outputs, std::vector<std::string>(static_cast<size_t>(ranks), "right"));
  }
}

TEST_P(CollectivesTest, AKilledRankIsNamedByAllOthers) {
  for (const Collective collective : kCollectives) {
    for (int victim = 0; victim < 3; ++victim) {
      const CollectiveCase c = {collective, rhInt32, rhSum, 50000, 1, false};
      const std::vector<std::string> outputs = RunForks(
          3, GetParam(),
          [&](rhComm_t comm, int rank) -> std::string {
            Trial trial(c, rank, 3, 1);
            // Other ranks that are still starting must not need the rank that dies.
            rhBarrier(comm, nullptr);
            for (int i = 0; i < 1000000; ++i) {
              if (rank == victim && i == 5) ::raise(SIGKILL);
              if (Call(comm, trial, c.op) == rhSuccess) continue;
              return rhGetLastError(comm);
            }
            return "nobody died";
          },
          20);
      for (int rank = 0; rank < 3; ++rank) {
        if (rank == victim) continue;
        EXPECT_THAT(outputs[static_cast<size_t>(rank)],
                    AllOf(HasSubstr(absl::StrCat("rank ", victim, " (pod p", victim, ")")),
                          HasSubstr(absl::StrCat(Name(collective), " number "))))
            << "rank " << rank;
      }
    }
  }
}

// If one rank calls something else, all ranks get an error that names the difference.
TEST_P(CollectivesTest, RanksThatContradictEachOtherAreNamed) {
  const CollectiveCase all = {Collective::kAllReduce, rhInt32, rhSum, 1000, 0, false};
  struct Other {
    CollectiveCase c;
    std::string text;
  };
  const std::vector<Other> others = {
      {{Collective::kAllReduce, rhInt32, rhSum, 1001, 0, false},
       "all_reduce of 1001 values of type 2 with op 0"},
      {{Collective::kAllReduce, rhFloat32, rhSum, 1000, 0, false},
       "all_reduce of 1000 values of type 7 with op 0"},
      {{Collective::kAllReduce, rhInt32, rhMax, 1000, 0, false},
       "all_reduce of 1000 values of type 2 with op 2"},
      {{Collective::kAllGather, rhInt32, rhSum, 1000, 0, false}, "all_gather of 12000 bytes"},
      {{Collective::kReduce, rhInt32, rhSum, 1000, 2, false},
       "reduce of 1000 values of type 2 with op 0, root 2"},
      {{Collective::kBarrier, rhInt32, rhSum, 0, 0, false}, "barrier"}};
  for (const Other& other : others) {
    const std::vector<std::string> outputs =
        RunForks(3, GetParam(), [&](rhComm_t comm, int rank) -> std::string {
          const CollectiveCase& c = rank == 1 ? other.c : all;
          // A rank that waits for no other detects it a few calls later.
          for (int i = 0; i < 1000; ++i) {
            Trial trial(c, rank, 3, 1);
            const rhResult_t result = Call(comm, trial, c.op);
            if (result != rhSuccess) return absl::StrCat(result, " ", rhGetLastError(comm));
          }
          return "nobody noticed";
        });
    for (const std::string& output : outputs) {
      EXPECT_THAT(output, AllOf(HasSubstr("all ranks must call the same"), HasSubstr(other.text),
                                HasSubstr("all_reduce of 1000 values of type 2 with op 0")));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, CollectivesTest, ::testing::Values("tcp", "shm"));

// Errors in arguments, which must not harm the communicator.
TEST(CollectivesArgumentsTest, AreRefusedByNameAndWithoutHarm) {
  const std::vector<std::string> outputs = RunForks(2, "shm", [](rhComm_t comm, int rank) {
    std::array<float, 64> a{};
    std::array<float, 64> b{};
    std::string missing;
    const auto refused = [&](rhResult_t result, const std::string& text) {
      const std::string error = rhGetLastError(comm);
      if (result != rhInvalidArgument || error != text) {
        absl::StrAppend(&missing, "expected '", text, "', not '", error, "'; ");
      }
    };
    float* const mine = a.data() + static_cast<size_t>(rank) * 8;
    const float* const others = a.data() + static_cast<size_t>(1 - rank) * 8;
    const auto* const odd = reinterpret_cast<const char*>(a.data()) + 1;
    const auto no_type = static_cast<rhDataType_t>(99);

    refused(rhAllGather(others, a.data(), 8, rhFloat32, comm, nullptr),
            "rhAllGather: sendbuf and recvbuf overlap; in place, sendbuf is recvbuf + rank * "
            "sendcount, and else they are apart");
    refused(rhAllGather(nullptr, b.data(), 8, rhFloat32, comm, nullptr),
            "rhAllGather: sendbuf is NULL");
    refused(rhAllGather(odd, b.data(), 8, rhFloat32, comm, nullptr),
            "rhAllGather: sendbuf is not aligned to 4 bytes");
    refused(rhAllGather(a.data(), b.data(), SIZE_MAX / 4, rhFloat32, comm, nullptr),
            absl::StrCat("rhAllGather: sendcount ", SIZE_MAX / 4, " is too large"));
    refused(rhAllGather(a.data(), b.data(), 8, no_type, comm, nullptr),
            "rhAllGather: datatype 99 does not exist");
    refused(rhReduceScatter(a.data(), mine + 1, 8, rhFloat32, rhSum, comm, nullptr),
            "rhReduceScatter: sendbuf and recvbuf overlap; in place, recvbuf is sendbuf + rank * "
            "recvcount, and else they are apart");
    refused(rhReduceScatter(a.data(), b.data(), 8, rhFloat32, rhBor, comm, nullptr),
            "rhReduceScatter: op 6 works on integers only, and datatype 7 is a float");
    refused(rhBroadcast(a.data(), b.data(), 8, rhFloat32, 2, comm, nullptr),
            "rhBroadcast: root 2 does not exist; ranks go from 0 to 1");
    refused(rhBroadcast(a.data(), nullptr, 8, rhFloat32, rank, comm, nullptr),
            "rhBroadcast: recvbuf is NULL");
    refused(rhBroadcast(nullptr, b.data(), 8, rhFloat32, rank, comm, nullptr),
            "rhBroadcast: sendbuf is NULL");
    refused(rhBroadcast(a.data(), a.data() + 1, 8, rhFloat32, rank, comm, nullptr),
            "rhBroadcast: sendbuf and recvbuf overlap; they may be the same, or apart");
    refused(rhReduce(a.data(), b.data(), 8, rhFloat32, rhSum, -1, comm, nullptr),
            "rhReduce: root -1 does not exist; ranks go from 0 to 1");
    refused(rhReduce(a.data(), nullptr, 8, rhFloat32, rhSum, rank, comm, nullptr),
            "rhReduce: recvbuf is NULL");
    refused(rhReduce(a.data(), b.data(), 8, rhFloat32, static_cast<rhRedOp_t>(9), 0, comm, nullptr),
            "rhReduce: op 9 does not exist");
    if (rhBarrier(nullptr, nullptr) != rhInvalidArgument ||
        std::string(rhGetLastError(nullptr)) != "rhBarrier: comm is NULL") {
      missing += "rhBarrier(NULL)";
    }
    // In place, and what only one rank uses.
    mine[0] = 1;
    if (rhAllGather(mine, a.data(), 8, rhFloat32, comm, nullptr) != rhSuccess || a[0] != 1 ||
        a[8] != 1) {
      missing += rhGetLastError(comm);
    }
    return missing;
  });
  EXPECT_EQ(outputs, std::vector<std::string>(2));
}

}  // namespace
}  // namespace railhead

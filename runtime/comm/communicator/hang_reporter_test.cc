// SPDX-License-Identifier: Apache-2.0
//
// Ranks as processes that make no progress, and the reports of all ranks about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/base/now.h"
#include "runtime/testing/processes.h"
#include "runtime/testing/ranks.h"

namespace railhead {
namespace {

using ::testing::AllOf;
using testing::Environment;
using testing::FreePort;
using ::testing::HasSubstr;
using testing::Process;
using testing::RankEnvironment;

constexpr int kWorld = 4;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text of the last report in a log.
std::string LastReport(const std::string& log) {
  const std::string before = "the job makes no progress: ";
  const size_t at = log.rfind(before);
  if (at == std::string::npos) return "";
  const std::string rest = log.substr(at + before.size());
  return rest.substr(0, rest.find('\n'));
}

// A directory that is deleted at the end of the test.
class Folder {
 public:
  Folder() : path_(absl::StrCat(::testing::TempDir(), "/flight-XXXXXX")) {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Folder() {
    for (int rank = 0; rank < kWorld; ++rank) {
      ::unlink(Log(rank).c_str());
      ::unlink(Flight(rank).c_str());
    }
    ::rmdir(path_.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string Log(int rank) const { return absl::StrCat(path_, "/log-", rank); }
  std::string Flight(int rank) const { return absl::StrCat(path_, "/still-rank-", rank, ".json"); }

 private:
  std::string path_;
};

// An object that forked processes have in common.
template <class Object>
class Shared {
 public:
  Shared()
      : object_(new (::mmap(nullptr, sizeof(Object), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Object()) {}
  ~Shared() { ::munmap(object_, sizeof(Object)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  Object& operator*() const { return *object_; }

 private:
  Object* const object_;
};

std::string Reduce(rhComm_t comm) {
  std::vector<float> values(1000, 1.0F);
  const rhResult_t result =
      rhAllReduce(values.data(), values.data(), values.size(), rhFloat32, rhSum, comm, nullptr);
  return result == rhSuccess ? "" : rhGetLastError(comm);
}

class HangReporterTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Forks ranks with a timeout of 4 s, which write logs and flight recorder files to the folder.
  std::vector<Process> Fork(const std::function<std::string(rhComm_t comm, int rank)>& body) {
    const int port = FreePort();
    std::vector<Process> ranks;
    for (int rank = 0; rank < kWorld; ++rank) {
      Environment environment = RankEnvironment(rank, kWorld, port);
      environment["RAILHEAD_TRANSPORT"] = GetParam();
      environment["RAILHEAD_JOB"] = "still";
      environment["RAILHEAD_TIMEOUT_SECONDS"] = "4";
      environment["RAILHEAD_LOG"] = "warn";
      environment["RAILHEAD_FLIGHT_RECORDER"] = folder_.path();
      ranks.push_back(Process::Fork(environment, [&, rank] {
        if (std::freopen(folder_.Log(rank).c_str(), "we", stderr) == nullptr) return std::string();
        rhComm_t comm = nullptr;
        if (rhCommInitFromEnv(&comm) != rhSuccess) return std::string(rhGetLastError(nullptr));
        return body(comm, rank);
      }));
    }
    return ranks;
  }

  static std::string OutputOf(Process& process) {
    return process.Wait(MonotonicNow() + absl::Seconds(60)).output;
  }

  const Folder folder_;
};

TEST_P(HangReporterTest, WhoCallsLateIsNamedByAllAndWaitedForAndTheFlightIsKept) {
  const Shared<std::atomic<int>> through;
  std::vector<Process> ranks = Fork([&](rhComm_t comm, int rank) {
    std::string error;
    for (int i = 0; i < 5 && error.empty(); ++i) error = Reduce(comm);
    // Busy for more than twice the timeout.
    if (rank == 2) absl::SleepFor(absl::Seconds(9));
    if (error.empty()) error = Reduce(comm);
    if (!error.empty()) return absl::StrCat("not waited for: ", error);
    // An abort ends calls that are not complete on other ranks.
    ++*through;
    while (rank == 2 && *through < kWorld) absl::SleepFor(absl::Milliseconds(1));
    if (rank != 2) error = Reduce(comm);
    rhCommAbort(comm);
    return error;
  });
  for (int rank = 0; rank < kWorld; ++rank) {
    const std::string output = OutputOf(ranks[static_cast<size_t>(rank)]);
    const auto where = AllOf(
        HasSubstr("rank 2 (pod p2) has not called number 5 (its last was number 4, all_reduce of "
                  "1000 values of type 7 with op 0"),
        HasSubstr("; the other 3 are in number 5, all_reduce of 1000 values"));
    if (rank != 2) {
      EXPECT_THAT(output, AllOf(HasSubstr("all_reduce number 6 (4000 bytes)"),
                                HasSubstr("rank 2 (pod p2): rhCommAbort was called")));
    } else {
      EXPECT_EQ(output, "");
    }
    EXPECT_THAT(ReadAll(folder_.Log(rank)),
                AllOf(HasSubstr("warning: the job makes no progress: "), where))
        << rank;

    const nlohmann::json flight =
        nlohmann::json::parse(ReadAll(folder_.Flight(rank)), nullptr, false);
    ASSERT_FALSE(flight.is_discarded()) << rank;
    EXPECT_EQ(flight["job"], "still");
    EXPECT_EQ(flight["rank"], rank);
    EXPECT_EQ(flight["transport"], GetParam());
    // The last report, which on a busy machine may say that a rank does not answer.
    EXPECT_EQ(flight["report"], LastReport(ReadAll(folder_.Log(rank))));
    EXPECT_THAT(flight["error"].get<std::string>(), HasSubstr("rhCommAbort was called"));
    const nlohmann::json& operations = flight["operations"];
    ASSERT_GE(operations.size(), 6U);
    for (size_t i = 0; i < operations.size(); ++i) {
      EXPECT_EQ(operations[i]["number"], i);
      EXPECT_EQ(operations[i]["collective"], "all_reduce");
      EXPECT_EQ(operations[i]["bytes"], 4000);
      if (i < 6) {
        EXPECT_EQ(operations[i]["state"], "done");
        EXPECT_GT(operations[i]["sent"], 0);
      }
    }
  }
}

// A chain of ranks, each of which waits for the next one; the last one is busy.
TEST_P(HangReporterTest, WhoWaitsThroughOthersIsNotEndedEither) {
  std::vector<Process> ranks = Fork([](rhComm_t comm, int rank) -> std::string {
    int value = 1;
    if (rank == kWorld - 1) {
      absl::SleepFor(absl::Seconds(9));
    } else if (rhRecv(&value, 1, rhInt32, rank + 1, comm, nullptr) != rhSuccess) {
      return rhGetLastError(comm);
    }
    ++value;
    if (rank > 0 && rhSend(&value, 1, rhInt32, rank - 1, comm, nullptr) != rhSuccess) {
      return rhGetLastError(comm);
    }
    rhCommDestroy(comm);
    return absl::StrCat(value);
  });
  for (int rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(OutputOf(ranks[static_cast<size_t>(rank)]), absl::StrCat(kWorld - rank + 1));
  }
}

// A rank that has left, and whose process has ended, is not one that does not answer.
TEST_P(HangReporterTest, WhoHasLeftDoesNotEndTheWaitForAnother) {
  std::vector<Process> ranks = Fork([](rhComm_t comm, int rank) -> std::string {
    int value = 7;
    if (rank == 1) {
      rhCommDestroy(comm);
      ::_exit(0);
    }
    if (rank == 3) {
      absl::SleepFor(absl::Seconds(9));
      for (const int peer : {0, 2}) rhSend(&value, 1, rhInt32, peer, comm, nullptr);
    } else {
      value = 0;
      if (rhRecv(&value, 1, rhInt32, 3, comm, nullptr) != rhSuccess) return rhGetLastError(comm);
    }
    rhCommDestroy(comm);
    return absl::StrCat(value);
  });
  for (const int rank : {0, 2, 3}) {
    EXPECT_EQ(OutputOf(ranks[static_cast<size_t>(rank)]), "7") << rank;
  }
  EXPECT_THAT(ReadAll(folder_.Log(0)), HasSubstr("rank 1 (pod p1) has left the communicator"));
}

// The file of rank 0 is a pipe without a reader: opening it blocks, as on a hanging file system.
TEST_P(HangReporterTest, AFileThatCannotBeWrittenHoldsUpNeitherTheNewsNorTheAbort) {
  const std::string draft = folder_.Flight(0) + ".part";
  ASSERT_EQ(::mkfifo(draft.c_str(), 0600), 0);
  std::vector<Process> ranks = Fork([](rhComm_t comm, int rank) {
    // Before an abort all must have got through the start.
    std::string error = Reduce(comm);
    if (rank != 1 && error.empty()) error = Reduce(comm);
    rhCommAbort(comm);
    return error;
  });
  for (int rank = 0; rank < kWorld; ++rank) {
    const std::string output = OutputOf(ranks[static_cast<size_t>(rank)]);
    if (rank != 1) {
      EXPECT_THAT(output, HasSubstr("rank 1 (pod p1): rhCommAbort was called")) << rank;
    }
  }
  ::unlink(draft.c_str());
}

TEST_P(HangReporterTest, WhoIsStoppedIsNamedByAll) {
  for (const int victim : {0, 2}) {
    std::vector<Process> ranks = Fork([victim](rhComm_t comm, int rank) {
      std::atomic<int> done = 0;
      std::thread stop([&] {
        if (rank != victim) return;
        while (done < 5) absl::SleepFor(absl::Milliseconds(1));
        ::raise(SIGSTOP);
      });
      std::string error;
      for (int i = 0; i < 100000000 && error.empty(); ++i) {
        error = Reduce(comm);
        ++done;
      }
      stop.join();
      return error;
    });
    const std::string stopped =
        absl::StrCat("rank ", victim, " (pod p", victim, ") does not answer");
    for (int rank = 0; rank < kWorld; ++rank) {
      if (rank == victim) continue;
      EXPECT_THAT(OutputOf(ranks[static_cast<size_t>(rank)]),
                  AllOf(HasSubstr(stopped), HasSubstr(" in number ")))
          << rank;
      EXPECT_THAT(ReadAll(folder_.Log(rank)),
                  AllOf(HasSubstr("warning: the job makes no progress: "), HasSubstr(stopped)))
          << rank;
    }
    // Finally it gets the error, too.
    Process& late = ranks[static_cast<size_t>(victim)];
    ::kill(late.pid(), SIGCONT);
    EXPECT_NE(OutputOf(late), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, HangReporterTest, ::testing::Values("tcp", "shm"));

}  // namespace
}  // namespace railhead

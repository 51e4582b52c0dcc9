// SPDX-License-Identifier: Apache-2.0
//
// Calls for which memory runs out, at any of their allocations: they fail on all ranks. And memory
// that must not grow. This program has its own operator new.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/handle.h"
#include "runtime/testing/ranks.h"

namespace {

// Number of allocations of this thread until one fails, once; 0: none does.
thread_local int left = 0;

// What the process has allocated and not freed.
std::atomic<int64_t> allocated_bytes = 0;

}  // namespace

void* operator new(size_t size) {
  if (left > 0 && --left == 0) throw std::bad_alloc();
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  allocated_bytes += static_cast<int64_t>(::malloc_usable_size(memory));
  return memory;
}
void* operator new[](size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept {
  allocated_bytes -= static_cast<int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}
void operator delete[](void* memory) noexcept { operator delete(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { operator delete(memory); }
void operator delete[](void* memory, size_t /*size*/) noexcept { operator delete(memory); }

namespace railhead {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::Eq;

class OutOfMemoryTest : public ::testing::TestWithParam<std::string> {
 protected:
  OutOfMemoryTest() {
    ::setenv("RAILHEAD_TRANSPORT", GetParam().c_str(), 1);
    ::setenv("RAILHEAD_METRICS_PORT", "0", 1);
    ::setenv("RAILHEAD_LOG", "error", 1);
    ::setenv("RAILHEAD_TIMEOUT_SECONDS", "60", 1);
  }

  using Call = std::function<rhResult_t(rhComm_t comm, float* values)>;
  static constexpr size_t kValues = 100000;

  struct Outcome {
    std::vector<std::string> texts;  // by rank
    bool failed = false;             // an allocation
    absl::Duration took;
  };

  // Runs the call on two ranks, and then a barrier on those on which it has succeeded. On rank 1
  // the `nth` allocation of the call fails, if there are as many.
  static Outcome Run(int nth, const Call& call) {
    rhUniqueId id;
    EXPECT_EQ(rhGetUniqueId(&id), rhSuccess);
    Outcome outcome;
    const absl::Time start = absl::Now();
    outcome.texts = testing::RunRanks(2, [&](int rank) -> std::string {
      std::vector<float> values(kValues);
      rhComm_t comm = nullptr;
      if (rhCommInitRank(&comm, 2, id, rank) != rhSuccess) return rhGetLastError(nullptr);
      if (rank == 1) left = nth;
      rhResult_t result = call(comm, values.data());
      if (rank == 1) outcome.failed = left == 0;
      left = 0;
      if (result == rhSuccess) result = rhBarrier(comm, nullptr);
      std::string text = result == rhSuccess ? "done"
                         : result == rhSystemError
                             ? rhGetLastError(comm)
                             : absl::StrCat("result ", result, ": ", rhGetLastError(comm));
      // An abort would end the barrier of rank 0.
      result == rhSuccess ? rhCommDestroy(comm) : rhCommAbort(comm);
      return text;
    });
    outcome.took = absl::Now() - start;
    return outcome;
  }

  // Expects that each failure is reported by both ranks, long before the timeout of 60 s.
  static void FailEverywhere(const Call& call) {
    const absl::Time end = absl::Now() + absl::Seconds(50);
    int failures = 0;
    int nth = 1;
    // In shared memory a call that need not wait for long allocates nothing.
    Outcome outcome = Run(nth, call);
    while (!outcome.failed && absl::Now() < end) outcome = Run(nth, call);
    for (; outcome.failed; outcome = Run(++nth, call)) {
      // Some allocations need not succeed, as those of std::stable_sort.
      ASSERT_THAT(outcome.texts, AnyOf(Each(Eq("done")), Each(EndsWith(": out of memory"))))
          << "allocation " << nth;
      failures += outcome.texts.front() == "done" ? 0 : 1;
      ASSERT_LT(outcome.took, absl::Seconds(50)) << "allocation " << nth;
    }
    EXPECT_GT(failures, 0);
  }
};

TEST_P(OutOfMemoryTest, AFailureIsToldToAllRanks) {
  FailEverywhere([](rhComm_t comm, float* values) {
    return rhAllReduce(values, values, kValues, rhFloat32, rhSum, comm, nullptr);
  });
}

// Memory that the call needs before it begins on the network.
TEST_P(OutOfMemoryTest, AlsoBeforeTheRanksMeet) {
  FailEverywhere([](rhComm_t comm, float* values) {
    return rhAlltoAll(values, values, kValues / 2, rhFloat32, comm, nullptr);
  });
}

// A program may go on with a stream whose calls fail, and look at requests only, or at nothing.
TEST(StreamMemoryTest, FailuresTakeNoMore) {
  constexpr int kCalls = 30'000;
  constexpr int64_t kMostBytes = 16 << 10;
  for (const int failing : {1, 2, 7}) {  // one of so many calls
    for (const bool with_requests : {false, true}) {
      for (const int synchronizing : {100, kCalls}) {
        rhStream_t stream = nullptr;
        ASSERT_EQ(rhStreamCreate(&stream), rhSuccess);
        const int64_t before = allocated_bytes;
        for (int call = 1; call <= kCalls; ++call) {
          const rhResult_t result = call % failing == 0 ? rhRemoteError : rhSuccess;
          stream->stream->Add(nullptr, [result](const absl::Status&) { return result; });
          if (call % 10 != 0) continue;
          rhRequest_t request = nullptr;
          ASSERT_EQ(rhStreamRequest(stream, &request), rhSuccess);
          if (with_requests) {
            ASSERT_EQ(rhRequestWait(request), rhRemoteError);
          }
          int done = 0;
          while (done == 0) rhRequestTest(request, &done);
          rhRequestFree(request);
          if (call % synchronizing == 0) {
            ASSERT_EQ(rhStreamSynchronize(stream), rhRemoteError);
          }
        }
        EXPECT_LT(allocated_bytes - before, kMostBytes)
            << "one of " << failing << " calls fails, one of " << synchronizing
            << " is followed by a synchronization";
        rhStreamDestroy(stream);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, OutOfMemoryTest, ::testing::Values("tcp", "shm"));

}  // namespace
}  // namespace railhead

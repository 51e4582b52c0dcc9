// SPDX-License-Identifier: Apache-2.0
//
// The failures that requests and synchronizations of a stream report.
#include "runtime/comm/api/stream.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/handle.h"

namespace railhead::comm {
namespace {

// A stream, and what it should report: from a list of all results.
class Checked {
 public:
  Checked() { rhStreamCreate(&stream_); }
  ~Checked() {
    for (const Request& request : requests_) rhRequestFree(request.handle);
    rhStreamDestroy(stream_);
  }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  void Add(rhResult_t result) {
    results_.push_back(result);
    stream_->stream->Add(this, [result](const absl::Status&) { return result; });
  }
  std::string Synchronize() {
    const rhResult_t expected = First(told_, results_.size());
    told_ = results_.size();
    return Compare(rhStreamSynchronize(stream_), expected);
  }
  void MakeRequest() {
    Request& request = requests_.emplace_back(Request{nullptr, told_, results_.size()});
    rhStreamRequest(stream_, &request.handle);
  }
  size_t requests() const { return requests_.size(); }
  std::string Wait(size_t index) const {
    const Request& request = requests_[index];
    return Compare(rhRequestWait(request.handle), First(request.since, request.last));
  }
  void Free(size_t index) {
    rhRequestWait(requests_[index].handle);
    rhRequestFree(requests_[index].handle);
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
  }

 private:
  struct Request {
    rhRequest_t handle;
    size_t since;
    size_t last;
  };

  rhResult_t First(size_t since, size_t last) const {
    for (size_t i = since; i < last; ++i) {
      if (results_[i] != rhSuccess) return results_[i];
    }
    return rhSuccess;
  }
  static std::string Compare(rhResult_t got, rhResult_t expected) {
    return got == expected ? "" : absl::StrCat("got ", got, ", not ", expected);
  }

  rhStream_t stream_ = nullptr;
  std::vector<rhResult_t> results_;
  std::vector<Request> requests_;
  size_t told_ = 0;
};

TEST(StreamTest, RequestsReportTheFirstFailureSinceTheLastSynchronization) {
  const char* const wanted = std::getenv("RAILHEAD_SEEDS");
  const int seeds = wanted != nullptr ? std::atoi(wanted) : 60;
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const unsigned failing = 1 + random() % 8;  // one of so many calls
    const unsigned synchronizing = 1 + random() % 40;
    Checked stream;
    for (int step = 0; step < 300; ++step) {
      std::string wrong;
      const size_t chosen = stream.requests() > 0 ? random() % stream.requests() : 0;
      switch (random() % 6) {
        case 0:
          stream.MakeRequest();
          break;
        case 1:
          if (stream.requests() > 0) wrong = stream.Wait(chosen);
          break;
        case 2:
          if (stream.requests() > 0) stream.Free(chosen);
          break;
        case 3:
          if (random() % synchronizing == 0) wrong = stream.Synchronize();
          break;
        default:
          stream.Add(random() % failing == 0 ? static_cast<rhResult_t>(1 + random() % 5)
                                             : rhSuccess);
      }
      ASSERT_EQ(wrong, "") << "seed " << seed << ", step " << step;
    }
  }
}

// As the garbage collector of a forked Python worker does, while threads of the parent, which the
// child does not have, may hold any lock.
TEST(StreamTest, AForkedChildMayFreeRequests) {
  rhStream_t stream = nullptr;
  ASSERT_EQ(rhStreamCreate(&stream), rhSuccess);
  std::atomic<bool> ended{false};
  std::thread adding([&] {
    while (!ended) {
      stream->stream->Add(nullptr, [](const absl::Status&) { return rhSuccess; });
      rhStreamSynchronize(stream);
    }
  });
  int status = 0;
  for (int i = 0; i < 200 && status == 0; ++i) {
    rhRequest_t request = nullptr;
    rhStreamRequest(stream, &request);
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(30);
      rhRequestFree(request);
      ::_exit(0);
    }
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    rhRequestFree(request);
  }
  EXPECT_EQ(status, 0);
  ended = true;
  adding.join();
  rhStreamDestroy(stream);
}

}  // namespace
}  // namespace railhead::comm

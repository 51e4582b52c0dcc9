// SPDX-License-Identifier: Apache-2.0
//
// A rank of a test with the stock NCCL: makes a communicator, calls, and checks every element.
//
// usage: rank LIBNCCL ID RANK RANKS DEVICE CALLS BYTES TYPE ROUNDS|UNTIL [HOLD]
//
// ID is a file that rank 0 creates with NCCL's unique id. CALLS and BYTES are lists with commas:
// each call is made with each number of bytes, in ROUNDS rounds; or, if UNTIL is a path, in rounds
// until rank 0 finds that file. With HOLD, prints "idle" after the last round, and keeps the
// communicator until it finds that file. Prints "CALL BYTES TYPE: right" at the end of each, and
// "round N" after each round of all calls. If NCCL reports an asynchronous error, aborts the
// communicator, prints both, and exits with 3; exits with 1 for a wrong element or another error.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/nccl/stock/rank/calls.h"
#include "tests/nccl/stock/rank/elements.h"
#include "tests/nccl/stock/rank/nccl.h"

// Functions of cuda/.
extern "C" {
int cudaSetDevice(int);
int cudaMalloc(void**, size_t);
int cudaFree(void*);
int cudaStreamCreate(void**);
int cudaStreamDestroy(void*);
int cudaStreamQuery(void*);
int cudaStreamSynchronize(void*);
}

namespace railhead::stock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAborted = 3;
constexpr auto kPause = std::chrono::microseconds(200);

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

UniqueId ReadId(const std::string& path) {
  UniqueId id = {};
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::ifstream(path, std::ios::binary).read(id.bytes, sizeof id.bytes);
  return id;
}

void WriteId(const std::string& path, const UniqueId& id) {
  const std::string draft = path + ".draft";
  std::ofstream(draft, std::ios::binary).write(id.bytes, sizeof id.bytes);
  std::filesystem::rename(draft, path);
}

class Buffer {
 public:
  explicit Buffer(size_t bytes) { cudaMalloc(&memory_, bytes + 16); }
  ~Buffer() { cudaFree(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  char* get() const { return static_cast<char*>(memory_); }

 private:
  void* memory_ = nullptr;
};

class Rank {
 public:
  Rank(const std::string& library, const std::string& id_file, int rank, int ranks, int device,
       const ElementType& type)
      : nccl_(OpenNccl(library)), type_(type), rank_(rank), ranks_(ranks) {
    cudaSetDevice(device);
    cudaStreamCreate(&stream_);
    UniqueId id = {};
    if (rank == 0) {
      Check(nccl_.GetUniqueId(&id), "ncclGetUniqueId");
      WriteId(id_file, id);
    } else {
      id = ReadId(id_file);
    }
    Check(nccl_.CommInitRank(&comm_, ranks, id, rank), "ncclCommInitRank");
    std::printf("communicator of %d ranks\n", ranks);
  }

  void Finish() {
    if (nccl_.CommFinalize != nullptr) {
      Check(nccl_.CommFinalize(comm_), "ncclCommFinalize");
    }
    Check(nccl_.CommDestroy(comm_), "ncclCommDestroy");
    cudaStreamDestroy(stream_);
    std::printf(wrong_ == 0 ? "end\n" : "wrong elements: %zu\n", wrong_);
  }

  void Make(const Call& call, size_t bytes, int round) {
    const size_t count = bytes / type_.bytes, all = count * static_cast<size_t>(ranks_);
    const Buffer input(all * type_.bytes), output(all * type_.bytes);
    for (size_t i = 0; i < all; ++i) {
      type_.Put(input.get(), i, call.input(rank_, round, i));
      type_.Put(output.get(), i, kUntouched);
    }
    const Use use = {nccl_,  type_, comm_, stream_,     rank_,
                     ranks_, round, count, input.get(), output.get()};
    Check(call.start(use), call.name.c_str());
    Wait();
    for (size_t i = 0; i < all; ++i) {
      const std::optional<double> expected = call.expected(use, i);
      if (!expected) continue;
      const double got = type_.Get(output.get(), i);
      if (std::fabs(got - *expected) <= (call.rounds ? type_.tolerance : 0)) continue;
      if (wrong_++ < 3) {
        std::printf("%s %zu %s: element %zu is %g, not %g, in round %d\n", call.name.c_str(), bytes,
                    type_.name.c_str(), i, got, *expected, round);
      }
    }
  }

  // Returns whether rank 0 wants to end, by a collective.
  bool Agree(bool end) {
    const ElementType& type = TypeOf("i32");
    const Buffer input(type.bytes), output(type.bytes);
    type.Put(input.get(), 0, rank_ == 0 && end ? 1 : 0);
    Check(nccl_.AllReduce(input.get(), output.get(), 1, type.number, kNcclMax, comm_, stream_),
          "ncclAllReduce");
    Wait();
    return type.Get(output.get(), 0) != 0;
  }

  size_t wrong() const { return wrong_; }

 private:
  void Check(int result, const char* what) {
    if (result == 0) return;
    std::printf("%s: result %d: %s\n", what, result, nccl_.GetLastError(comm_));
    std::_Exit(1);
  }

  // Waits until the stream is idle, or NCCL has an asynchronous error.
  void Wait() {
    const Clock::time_point begin = Clock::now();
    const auto seconds = [begin] {
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    while (cudaStreamQuery(stream_) != 0) {
      int error = 0;
      Check(nccl_.CommGetAsyncError(comm_, &error), "ncclCommGetAsyncError");
      if (error != 0 && error != kInProgress) {
        std::printf("asynchronous error %d after %.2f s\n", error, seconds());
        Check(nccl_.CommAbort(comm_), "ncclCommAbort");
        cudaStreamSynchronize(stream_);
        std::printf("aborted after %.2f s\n", seconds());
        std::_Exit(kAborted);
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  const Nccl nccl_;
  const ElementType& type_;
  const int rank_, ranks_;
  CommHandle comm_ = nullptr;
  StreamHandle stream_ = nullptr;
  size_t wrong_ = 0;
};

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() != 9 && arguments.size() != 10) {
    std::fprintf(stderr,
                 "usage: rank LIBNCCL ID RANK RANKS DEVICE CALLS BYTES TYPE ROUNDS|UNTIL [HOLD]\n");
    return 2;
  }
  Rank rank(arguments[0], arguments[1], std::stoi(arguments[2]), std::stoi(arguments[3]),
            std::stoi(arguments[4]), TypeOf(arguments[7]));
  const std::string& end = arguments[8];
  const bool until = end.starts_with('/');
  const auto all = [&](auto body) {
    for (const std::string& call : Split(arguments[5])) {
      for (const std::string& bytes : Split(arguments[6])) body(CallOf(call), std::stoull(bytes));
    }
  };
  if (until) {
    int round = 0;
    do {
      all([&](const Call& call, size_t bytes) { rank.Make(call, bytes, round); });
      std::printf("round %d\n", ++round);
    } while (!rank.Agree(std::filesystem::exists(end)) && rank.wrong() == 0);
  } else {
    all([&](const Call& call, size_t bytes) {
      for (int round = 0; round < std::stoi(end); ++round) rank.Make(call, bytes, round);
      if (rank.wrong() == 0) {
        std::printf("%s %zu %s: right\n", call.name.c_str(), bytes, arguments[7].c_str());
      }
    });
  }
  if (arguments.size() > 9) {
    std::printf("idle\n");
    while (!std::filesystem::exists(arguments[9])) std::this_thread::sleep_for(kPause);
  }
  rank.Finish();
  return rank.wrong() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace railhead::stock

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return railhead::stock::Main({arguments + 1, arguments + count});
}

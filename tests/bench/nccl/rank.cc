// SPDX-License-Identifier: Apache-2.0
//
// A rank of the benchmark with the stock NCCL: makes a communicator and all-reduces on request.
//
// usage: rank LIBNCCL ID RANK RANKS
//
// ID is a file that rank 0 creates with NCCL's unique id. Prints "ready". Each line "BYTES COUNT"
// of standard input is COUNT all-reduces of so many bytes, one after the other; the answer is the
// line "SECONDS CPU": the time of all, and the CPU time of this process meanwhile. Ends with its
// input. A result of NCCL that is no success ends the process.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/nccl/stock/rank/nccl.h"

// Functions of cuda/.
extern "C" {
int cudaSetDevice(int);
int cudaMalloc(void**, size_t);
int cudaFree(void*);
int cudaStreamCreate(void**);
int cudaStreamSynchronize(void*);
}

namespace railhead::stock {
namespace {

constexpr int kFloat32 = 7;  // of ncclDataType_t

void Check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: result %d\n", what, result);
  std::_Exit(1);
}

UniqueId IdOf(const Nccl& nccl, const std::string& path, int rank) {
  UniqueId id = {};
  if (rank == 0) {
    Check(nccl.GetUniqueId(&id), "ncclGetUniqueId");
    std::ofstream(path + ".draft", std::ios::binary).write(id.bytes, sizeof id.bytes);
    std::filesystem::rename(path + ".draft", path);
    return id;
  }
  while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::ifstream(path, std::ios::binary).read(id.bytes, sizeof id.bytes);
  return id;
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int Main(const std::string& library, const std::string& id_file, int rank, int ranks) {
  const Nccl nccl = OpenNccl(library);
  cudaSetDevice(0);
  StreamHandle stream = nullptr;
  cudaStreamCreate(&stream);
  CommHandle comm = nullptr;
  Check(nccl.CommInitRank(&comm, ranks, IdOf(nccl, id_file, rank), rank), "ncclCommInitRank");
  std::printf("ready\n");
  size_t bytes = 0;
  int count = 0;
  while (std::scanf("%zu %d", &bytes, &count) == 2) {
    void* input = nullptr;
    void* output = nullptr;
    Check(cudaMalloc(&input, bytes), "cudaMalloc");
    Check(cudaMalloc(&output, bytes), "cudaMalloc");
    const auto reduce = [&](size_t elements) {
      Check(nccl.AllReduce(input, output, elements, kFloat32, kNcclSum, comm, stream),
            "ncclAllReduce");
      Check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    };
    reduce(1);  // the ranks begin together
    const double cpu = CpuSeconds();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) reduce(bytes / sizeof(float));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%.9f %.9f\n", seconds.count(), CpuSeconds() - cpu);
    cudaFree(input);
    cudaFree(output);
  }
  Check(nccl.CommFinalize(comm), "ncclCommFinalize");
  Check(nccl.CommDestroy(comm), "ncclCommDestroy");
  return 0;
}

}  // namespace
}  // namespace railhead::stock

int main(int count, char** arguments) {
  if (count != 5) {
    std::fprintf(stderr, "usage: rank LIBNCCL ID RANK RANKS\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return railhead::stock::Main(arguments[1], arguments[2], std::atoi(arguments[3]),
                               std::atoi(arguments[4]));
}

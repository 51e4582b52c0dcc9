// SPDX-License-Identifier: Apache-2.0
//
// Functions and objects of libmpi.so.40 as a program sees them that is linked with it, under the
// names of Open MPI's mpi.h; and a job of several ranks in one test. Used by tests only.
//
//   EXPECT_EXIT(RunRanks(2, [] { EXPECT_EQ(MPI_Barrier(kWorld), kSuccess); }),
//               testing::ExitedWithCode(0), "");
#ifndef RAILHEAD_MPI_TESTING_PROGRAM_H_
#define RAILHEAD_MPI_TESTING_PROGRAM_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "mpi/launcher_variables.h"
#include "mpi/objects.h"

// MPI_Status of Open MPI.
struct MpiStatus {
  int source;
  int tag;
  int error;
  int cancelled;
  size_t bytes;
};

// NOLINTBEGIN(readability-identifier-naming, readability-redundant-declaration): MPI's names.
extern "C" {
using railhead::mpi::Communicator;
using railhead::mpi::Datatype;
using railhead::mpi::ErrorHandler;
using railhead::mpi::Operator;
using railhead::mpi::Request;

extern Communicator ompi_mpi_comm_world;
extern Communicator ompi_mpi_comm_self;
extern Communicator ompi_mpi_comm_null;
extern ErrorHandler ompi_mpi_errors_return;
extern Datatype ompi_mpi_byte;
extern Datatype ompi_mpi_int;
extern Operator ompi_mpi_op_sum;
extern Request ompi_request_null;

using MpiCopyAttribute = int (*)(Communicator*, int, void*, void*, void*, int*);
using MpiDeleteAttribute = int (*)(Communicator*, int, void*, void*);

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize();
int MPI_Abort(Communicator* comm, int code);
int MPI_Comm_rank(Communicator* comm, int* rank);
int MPI_Comm_dup(Communicator* comm, Communicator** made);
int MPI_Comm_split(Communicator* comm, int color, int key, Communicator** made);
int MPI_Comm_free(Communicator** comm);
int MPI_Comm_compare(Communicator* one, Communicator* other, int* result);
int MPI_Comm_set_errhandler(Communicator* comm, ErrorHandler* handler);
int MPI_Comm_create_keyval(MpiCopyAttribute copy, MpiDeleteAttribute remove, int* key, void* extra);
int MPI_Comm_free_keyval(int* key);
int MPI_Comm_set_attr(Communicator* comm, int key, void* value);
int MPI_Comm_get_attr(Communicator* comm, int key, void* value, int* flag);
int MPI_Comm_delete_attr(Communicator* comm, int key);
int MPI_Error_string(int error, char* text, int* length);
int MPI_Type_contiguous(int count, Datatype* type, Datatype** made);
int MPI_Type_free(Datatype** type);
int MPI_Type_size(Datatype* type, int* bytes);
int MPI_Get_count(const MpiStatus* status, Datatype* type, int* count);
int MPI_Isend(const void* buffer, int count, Datatype* type, int to, int tag, Communicator* comm,
              Request** request);
int MPI_Irecv(void* buffer, int count, Datatype* type, int from, int tag, Communicator* comm,
              Request** request);
int MPI_Wait(Request** request, MpiStatus* status);
int MPI_Test(Request** request, int* flag, MpiStatus* status);
int MPI_Waitall(int count, Request** requests, MpiStatus* statuses);
int MPI_Waitany(int count, Request** requests, int* index, MpiStatus* status);
int MPI_Testall(int count, Request** requests, int* flag, MpiStatus* statuses);
int MPI_Sendrecv(const void* send, int send_count, Datatype* send_type, int to, int send_tag,
                 void* receive, int count, Datatype* type, int from, int tag, Communicator* comm,
                 MpiStatus* status);
int MPI_Allreduce(const void* send, void* receive, int count, Datatype* type, Operator* op,
                  Communicator* comm);
int MPI_Reduce(const void* send, void* receive, int count, Datatype* type, Operator* op, int root,
               Communicator* comm);
int MPI_Reduce_scatter_block(const void* send, void* receive, int count, Datatype* type,
                             Operator* op, Communicator* comm);
int MPI_Allgather(const void* send, int send_count, Datatype* send_type, void* receive, int count,
                  Datatype* type, Communicator* comm);
int MPI_Allgatherv(const void* send, int send_count, Datatype* send_type, void* receive,
                   const int* counts, const int* displacements, Datatype* type, Communicator* comm);
int MPI_Gather(const void* send, int send_count, Datatype* send_type, void* receive, int count,
               Datatype* type, int root, Communicator* comm);
int MPI_Gatherv(const void* send, int send_count, Datatype* send_type, void* receive,
                const int* counts, const int* displacements, Datatype* type, int root,
                Communicator* comm);
int MPI_Scatter(const void* send, int send_count, Datatype* send_type, void* receive, int count,
                Datatype* type, int root, Communicator* comm);
int MPI_Scatterv(const void* send, const int* counts, const int* displacements, Datatype* send_type,
                 void* receive, int count, Datatype* type, int root, Communicator* comm);
int MPI_Alltoall(const void* send, int send_count, Datatype* send_type, void* receive, int count,
                 Datatype* type, Communicator* comm);
int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_displacements,
                  Datatype* send_type, void* receive, const int* counts, const int* displacements,
                  Datatype* type, Communicator* comm);
int MPI_Barrier(Communicator* comm);
int MPI_Bcast(void* buffer, int count, Datatype* type, int root, Communicator* comm);
}  // extern "C"
// NOLINTEND(readability-identifier-naming, readability-redundant-declaration)

namespace railhead::mpi {

inline Communicator* const kWorld = &ompi_mpi_comm_world;
inline Communicator* const kSelf = &ompi_mpi_comm_self;
inline Datatype* const kByte = &ompi_mpi_byte;
inline Datatype* const kInt = &ompi_mpi_int;
inline Operator* const kSum = &ompi_mpi_op_sum;

// Starts MPI; errors of all communicators return.
inline void StartMpi() {
  ASSERT_EQ(MPI_Init(nullptr, nullptr), kSuccess);
  for (Communicator* comm : {kWorld, kSelf}) {
    ASSERT_EQ(MPI_Comm_set_errhandler(comm, &ompi_mpi_errors_return), kSuccess);
  }
}

inline int RankInWorld() {
  int rank = -1;
  MPI_Comm_rank(kWorld, &rank);
  return rank;
}

// Takes the port for this process and its forked children, as the runtime's tests do
// (runtime/testing/ranks.h). Returns false if another test has it.
inline bool ReservePort(int port) {
  const std::string name = "railhead-test-port-" + std::to_string(port);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int reservation = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(reservation, reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  close(reservation);
  return false;
}

// Below those that the kernel gives to whoever asks for any port: nobody takes it before rank 0
// listens there.
inline std::string UnusedPort() {
  constexpr int kFirst = 12000;
  constexpr int kCount = 8000;  // tests/kube take theirs from 20000 on
  for (int i = 0; i < kCount; ++i) {
    const int port = kFirst + (getpid() * 64 + i) % kCount;
    if (!ReservePort(port)) continue;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    const bool unused =
        bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    close(listener);
    if (unused) return std::to_string(port);
  }
  std::fprintf(stderr, "no unused port\n");
  std::_Exit(EXIT_FAILURE);
}

// GoogleTest does not print expectations that fail in the process of a death test.
inline void PrintFailures() {
  const testing::TestResult& result =
      *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (part.failed()) {
      std::fprintf(stderr, "rank %s: %s:%d: %s\n", std::getenv("RANK"), part.file_name(),
                   part.line_number(), part.message());
    }
  }
}

// Runs `body` on `count` ranks of one job, each a process where MPI has started, and exits: with 0
// if each rank's expectations hold. For EXPECT_EXIT with the "threadsafe" style, so that the ranks
// come from a process without threads.
template <typename Body>
[[noreturn]] void RunRanks(int count, Body body, const char* transport = "shm") {
  setenv("WORLD_SIZE", std::to_string(count).c_str(), 1);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", UnusedPort().c_str(), 1);
  setenv("RAILHEAD_TRANSPORT", transport, 1);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < count; ++rank) {
    ranks.push_back(fork());
    if (ranks.back() != 0) continue;
    setenv("RANK", std::to_string(rank).c_str(), 1);
    StartMpi();
    if (!testing::Test::HasFailure()) body();
    if (!testing::Test::HasFailure()) MPI_Finalize();
    PrintFailures();
    std::exit(testing::Test::HasFailure() ? EXIT_FAILURE : EXIT_SUCCESS);
  }
  int code = EXIT_SUCCESS;
  for (const pid_t rank : ranks) {
    int status = 0;
    waitpid(rank, &status, 0);
    if (WIFSIGNALED(status)) std::fprintf(stderr, "signal %d ended a rank\n", WTERMSIG(status));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) code = EXIT_FAILURE;
  }
  std::_Exit(code);
}

// A program of one rank, without a launcher. All tests of a process share the one start of MPI.
class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    for (const char* name : railhead::mpi::kLauncherVariables) unsetenv(name);
  }
};

// The same, with MPI started.
class RunningProgramTest : public ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    StartMpi();
  }
};

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_TESTING_PROGRAM_H_

// SPDX-License-Identifier: Apache-2.0
// The rest of MPI: it is there so that programs can be loaded, and fails where it is called.
#include <cstdio>
#include <cstdlib>

#include "mpi/calls.h"
#include "mpi/export.h"
#include "mpi/objects.h"

namespace railhead::mpi {
namespace {

int NotServed(const char* name) {
  return Report(
      name, nullptr,
      {kErrorUnsupported,
       "Railhead's MPI library does not have it; use Open MPI or MPICH for this program"});
}

// It would return a handle, so it cannot return an error.
[[noreturn]] void NoHandle(const char* name) {
  std::fprintf(stderr, "railhead: %s: handles of Fortran are not served\n", name);
  std::fflush(stderr);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): definitions.
extern "C" {
#define X(name)                                                             \
  RAILHEAD_MPI_VISIBLE int MPI_##name() { return NotServed("MPI_" #name); } \
  RAILHEAD_MPI_VISIBLE int MPIABI_##name() { return NotServed("MPI_" #name); }
#include "mpi/abi/unserved_functions.inc"
#undef X

#define X(type)                                                                       \
  RAILHEAD_MPI_VISIBLE void* MPI_##type##_f2c() { NoHandle("MPI_" #type "_f2c"); }    \
  RAILHEAD_MPI_VISIBLE void* MPIABI_##type##_f2c() { NoHandle("MPI_" #type "_f2c"); } \
  RAILHEAD_MPI_VISIBLE int MPI_##type##_c2f() { NoHandle("MPI_" #type "_c2f"); }      \
  RAILHEAD_MPI_VISIBLE int MPIABI_##type##_c2f() { NoHandle("MPI_" #type "_c2f"); }
X(Comm)
X(Type)
X(Group)
X(Request)
X(File)
X(Win)
X(Op)
X(Info)
X(Errhandler)
X(Message)
#undef X

// Queries for support of GPU memory, which the library lacks here. MPItrampoline looks these up.
#define X(name)                                        \
  RAILHEAD_MPI_VISIBLE int MPIX_##name() { return 0; } \
  RAILHEAD_MPI_VISIBLE int MPIXABI_##name() { return 0; }
X(Query_cuda_support)
X(Query_hip_support)
X(Query_rocm_support)
X(Query_ze_support)
#undef X
}  // extern "C"
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace railhead::mpi

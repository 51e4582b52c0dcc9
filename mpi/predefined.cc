// SPDX-License-Identifier: Apache-2.0
#include "mpi/predefined.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "mpi/export.h"

// The objects that MPI predefines, under the names that they have in Open MPI's libmpi.so.40, and
// the constants of MPItrampoline's interface, which are their addresses. Both interfaces get the
// same numbers and handles.

namespace railhead::mpi {
namespace {

// As large as in Open MPI: a program that is linked with the symbol may have a copy of that size.
template <typename T, size_t kBytes>
struct Sized {
  T object;
  std::array<char, kBytes - sizeof(T)> rest;
};

}  // namespace
}  // namespace railhead::mpi

// NOLINTBEGIN: names and forms are those of the interfaces.
using namespace railhead::mpi;
extern "C" {
#define X(symbol, made)                                    \
  extern RAILHEAD_MPI_VISIBLE Sized<Datatype, 512> symbol; \
  Sized<Datatype, 512> symbol = {made, {}};
#include "mpi/abi/datatypes.inc"
#undef X
#define X(symbol, operation)                                \
  extern RAILHEAD_MPI_VISIBLE Sized<Operator, 2048> symbol; \
  Sized<Operator, 2048> symbol = {{operation}, {}};
#include "mpi/abi/operators.inc"
#undef X
#define OBJECT(type, bytes, symbol, ...)                 \
  extern RAILHEAD_MPI_VISIBLE Sized<type, bytes> symbol; \
  Sized<type, bytes> symbol = {{__VA_ARGS__}, {}};
OBJECT(Communicator, 512, ompi_mpi_comm_world)
OBJECT(Communicator, 512, ompi_mpi_comm_self)
OBJECT(Communicator, 512, ompi_mpi_comm_null)
OBJECT(Request, 256, ompi_request_null)
OBJECT(ErrorHandler, 1024, ompi_mpi_errors_return, true)
OBJECT(ErrorHandler, 1024, ompi_mpi_errors_are_fatal)
OBJECT(ErrorHandler, 1024, ompi_mpi_errhandler_null)
OBJECT(Unserved, 256, ompi_mpi_group_null)
OBJECT(Unserved, 256, ompi_mpi_group_empty)
OBJECT(Unserved, 256, ompi_mpi_info_null)
OBJECT(Unserved, 256, ompi_mpi_info_env)
OBJECT(Unserved, 256, ompi_message_null)
OBJECT(Unserved, 256, ompi_message_no_proc)
OBJECT(Unserved, 512, ompi_mpi_win_null)
OBJECT(Unserved, 1536, ompi_mpi_file_null)
#undef OBJECT

// What MPItrampoline reads: the version of its interface, and a variable for each constant.
#define CONSTANT(type, symbol, ...)              \
  extern RAILHEAD_MPI_VISIBLE type const symbol; \
  type const symbol = __VA_ARGS__;
CONSTANT(int, mpiabi_version_major, 2)
CONSTANT(int, mpiabi_version_minor, 10)
CONSTANT(int, mpiabi_version_patch, 0)
CONSTANT(int, mpiwrapper_version_major, 2)
CONSTANT(int, mpiwrapper_version_minor, 11)
CONSTANT(int, mpiwrapper_version_patch, 0)
#define X(name, value) CONSTANT(int, MPIABI_##name, value)
#include "mpi/abi/integers.inc"
#undef X
#define X(name, symbol) CONSTANT(void*, MPIABI_##name, &symbol)
#include "mpi/abi/handles.inc"
#undef X
#define X(name) CONSTANT(void*, MPIABI_##name, nullptr)
X(ARGV_NULL)
X(ARGVS_NULL)
X(ERRCODES_IGNORE)
X(CONVERSION_FN_NULL)
X(F_STATUS_IGNORE)
X(F_STATUSES_IGNORE)
X(STATUS_IGNORE)
X(STATUSES_IGNORE)
#undef X
// Functions of attributes, which Open MPI's header gives as constants too. The first parameter is
// the handle of a communicator, a type or a window: see `object`. The empty ones are MPI-1's.
#define X(object)                                                                                  \
  RAILHEAD_MPI_VISIBLE int OMPI_C_MPI_##object##NULL_COPY_FN(void*, int, void*, void*, void*,      \
                                                             int* flag) {                          \
    *flag = 0;                                                                                     \
    return 0;                                                                                      \
  }                                                                                                \
  RAILHEAD_MPI_VISIBLE int OMPI_C_MPI_##object##DUP_FN(void*, int, void*, void* value, void* copy, \
                                                       int* flag) {                                \
    *static_cast<void**>(copy) = value;                                                            \
    *flag = 1;                                                                                     \
    return 0;                                                                                      \
  }                                                                                                \
  RAILHEAD_MPI_VISIBLE int OMPI_C_MPI_##object##NULL_DELETE_FN(void*, int, void*, void*) {         \
    return 0;                                                                                      \
  }                                                                                                \
  CONSTANT(void*, MPIABI_##object##DUP_FN, reinterpret_cast<void*>(&OMPI_C_MPI_##object##DUP_FN))  \
  CONSTANT(void*, MPIABI_##object##NULL_COPY_FN,                                                   \
           reinterpret_cast<void*>(&OMPI_C_MPI_##object##NULL_COPY_FN))                            \
  CONSTANT(void*, MPIABI_##object##NULL_DELETE_FN,                                                 \
           reinterpret_cast<void*>(&OMPI_C_MPI_##object##NULL_DELETE_FN))
X()
X(COMM_)
X(TYPE_)
X(WIN_)
#undef X
#define X(name, number) CONSTANT(uintptr_t, MPIABI_##name, number)
X(BOTTOM, 0)
X(IN_PLACE, 1)
X(UNWEIGHTED, 2)
X(WEIGHTS_EMPTY, 3)
#undef X
CONSTANT(int64_t, MPIABI_DISPLACEMENT_CURRENT, -54278278)
#undef CONSTANT
}  // extern "C"
// NOLINTEND

namespace railhead::mpi {

Communicator* CommWorld() { return &ompi_mpi_comm_world.object; }
Communicator* CommSelf() { return &ompi_mpi_comm_self.object; }
Communicator* CommNull() { return &ompi_mpi_comm_null.object; }
Datatype* DatatypeNull() { return &ompi_mpi_datatype_null.object; }
Operator* OperatorNull() { return &ompi_mpi_op_null.object; }
Request* RequestNull() { return &ompi_request_null.object; }
ErrorHandler* ErrorsReturn() { return &ompi_mpi_errors_return.object; }
ErrorHandler* ErrorsAreFatal() { return &ompi_mpi_errors_are_fatal.object; }
ErrorHandler* ErrorHandlerNull() { return &ompi_mpi_errhandler_null.object; }

bool IsPredefined(const Datatype* type) {
  for (const Datatype* one : {
#define X(symbol, made) &(symbol).object,
#include "mpi/abi/datatypes.inc"
#undef X
       }) {
    if (type == one) return true;
  }
  return false;
}

bool IsPredefined(const Operator* op) { return op->operation != Operation::kProgram; }

}  // namespace railhead::mpi

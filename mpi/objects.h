// SPDX-License-Identifier: Apache-2.0
//
// Objects that MPI's handles point to. Handles are pointers to these objects, as in Open MPI.
// Predefined objects (MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) are symbols of the library
// (predefined.cc).
#ifndef RAILHEAD_MPI_OBJECTS_H_
#define RAILHEAD_MPI_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "railhead/railhead.h"

namespace railhead::mpi {

// MPI's error classes that this library returns, with Open MPI's numbers.
enum ErrorClass : int {
  kSuccess = 0,
  kErrorBuffer = 1,
  kErrorCount = 2,
  kErrorType = 3,
  kErrorTag = 4,
  kErrorComm = 5,
  kErrorRank = 6,
  kErrorRequest = 7,
  kErrorRoot = 8,
  kErrorOp = 10,
  kErrorArg = 13,
  kErrorTruncate = 15,
  kErrorOther = 16,
  kErrorInStatus = 18,
  kErrorKeyval = 36,
  kErrorNoMemory = 39,
  kErrorUnsupported = 52,
};

inline constexpr int kProcessNull = -2;  // MPI_PROC_NULL
inline constexpr int kUndefined = -32766;
inline constexpr int kAnyTag = -1;

// Result of a call: an error class, and a sentence for people.
struct Outcome {
  int error = kSuccess;
  std::string text = {};
  bool ok() const { return error == kSuccess; }
};

// Operators that a type supports.
enum class Arithmetic {
  kNone,     // it can be moved
  kNumber,   // those of an integer or a float
  kLogical,  // of a bool
  kComplex,  // sum and product
  kWide,     // of a long double
  kPair,     // of a value and an index: MPI_MAXLOC and MPI_MINLOC
};

struct Datatype {
  size_t bytes = 0;  // of one element; MPI_DATATYPE_NULL and types of no elements have 0
  Arithmetic arithmetic = Arithmetic::kNone;
  rhDataType_t number = rhUint8;  // the library's type of its parts
  size_t parts = 1;               // of one element
};

template <typename T>
constexpr rhDataType_t NumberOf() {
  if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    return sizeof(T) == 4 ? rhFloat32 : rhFloat64;
  } else {
    constexpr bool kSigned = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1:
        return kSigned ? rhInt8 : rhUint8;
      case 2:
        return kSigned ? rhInt16 : rhUint16;
      case 4:
        return kSigned ? rhInt32 : rhUint32;
      default:
        return kSigned ? rhInt64 : rhUint64;
    }
  }
}

template <typename T>
constexpr Datatype Number() {
  return {sizeof(T), Arithmetic::kNumber, NumberOf<T>(), 1};
}
template <typename T>
constexpr Datatype Complex() {
  return {2 * sizeof(T), Arithmetic::kComplex, NumberOf<T>(), 2};
}
// A value and an index, as C lays them out.
template <typename T>
struct ValueAt {
  T value;
  int index;
};
template <typename T>
constexpr Datatype Pair() {
  return {sizeof(ValueAt<T>), Arithmetic::kPair, NumberOf<T>(), 1};
}
// The library has no long doubles, so `number` is unused. `parts`: 2 of a complex number.
constexpr Datatype Wide(size_t parts) {
  return {parts * sizeof(long double), Arithmetic::kWide, rhUint8, parts};
}
constexpr Datatype Logical() { return {1, Arithmetic::kLogical, rhUint8, 1}; }
// A type that can only be moved, unless the program brings an operator for it.
constexpr Datatype Plain(size_t bytes) { return {bytes, Arithmetic::kNone, rhUint8, bytes}; }

enum class Operation {
  kNull,
  kSum,
  kProduct,
  kMax,
  kMin,
  kBitwiseAnd,
  kBitwiseOr,
  kBitwiseXor,
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kMaxAt,  // MPI_MAXLOC
  kMinAt,
  kUnserved,  // MPI_REPLACE and MPI_NO_OP, which are for windows
  kProgram,   // the program's own
};

// MPI_User_function: inout[i] = in[i] op inout[i], for *length elements of *type.
using UserFunction = void (*)(void* in, void* inout, int* length, Datatype** type);

struct Operator {
  Operation operation = Operation::kNull;
  UserFunction function = nullptr;  // of kProgram
  bool commutes = true;             // of MPI_Op_create, for MPI_Op_commutative
};

class Group;  // group.h

// What MPI_COMM_WORLD, MPI_COMM_SELF and the results of MPI_Comm_split point to: process.h knows
// the group of each.
struct Communicator {};

struct ErrorHandler {
  bool returns = false;  // MPI_ERRORS_RETURN: a failed call returns; otherwise it ends the process
};

// A transfer that MPI_Isend or MPI_Irecv has begun. It keeps its group: MPI lets a program free a
// communicator while requests of it are not done.
struct Request {
  rhRequest_t transfer = nullptr;  // null: with MPI_PROC_NULL, and done
  std::shared_ptr<Group> group = nullptr;
};

// Handles of what is not served: groups, windows, files. Nothing reads them.
struct Unserved {};

}  // namespace railhead::mpi

#endif  // RAILHEAD_MPI_OBJECTS_H_

// SPDX-License-Identifier: Apache-2.0
// MPI's start and end, communicators, types and operators, as programs call them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpi/attributes.h"
#include "mpi/calls.h"
#include "mpi/export.h"
#include "mpi/extents.h"
#include "mpi/predefined.h"
#include "mpi/process.h"
#include "mpi/same_host.h"
#include "railhead/railhead.h"

namespace railhead::mpi {
namespace {

constexpr int kThreadMultiple = 3;
constexpr int kVersion = 3;  // of MPI: 3.1
constexpr int kSubversion = 1;
constexpr int kTypeShared = 0;  // MPI_COMM_TYPE_SHARED
// Sizes of what the program has room for: the smaller of the two interfaces.
constexpr size_t kLongestVersion = 256;
constexpr size_t kLongestName = 64;  // of a communicator
constexpr size_t kLongestHost = 256;
constexpr size_t kLongestError = 256;
constexpr int kKeyInvalid = -1;    // MPI_KEYVAL_INVALID
constexpr int kTagUpperBound = 0;  // MPI_TAG_UB, the key of an attribute
int most_tag = INT32_MAX;          // its value

// Copies `text` and its length, as MPI hands out texts.
void Give(const std::string& text, size_t room, char* to, int* length) {
  const size_t size = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
  *length = static_cast<int>(size);
}

Outcome NoKey(int key) {
  return {kErrorKeyval, "the program has no attribute key " + std::to_string(key)};
}

int Start() {
  const Outcome outcome = Process::Instance().Initialize();
  return outcome.ok() ? kSuccess : Report("MPI_Init", nullptr, outcome);
}

Outcome Split(Group& group, int color, int key, Communicator** made) {
  rhComm_t comm = nullptr;
  const int chosen = color == kUndefined ? RH_SPLIT_NOCOLOR : color;
  if (color < 0 && color != kUndefined) {
    return {kErrorArg,
            "the color is " + std::to_string(color) + "; it may be MPI_UNDEFINED or not negative"};
  }
  Outcome outcome = group.Check(rhCommSplit(group.comm(), chosen, key, &comm, nullptr));
  return outcome.ok() ? Process::Instance().Adopt(group, comm, made) : outcome;
}

// The size of one element of `type`; MPI_UNDEFINED if an Integer cannot hold it.
template <typename Integer>
int GiveBytes(const char* name, const Datatype* type, Integer* bytes) {
  const Outcome outcome = CheckType(type);
  if (!outcome.ok()) return Report(name, nullptr, outcome);
  *bytes = std::in_range<Integer>(type->bytes) ? static_cast<Integer>(type->bytes) : kUndefined;
  return kSuccess;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RAILHEAD_MPI(Init, int* /*argc*/, char*** /*argv*/) { return Start(); }

RAILHEAD_MPI(Init_thread, int* /*argc*/, char*** /*argv*/, int /*required*/, int* provided) {
  *provided = kThreadMultiple;
  return Start();
}

RAILHEAD_MPI(Initialized, int* flag) {
  *flag = Process::Instance().state() != Process::State::kBefore ? 1 : 0;
  return kSuccess;
}

RAILHEAD_MPI(Finalized, int* flag) {
  *flag = Process::Instance().state() == Process::State::kAfter ? 1 : 0;
  return kSuccess;
}

RAILHEAD_MPI(Finalize) {
  const Outcome outcome = Process::Instance().Finalize();
  return outcome.ok() ? kSuccess : Report("MPI_Finalize", nullptr, outcome);
}

RAILHEAD_MPI(Query_thread, int* provided) {
  *provided = kThreadMultiple;
  return kSuccess;
}

RAILHEAD_MPI(Is_thread_main, int* flag) {
  // Every thread may do what MPI allows only the one that has called MPI_Init.
  *flag = 1;
  return kSuccess;
}

RAILHEAD_MPI(Abort, Communicator* comm, int code) {
  const std::shared_ptr<Group> group = Process::Instance().Find(comm);
  std::fprintf(stderr, "railhead: rank %d: MPI_Abort: the program ends the job with code %d\n",
               group == nullptr ? 0 : group->rank(), code);
  std::fflush(stderr);
  // The status of a process has 8 bits, and 0 would be success.
  const int status = code & 0xff;
  std::_Exit(status != 0 ? status : EXIT_FAILURE);
}

RAILHEAD_MPI(Get_version, int* version, int* subversion) {
  *version = kVersion;
  *subversion = kSubversion;
  return kSuccess;
}

RAILHEAD_MPI(Get_library_version, char* text, int* length) {
  int version = 0;
  rhGetVersion(&version);
  // Programs look for the first words to know which interface they have.
  Give("Open MPI v4.1.0, its interface served by Railhead " + std::to_string(version / 10000) +
           "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100),
       kLongestVersion, text, length);
  return kSuccess;
}

RAILHEAD_MPI(Get_processor_name, char* text, int* length) {
  std::array<char, kLongestHost> name = {};
  gethostname(name.data(), name.size() - 1);
  Give(name.data(), kLongestHost, text, length);
  return kSuccess;
}

RAILHEAD_MPI(Error_string, int error, char* text, int* length) {
  Give(ErrorText(error), kLongestError, text, length);
  return kSuccess;
}

RAILHEAD_MPI(Error_class, int error, int* error_class) {
  *error_class = error;
  return kSuccess;
}

RAILHEAD_MPI(Comm_rank, Communicator* comm, int* rank) {
  return On("MPI_Comm_rank", comm, [rank](const Group& group) {
    *rank = group.rank();
    return Outcome{};
  });
}

RAILHEAD_MPI(Comm_size, Communicator* comm, int* size) {
  return On("MPI_Comm_size", comm, [size](const Group& group) {
    *size = group.size();
    return Outcome{};
  });
}

RAILHEAD_MPI(Comm_split, Communicator* comm, int color, int key, Communicator** made) {
  return Collective("MPI_Comm_split", comm,
                    [&](Group& group) { return Split(group, color, key, made); });
}

RAILHEAD_MPI(Comm_split_type, Communicator* comm, int type, int key, void* /*info*/,
             Communicator** made) {
  return Collective("MPI_Comm_split_type", comm, [&](Group& group) {
    if (type != kTypeShared && type != kUndefined) {
      return Outcome{kErrorArg, "of the types only MPI_COMM_TYPE_SHARED is served"};
    }
    // Ranks that want no communicator take part in finding the others'.
    int color = 0;
    Outcome outcome = FirstRankOfThisHost(group, &color);
    if (!outcome.ok()) return outcome;
    return Split(group, type == kUndefined ? kUndefined : color, key, made);
  });
}

RAILHEAD_MPI(Comm_dup, Communicator* comm, Communicator** made) {
  const int error = Collective(
      "MPI_Comm_dup", comm, [made](Group& group) { return Split(group, 0, group.rank(), made); });
  if (error != kSuccess) return error;
  // After the collective: the program's functions may call collectives of `comm`.
  return On("MPI_Comm_dup", comm, [&](Group& group) {
    const std::shared_ptr<Group> copy = Process::Instance().Find(*made);
    Outcome outcome = group.attributes().CopyTo(comm, copy->attributes());
    if (!outcome.ok()) {
      Process::Instance().Free(*made);
      *made = CommNull();
    }
    return outcome;
  });
}

// The only info there can be is MPI_INFO_NULL.
RAILHEAD_MPI(Comm_dup_with_info, Communicator* comm, void* /*info*/, Communicator** made) {
  return MPI_Comm_dup(comm, made);
}

RAILHEAD_MPI(Comm_get_parent, Communicator** parent) {
  *parent = CommNull();
  return kSuccess;
}

RAILHEAD_MPI(Topo_test, Communicator* /*comm*/, int* topology) {
  *topology = kUndefined;
  return kSuccess;
}

RAILHEAD_MPI(Comm_compare, Communicator* one, Communicator* other, int* result) {
  return On("MPI_Comm_compare", one, [&](const Group& group) {
    const std::shared_ptr<Group> with = Process::Instance().Find(other);
    if (with == nullptr) return Outcome{kErrorComm, "the second communicator is none"};
    *result = one == other ? kIdentical : Compare(group.members(), with->members());
    return Outcome{};
  });
}

RAILHEAD_MPI(Comm_test_inter, Communicator* /*comm*/, int* flag) {
  *flag = 0;
  return kSuccess;
}

RAILHEAD_MPI(Comm_free, Communicator** comm) {
  // JAX frees its communicators when it exits, after MPI_Finalize, which has left them all.
  if (Process::Instance().state() != Process::State::kAfter) {
    const std::shared_ptr<Group> group = Process::Instance().Find(*comm);
    const Outcome outcome = Process::Instance().Free(*comm);
    if (!outcome.ok()) return Report("MPI_Comm_free", group.get(), outcome);
  }
  *comm = CommNull();
  return kSuccess;
}

RAILHEAD_MPI(Comm_set_errhandler, Communicator* comm, ErrorHandler* handler) {
  return On("MPI_Comm_set_errhandler", comm, [handler](Group& group) {
    group.errors_return = handler->returns;
    return Outcome{};
  });
}

RAILHEAD_MPI(Comm_get_errhandler, Communicator* comm, ErrorHandler** handler) {
  return On("MPI_Comm_get_errhandler", comm, [handler](const Group& group) {
    *handler = group.errors_return ? ErrorsReturn() : ErrorsAreFatal();
    return Outcome{};
  });
}

RAILHEAD_MPI(Errhandler_free, ErrorHandler** handler) {
  *handler = ErrorHandlerNull();
  return kSuccess;
}

RAILHEAD_MPI(Comm_set_name, Communicator* comm, const char* name) {
  return On("MPI_Comm_set_name", comm, [name](Group& group) {
    group.name = name;
    return Outcome{};
  });
}

RAILHEAD_MPI(Comm_get_name, Communicator* comm, char* name, int* length) {
  return On("MPI_Comm_get_name", comm, [&](const Group& group) {
    const char* usual = comm == CommWorld()  ? "MPI_COMM_WORLD"
                        : comm == CommSelf() ? "MPI_COMM_SELF"
                                             : "";
    Give(group.name.empty() ? usual : group.name, kLongestName, name, length);
    return Outcome{};
  });
}

RAILHEAD_MPI(Comm_create_keyval, CopyAttribute copy, DeleteAttribute remove, int* key,
             void* extra) {
  *key = Process::Instance().attribute_keys().Make(copy, remove, extra);
  return kSuccess;
}

RAILHEAD_MPI(Comm_free_keyval, int* key) {
  if (!Process::Instance().attribute_keys().Free(*key)) {
    return Report("MPI_Comm_free_keyval", nullptr, NoKey(*key));
  }
  *key = kKeyInvalid;
  return kSuccess;
}

RAILHEAD_MPI(Comm_set_attr, Communicator* comm, int key, void* value) {
  return On("MPI_Comm_set_attr", comm, [&](Group& group) {
    const SharedKey found = Process::Instance().attribute_keys().Find(key);
    return found == nullptr ? NoKey(key) : group.attributes().Set(comm, found, value);
  });
}

RAILHEAD_MPI(Comm_get_attr, Communicator* comm, int key, void* value, int* flag) {
  return On("MPI_Comm_get_attr", comm, [&](Group& group) {
    const std::optional<void*> found =
        key == kTagUpperBound ? static_cast<void*>(&most_tag) : group.attributes().Get(key);
    *flag = found.has_value() ? 1 : 0;
    if (found.has_value()) {
      std::memcpy(value, static_cast<const void*>(&*found), sizeof(*found));
    }
    return Outcome{};
  });
}

RAILHEAD_MPI(Comm_delete_attr, Communicator* comm, int key) {
  return On("MPI_Comm_delete_attr", comm, [&](Group& group) {
    // An attribute outlives the program's key.
    if (Process::Instance().attribute_keys().Find(key) == nullptr &&
        !group.attributes().Get(key).has_value()) {
      return NoKey(key);
    }
    return group.attributes().Delete(comm, key);
  });
}

RAILHEAD_MPI(Type_contiguous, int count, Datatype* type, Datatype** made) {
  Outcome outcome = First(CheckCount(count), CheckType(type));
  size_t bytes = 0;
  if (outcome.ok()) outcome = SizeOf(count, *type, 1, &bytes);
  if (!outcome.ok()) return Report("MPI_Type_contiguous", nullptr, outcome);
  *made = new Datatype(count == 1 ? *type : Plain(bytes));
  return kSuccess;
}

RAILHEAD_MPI(Type_commit, Datatype** /*type*/) { return kSuccess; }

RAILHEAD_MPI(Type_free, Datatype** type) {
  if (!IsPredefined(*type)) delete *type;
  *type = DatatypeNull();
  return kSuccess;
}

RAILHEAD_MPI(Type_size, Datatype* type, int* bytes) {
  return GiveBytes("MPI_Type_size", type, bytes);
}
RAILHEAD_MPI(Type_size_x, Datatype* type, int64_t* bytes) {
  return GiveBytes("MPI_Type_size_x", type, bytes);
}

// No type has gaps: its extent is its size.
RAILHEAD_MPI(Type_get_extent, Datatype* type, intptr_t* lower_bound, intptr_t* extent) {
  *lower_bound = 0;
  return GiveBytes("MPI_Type_get_extent", type, extent);
}
RAILHEAD_MPI(Type_get_extent_x, Datatype* type, int64_t* lower_bound, int64_t* extent) {
  *lower_bound = 0;
  return GiveBytes("MPI_Type_get_extent_x", type, extent);
}
RAILHEAD_MPI(Type_get_true_extent, Datatype* type, intptr_t* lower_bound, intptr_t* extent) {
  *lower_bound = 0;
  return GiveBytes("MPI_Type_get_true_extent", type, extent);
}
RAILHEAD_MPI(Type_get_true_extent_x, Datatype* type, int64_t* lower_bound, int64_t* extent) {
  *lower_bound = 0;
  return GiveBytes("MPI_Type_get_true_extent_x", type, extent);
}

RAILHEAD_MPI(Op_create, UserFunction function, int commutes, Operator** made) {
  *made = new Operator{Operation::kProgram, function, commutes != 0};
  return kSuccess;
}

RAILHEAD_MPI(Op_commutative, Operator* op, int* commutes) {
  const Outcome outcome = CheckOperator(op);
  if (!outcome.ok()) return Report("MPI_Op_commutative", nullptr, outcome);
  *commutes = op->commutes ? 1 : 0;
  return kSuccess;
}

RAILHEAD_MPI(Op_free, Operator** op) {
  if (!IsPredefined(*op)) delete *op;
  *op = OperatorNull();
  return kSuccess;
}

RAILHEAD_MPI(Alloc_mem, intptr_t bytes, void* /*info*/, void* memory) {
  void* const got = std::malloc(bytes > 0 ? static_cast<size_t>(bytes) : 1);
  if (got == nullptr) {
    return Report("MPI_Alloc_mem", nullptr, {kErrorNoMemory, "not enough memory"});
  }
  std::memcpy(memory, static_cast<const void*>(&got), sizeof(got));
  return kSuccess;
}

RAILHEAD_MPI(Free_mem, void* memory) {
  std::free(memory);
  return kSuccess;
}

extern "C" {
RAILHEAD_MPI_VISIBLE double MPI_Wtime() { return Now(); }
RAILHEAD_MPI_VISIBLE double MPIABI_Wtime() { return Now(); }
RAILHEAD_MPI_VISIBLE double MPI_Wtick() { return 1e-9; }
RAILHEAD_MPI_VISIBLE double MPIABI_Wtick() { return 1e-9; }
RAILHEAD_MPI_VISIBLE intptr_t MPI_Aint_add(intptr_t base, intptr_t more) { return base + more; }
RAILHEAD_MPI_VISIBLE intptr_t MPIABI_Aint_add(intptr_t base, intptr_t more) { return base + more; }
RAILHEAD_MPI_VISIBLE intptr_t MPI_Aint_diff(intptr_t one, intptr_t other) { return one - other; }
RAILHEAD_MPI_VISIBLE intptr_t MPIABI_Aint_diff(intptr_t one, intptr_t other) { return one - other; }
// For profilers; it does nothing.
RAILHEAD_MPI_VISIBLE int MPI_Pcontrol(int /*level*/, ...) { return kSuccess; }
// MPItrampoline calls it when it loads the library; there is nothing for Fortran here.
RAILHEAD_MPI_VISIBLE void mpiwrapper_export_fortran_constants_() {}
}  // extern "C"

}  // namespace railhead::mpi

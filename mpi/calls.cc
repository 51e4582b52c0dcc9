// SPDX-License-Identifier: Apache-2.0
#include "mpi/calls.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "mpi/predefined.h"

namespace railhead::mpi {
namespace {

thread_local Outcome last;

}  // namespace

int Report(const char* name, const Group* group, const Outcome& outcome) {
  std::shared_ptr<Group> world;
  if (group == nullptr) {
    world = Process::Instance().Find(CommWorld());
    group = world.get();
  }
  if (group != nullptr && group->errors_return) {
    last = {outcome.error, std::string(name) + ": " + outcome.text};
    return outcome.error;
  }
  // MPI's default: a program that does not check results must not continue with wrong data. Other
  // ranks notice that the process is gone.
  if (group == nullptr) {
    std::fprintf(stderr, "railhead: %s: %s\n", name, outcome.text.c_str());
  } else {
    std::fprintf(stderr, "railhead: rank %d: %s: %s\n", group->rank(), name, outcome.text.c_str());
  }
  std::fflush(stderr);
  std::_Exit(EXIT_FAILURE);
}

std::string ErrorText(int error) {
  if (error == kSuccess) return "no error";
  if (last.error == error && !last.text.empty()) return last.text;
  return "error class " + std::to_string(error) + " of MPI";
}

Outcome WrongType() { return {kErrorType, "the datatype is null"}; }

Outcome WrongCount(int count) {
  return {kErrorCount, "the count is " + std::to_string(count) + "; it may not be negative"};
}

Outcome CheckOperator(const Operator* op) {
  if (op != nullptr && op->operation != Operation::kNull) return {};
  return {kErrorOp, "the operator is null"};
}

}  // namespace railhead::mpi

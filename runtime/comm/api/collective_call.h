// SPDX-License-Identifier: Apache-2.0
//
// A collective call of the C API: checks the arguments, makes the operation (operation.h), and runs
// it now, on a stream, or at the end of its group.
#ifndef RAILHEAD_RUNTIME_COMM_API_COLLECTIVE_CALL_H_
#define RAILHEAD_RUNTIME_COMM_API_COLLECTIVE_CALL_H_

#include <cstddef>

#include "railhead/railhead.h"
#include "runtime/collectives/collective.h"
#include "runtime/comm/api/handle.h"

namespace railhead::comm {

// Lists with an entry for each rank, in values, and their names in the C API.
struct PartLists {
  const char* counts_name = nullptr;  // null: there are no lists
  const size_t* counts = nullptr;
  const char* displs_name = "";  // "": each part follows the one before
  const size_t* displs = nullptr;
};

// The arguments of a function of the C API.
struct CollectiveCall {
  const char* name;                  // of the function
  const char* count_name = "count";  // of its argument
  collectives::Collective collective;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;  // values of a block
  rhDataType_t type = rhInt8;
  rhRedOp_t op = rhSum;
  int root = 0;
  // Instead of `count`, by functions whose blocks differ.
  PartLists send_lists = {};
  PartLists receive_lists = {};
};

rhResult_t Start(const CollectiveCall& call, rhComm_t comm, rhStream_t stream);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_COLLECTIVE_CALL_H_

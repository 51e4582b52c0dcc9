// SPDX-License-Identifier: Apache-2.0
//
// What can be wrong with the arguments of a collective. Functions of values; each returns "" or
// what is wrong, in the words of the C API.
#ifndef RAILHEAD_RUNTIME_COMM_ARGUMENTS_H_
#define RAILHEAD_RUNTIME_COMM_ARGUMENTS_H_

#include <cstddef>
#include <string>

#include "railhead/railhead.h"

namespace railhead::comm {

// The buffers of a call on this rank.
struct Buffers {
  const void* send = nullptr;
  const void* receive = nullptr;
  // The values of one part, and how many parts each buffer has; 0: this rank does not use it.
  const char* count_name = "count";
  size_t count = 0;
  size_t send_parts = 1;
  size_t receive_parts = 1;
  // In place the smaller buffer is this part of the larger one.
  size_t in_place_part = 0;
};

std::string WrongType(rhDataType_t type);
// `type` is one that exists.
std::string WrongOperator(rhDataType_t type, rhRedOp_t op);
std::string WrongRoot(int root, int world_size);
std::string WrongStream(rhStream_t stream);
// `element`: bytes of a value; 0, as of a type that does not exist, says nothing of buffers.
std::string WrongBuffers(const Buffers& buffers, size_t element);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_ARGUMENTS_H_

// SPDX-License-Identifier: Apache-2.0
//
// What can be wrong with the arguments of a collective. Functions of values; each returns OK or
// what is wrong, in the words of the C API. (A Status, because one that is OK costs nothing, and
// these are asked before every call.)
#ifndef RAILHEAD_RUNTIME_COMM_API_ARGUMENTS_H_
#define RAILHEAD_RUNTIME_COMM_API_ARGUMENTS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "railhead/railhead.h"
#include "runtime/base/parts.h"

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

absl::Status WrongType(rhDataType_t type);
// `type` is one that exists.
absl::Status WrongOperator(rhDataType_t type, rhRedOp_t op);
// `name`: what the C API calls it.
absl::Status WrongRoot(int root, int world_size, const char* name);
// `element`: bytes of a value; 0, as of a type that does not exist, says nothing of buffers.
absl::Status WrongBuffers(const Buffers& buffers, size_t element);

// A list of counts and one of displacements (null: parts follow each other), with an entry for each
// rank, in values of `element` bytes.
class ListedParts {
 public:
  ListedParts(const char* counts_name, const size_t* counts, const char* displs_name,
              const size_t* displs, size_t ranks, size_t element);

  // What is wrong with the lists.
  const absl::Status& wrong() const { return wrong_; }
  // What is wrong where no two parts may share a value.
  absl::Status Overlap() const;

  // Bytes up to the end of the last part.
  size_t extent() const { return extent_ * element_; }
  // Valid as long as this is.
  Parts InValues() const { return {sizes_, begins_, 1}; }
  Parts InBytes() const { return {sizes_, begins_, element_}; }

 private:
  const char* displs_name_;
  size_t element_;
  std::vector<size_t> sizes_;
  std::vector<size_t> begins_;
  size_t extent_ = 0;  // in values
  absl::Status wrong_;
};

// A buffer and its name in the C API.
struct NamedBuffer {
  const char* name;
  const void* data;
};

// `plain` must be the part of `rank` in `parted`, or as large and elsewhere. `element`: as above.
absl::Status WrongPart(const NamedBuffer& parted, const ListedParts& parts,
                       const NamedBuffer& plain, size_t rank, size_t element);
// Both are of parts, and must be apart.
absl::Status WrongPair(const NamedBuffer& one, const ListedParts& parts_of_one,
                       const NamedBuffer& other, const ListedParts& parts_of_other, size_t element);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_ARGUMENTS_H_

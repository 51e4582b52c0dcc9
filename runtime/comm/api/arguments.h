// SPDX-License-Identifier: Apache-2.0
//
// Argument checks of the collectives of the C API. Pure functions: each returns OK, or
// InvalidArgument with a text in the terms of the C API. (They return a Status because an OK Status
// costs nothing, and every call runs these checks.)
#ifndef RAILHEAD_RUNTIME_COMM_API_ARGUMENTS_H_
#define RAILHEAD_RUNTIME_COMM_API_ARGUMENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "railhead/railhead.h"
#include "runtime/base/parts.h"

namespace railhead::comm {

// Buffers of a call on this rank.
struct Buffers {
  const void* send = nullptr;
  const void* receive = nullptr;
  // Number of values of one part, and number of parts of each buffer; 0 if this rank does not use
  // it.
  const char* count_name = "count";
  size_t count = 0;
  size_t send_parts = 1;
  size_t receive_parts = 1;
  // For calls in place: index of the part of the larger buffer that is the smaller buffer.
  size_t in_place_part = 0;
};

absl::Status WrongType(rhDataType_t type);
// `type` must exist.
absl::Status WrongOperator(rhDataType_t type, rhRedOp_t op);
// `name`: name of the argument in the C API.
absl::Status WrongRoot(int root, int world_size, const char* name);
// `element`: bytes of a value; if 0, for a type that does not exist, returns OK.
absl::Status WrongBuffers(const Buffers& buffers, size_t element);
// Returns true for buffers that are plainly right, as those of most calls are: small enough, and
// apart or the same. Of the others, WrongBuffers accepts some.
inline bool ArePlain(const Buffers& buffers, size_t element) {
  constexpr size_t kMostValues = size_t{1} << 31U;
  constexpr size_t kMostParts = size_t{1} << 20U;
  const auto send = reinterpret_cast<uintptr_t>(buffers.send);
  const auto receive = reinterpret_cast<uintptr_t>(buffers.receive);
  const size_t part = buffers.count * element;
  const bool apart = send + buffers.send_parts * part <= receive ||
                     receive + buffers.receive_parts * part <= send ||
                     (send == receive && buffers.send_parts == buffers.receive_parts);
  return apart && send != 0 && receive != 0 && buffers.count < kMostValues &&
         buffers.send_parts + buffers.receive_parts < kMostParts &&
         ((send | receive) & (element - 1)) == 0;
}

// The same for the one buffer of a message.
absl::Status WrongMessage(const void* buffer, size_t count, bool sends, size_t element);

// Parts of a buffer, from a list of counts and a list of displacements (null: each part follows the
// one before), with an entry for each rank, in values of `element` bytes.
class ListedParts {
 public:
  ListedParts(const char* counts_name, const size_t* counts, const char* displs_name,
              const size_t* displs, size_t ranks, size_t element);

  // OK, or the error in the lists.
  const absl::Status& wrong() const { return wrong_; }
  // Returns an error if two parts share a value.
  absl::Status Overlap() const;

  // Bytes up to the end of the last part.
  size_t extent() const { return InBytes().end(); }
  // The results refer to this object and are valid as long as it is.
  Parts InValues() const { return {sizes_, begins_, 1}; }
  Parts InBytes() const { return {sizes_, begins_, element_}; }

 private:
  const char* displs_name_;
  size_t element_;
  std::vector<size_t> sizes_;
  std::vector<size_t> begins_;
  absl::Status wrong_;
};

// A buffer and its name in the C API.
struct NamedBuffer {
  const char* name;
  const void* data;
};

// Returns an error unless `plain` is the part of `rank` in `parted`, or of the same size and
// without overlap. `element`: as above.
absl::Status WrongPart(const NamedBuffer& parted, const ListedParts& parts,
                       const NamedBuffer& plain, size_t rank, size_t element);
// Returns an error if the two buffers, both of several parts, overlap.
absl::Status WrongPair(const NamedBuffer& one, const ListedParts& parts_of_one,
                       const NamedBuffer& other, const ListedParts& parts_of_other, size_t element);

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_ARGUMENTS_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/parts.h"
#include "runtime/collectives/collective.h"
#include "runtime/include/railhead/railhead.h"

namespace railhead::collectives {

// What all ranks must agree on about a call, in one word that travels with its data: so ranks that
// call different things learn it from the first bytes that they get of each other. Some of it can
// be read back, for messages; the rest is a digest of 20 bits, of all arguments.
class Call {
 public:
  struct Arguments {
    Collective collective = Collective::kAllReduce;
    rhDataType_t type = rhInt8;
    rhRedOp_t op = rhSum;
    int root = 0;
    size_t count = 0;  // of values; of bytes where nothing is reduced
    // Which collective of the communicator it is. What was sent for an earlier one, and never
    // taken, is not taken for this one, for the next million of calls.
    uint64_t number = 0;
    uint64_t parts = 0;  // DigestOf them, if they differ
  };

  Call() = default;
  explicit Call(const Arguments& arguments);
  explicit Call(uint64_t word) : word_(word) {}

  uint64_t word() const { return word_; }
  bool operator==(const Call&) const = default;

  // "all_reduce of 5 values of type 7 with op 0", "broadcast of 20 bytes, root 1". Of a root the
  // low 12 bits are known, of a large count its highest bits, 14 at least.
  std::string ToString() const;

 private:
  uint64_t word_ = 0;
};

// Of the sizes of parts; 0 if these are equal.
uint64_t DigestOf(const Parts& parts);

// "rank 1 calls barrier, and rank 0 ...": two that contradict each other, for whoever reads it.
std::string Contradiction(const std::string& one, Call of_one, const std::string& other,
                          Call of_other);
// The same where this rank is the other one.
std::string Contradiction(const std::string& peer, Call theirs, Call ours);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_

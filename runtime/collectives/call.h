// SPDX-License-Identifier: Apache-2.0
//
// Fingerprint of a call: what all ranks must agree on, in one word sent with its data, so that
// ranks with different calls detect it from the first bytes. Used on rails, in shared memory and by
// the flight recorder.
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/parts.h"
#include "runtime/collectives/collective.h"
#include "runtime/include/railhead/railhead.h"

namespace railhead::collectives {

// Some of the word is readable, for messages; the rest is a 20-bit digest of all arguments.
class Call {
 public:
  struct Arguments {
    Collective collective = Collective::kAllReduce;
    rhDataType_t type = rhInt8;
    rhRedOp_t op = rhSum;
    int root = 0;
    size_t count = 0;  // values; bytes if nothing is reduced
    // Index of the call among the communicator's collectives: stale data of an earlier call is not
    // taken for this one, within a million calls.
    uint64_t number = 0;
    uint64_t parts = 0;  // DigestOf the parts, if they differ
  };

  Call() = default;
  explicit Call(const Arguments& arguments);
  explicit Call(uint64_t word) : word_(word) {}

  uint64_t word() const { return word_; }
  bool operator==(const Call&) const = default;

  // Returns "all_reduce of 5 values of type 7 with op 0", "broadcast of 20 bytes, root 1". Contains
  // the low 12 bits of a root, and at least the 14 highest bits of a large count.
  std::string ToString() const;

 private:
  uint64_t word_ = 0;
};

// Returns a digest of the sizes of parts; 0 if equal.
uint64_t DigestOf(const Parts& parts);

// Returns "rank 1 calls barrier, and rank 0 ...": describes two contradicting calls.
std::string Contradiction(const std::string& one, Call of_one, const std::string& other,
                          Call of_other);
// Returns the same if the second rank is this one.
std::string Contradiction(const std::string& peer, Call theirs, Call ours);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_

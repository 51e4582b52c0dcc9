// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_
#define RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/collectives/collective.h"
#include "runtime/include/railhead/railhead.h"

namespace railhead::collectives {

// What all ranks must agree on about a call, in one word that travels with its data: so ranks that
// call different things learn it from the first bytes that they get of each other.
class Call {
 public:
  struct Arguments {
    Collective collective = Collective::kAllReduce;
    rhDataType_t type = rhInt8;
    rhRedOp_t op = rhSum;
    int root = 0;
    size_t count = 0;  // of values; of bytes where nothing is reduced
  };

  Call() = default;
  // Of `root` the low 12 bits are kept, of `count` the low 40.
  explicit Call(const Arguments& arguments);
  explicit Call(uint64_t word) : word_(word) {}

  uint64_t word() const { return word_; }
  bool operator==(const Call&) const = default;

  // "all_reduce of 5 values of type 7 with op 0", "broadcast of 20 bytes, root 1".
  std::string ToString() const;

 private:
  uint64_t word_ = 0;
};

// The text of the error: `peer` is a rank's name.
std::string Contradiction(const std::string& peer, Call theirs, Call ours);

}  // namespace railhead::collectives

#endif  // RAILHEAD_RUNTIME_COLLECTIVES_CALL_H_

// SPDX-License-Identifier: Apache-2.0
//
// The first failure after certain calls of a stream, for any number of failures.
#ifndef RAILHEAD_RUNTIME_COMM_API_FIRST_FAILURES_H_
#define RAILHEAD_RUNTIME_COMM_API_FIRST_FAILURES_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "railhead/railhead.h"

namespace railhead::comm {

// Calls are counted from 1, and fail in their order. Pure. Its memory grows with the number of
// watched calls only.
class FirstFailures {
 public:
  // From now on, the first failure after call `since` is kept. `since` is watched already, or not
  // before the last failure.
  void Watch(uint64_t since) { ++firsts_[since].watchers; }
  // Ends one Watch.
  void Forget(uint64_t since) {
    const auto first = firsts_.find(since);
    if (--first->second.watchers == 0) firsts_.erase(first);
  }
  void Add(uint64_t call, rhResult_t failure) {
    // If one has its first failure, those before it have theirs, too.
    for (auto first = std::make_reverse_iterator(firsts_.lower_bound(call));
         first != firsts_.rend() && first->second.call == 0; ++first) {
      first->second.call = call;
      first->second.failure = failure;
    }
  }
  // Returns the first failure among the calls (since, last]; rhSuccess if there is none. `since` is
  // watched.
  rhResult_t Among(uint64_t since, uint64_t last) const {
    const First& first = firsts_.at(since);
    return first.call <= last ? first.failure : rhSuccess;
  }

 private:
  struct First {
    size_t watchers = 0;
    uint64_t call = 0;  // 0: none has failed
    rhResult_t failure = rhSuccess;
  };
  std::map<uint64_t, First> firsts_;  // by `since`
};

}  // namespace railhead::comm

#endif  // RAILHEAD_RUNTIME_COMM_API_FIRST_FAILURES_H_

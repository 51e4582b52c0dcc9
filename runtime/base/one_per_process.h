// SPDX-License-Identifier: Apache-2.0
//
// Objects that all users in a process share: made by the first, destroyed by the last. A forked
// child has none: it makes its own, without waiting for locks that its parent held at the fork.
#ifndef RAILHEAD_RUNTIME_BASE_ONE_PER_PROCESS_H_
#define RAILHEAD_RUNTIME_BASE_ONE_PER_PROCESS_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace railhead {

// For variables of static storage duration. Thread-safe.
template <class Object>
class OnePerProcess {
 public:
  using Made = absl::StatusOr<std::shared_ptr<Object>>;

  // Returns the object; makes it if it has no user.
  Made Get(absl::FunctionRef<Made()> make) { return Get("", make); }
  // As above, for one of several objects, each with a name.
  Made Get(const std::string& name, absl::FunctionRef<Made()> make) {
    State& state = OfThisProcess();
    const std::lock_guard<std::mutex> lock(state.mutex);
    std::weak_ptr<Object>& known = state.objects[name];
    if (std::shared_ptr<Object> object = known.lock()) return object;
    Made made = make();
    if (made.ok()) known = *made;
    return made;
  }

 private:
  struct State {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<Object>> objects;
    const pid_t process = ::getpid();
  };

  // Never destroyed: it may be used while the process ends.
  State& OfThisProcess() {
    State* known = state_.load();
    while (known == nullptr || known->process != ::getpid()) {
      auto fresh = std::make_unique<State>();
      if (state_.compare_exchange_strong(known, fresh.get())) known = fresh.release();
    }
    return *known;
  }

  std::atomic<State*> state_{nullptr};
};

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_ONE_PER_PROCESS_H_

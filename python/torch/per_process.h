// SPDX-License-Identifier: Apache-2.0
//
// The one object of a type in a process. A forked child gets a new one: it has none of the parent's
// threads, and may have copied a mutex that one of them held.
#ifndef RAILHEAD_PYTHON_TORCH_PER_PROCESS_H_
#define RAILHEAD_PYTHON_TORCH_PER_PROCESS_H_

#include <unistd.h>

#include <atomic>

namespace railhead_torch {

// Any thread. Objects are never destroyed. T has a default constructor and a member `process`, the
// id of the process that made it.
template <class T>
T& OfThisProcess() {
  static std::atomic<T*> current = nullptr;
  T* found = current.load();
  if (found != nullptr && found->process == ::getpid()) return *found;
  auto* const made = new T();
  if (current.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_PER_PROCESS_H_

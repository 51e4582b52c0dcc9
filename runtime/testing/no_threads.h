// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_TESTING_NO_THREADS_H_
#define RAILHEAD_RUNTIME_TESTING_NO_THREADS_H_

#include <pthread.h>

#include <cstddef>
#include <cstdlib>

namespace railhead::testing {

// While it exists, the process cannot start a thread: no address space has room for its stack.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t attributes;
    if (pthread_getattr_default_np(&attributes) != 0 ||
        pthread_attr_getstacksize(&attributes, &before_) != 0) {
      std::abort();
    }
    pthread_attr_destroy(&attributes);
    Set(size_t{1} << 50U);
  }
  ~NoThreads() { Set(before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static void Set(size_t stack) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, stack) != 0 ||
        pthread_setattr_default_np(&attributes) != 0) {
      std::abort();
    }
    pthread_attr_destroy(&attributes);
  }

  size_t before_ = 0;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_NO_THREADS_H_

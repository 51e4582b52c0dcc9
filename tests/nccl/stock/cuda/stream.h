// SPDX-License-Identifier: Apache-2.0
//
// A stream: a queue of work and the thread that does it, in order.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_CUDA_STREAM_H_
#define RAILHEAD_TESTS_NCCL_STOCK_CUDA_STREAM_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace railhead::stock {

class Stream {
 public:
  // A stream of the calling thread's device.
  Stream();
  // Does what is queued first.
  ~Stream();

  // Returns the stream of a CUDA handle; small numbers are the default streams.
  static Stream& Of(void* handle);

  void Push(std::function<void()> work);
  void Synchronize();
  bool Idle();

 private:
  void Work(int device);

  std::mutex mutex_;
  std::condition_variable pushed_, idle_;
  std::deque<std::function<void()>> queue_;
  bool busy_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_CUDA_STREAM_H_

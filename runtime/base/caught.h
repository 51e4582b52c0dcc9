// SPDX-License-Identifier: Apache-2.0
#ifndef RAILHEAD_RUNTIME_BASE_CAUGHT_H_
#define RAILHEAD_RUNTIME_BASE_CAUGHT_H_

#include <exception>
#include <new>

#include "absl/status/status.h"

namespace railhead {

// Returns the result of `body()`. If it throws (out of memory, no thread), returns the result of
// `failed(status)`, with a ResourceExhausted that contains the exception's text.
template <class Body, class Failed>
auto Caught(Body&& body, Failed&& failed) -> decltype(body()) {
  absl::Status why;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    why = absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& exception) {
    why = absl::ResourceExhaustedError(exception.what());
  }
  return failed(why);
}

}  // namespace railhead

#endif  // RAILHEAD_RUNTIME_BASE_CAUGHT_H_

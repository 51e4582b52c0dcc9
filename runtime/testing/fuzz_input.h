// SPDX-License-Identifier: Apache-2.0
//
// What fuzz tests of state machines share: an input that is read as a sequence of events, and a
// check that ends the test.
#ifndef RAILHEAD_RUNTIME_TESTING_FUZZ_INPUT_H_
#define RAILHEAD_RUNTIME_TESTING_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

namespace railhead::testing {

inline void Require(bool condition) {
  if (!condition) std::abort();
}

// Takes bytes from the front of the input; zeros behind its end.
class Input {
 public:
  explicit Input(absl::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  std::string Text(size_t size) {
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(text.size());
    return text;
  }

 private:
  absl::string_view rest_;
};

}  // namespace railhead::testing

#endif  // RAILHEAD_RUNTIME_TESTING_FUZZ_INPUT_H_

// SPDX-License-Identifier: Apache-2.0
//
// Elements of the test's buffers: f32, bf16 or i32. The values are small integers, so that sums and
// products of up to eight ranks are exact in all three.
#ifndef RAILHEAD_TESTS_NCCL_STOCK_RANK_ELEMENTS_H_
#define RAILHEAD_TESTS_NCCL_STOCK_RANK_ELEMENTS_H_

#include <cstddef>
#include <string>

namespace railhead::stock {

struct ElementType {
  std::string name;
  int number;  // ncclDataType_t
  size_t bytes;
  double tolerance;  // of a mean, whose factor 1/n is rounded

  bool integer() const { return name == "i32"; }
  void Put(void* buffer, size_t index, double value) const;
  double Get(const void* buffer, size_t index) const;
};

// Ends the process if there is no type of this name.
const ElementType& TypeOf(const std::string& name);

// An element of a rank's input in a round, from -15 to 16.
double Value(int rank, int round, size_t index);
// The same for products: 1, 2, -1 or -2.
double Factor(int rank, int round, size_t index);
// What is in the output before a call.
inline constexpr double kUntouched = -1000;

}  // namespace railhead::stock

#endif  // RAILHEAD_TESTS_NCCL_STOCK_RANK_ELEMENTS_H_

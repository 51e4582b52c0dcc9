// SPDX-License-Identifier: Apache-2.0
#include "tests/nccl/stock/rank/elements.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/nccl/stock/cuda/api.h"

namespace railhead::stock {
namespace {

template <class T>
void Write(void* buffer, size_t index, T value) {
  std::memcpy(static_cast<char*>(buffer) + index * sizeof value, &value, sizeof value);
}

template <class T>
T Read(const void* buffer, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(buffer) + index * sizeof value, sizeof value);
  return value;
}

size_t Mixed(int rank, int round, size_t index) {
  return index * 7 + static_cast<size_t>(rank) * 13 + static_cast<size_t>(round) * 5;
}

}  // namespace

const ElementType& TypeOf(const std::string& name) {
  static const auto* const types =
      new std::vector<ElementType>{{"f32", 7, 4, 1e-5}, {"bf16", 9, 2, 0.25}, {"i32", 2, 4, 0}};
  for (const ElementType& type : *types) {
    if (type.name == name) return type;
  }
  GiveUp("there is no type %s", name.c_str());
}

void ElementType::Put(void* buffer, size_t index, double value) const {
  if (integer()) return Write(buffer, index, static_cast<int32_t>(value));
  const auto single = static_cast<float>(value);
  if (bytes == sizeof single) return Write(buffer, index, single);
  uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  Write(buffer, index, static_cast<uint16_t>(bits >> 16U));
}

double ElementType::Get(const void* buffer, size_t index) const {
  if (integer()) return Read<int32_t>(buffer, index);
  if (bytes == sizeof(float)) return Read<float>(buffer, index);
  const uint32_t bits = uint32_t{Read<uint16_t>(buffer, index)} << 16U;
  float single = 0;
  std::memcpy(&single, &bits, sizeof single);
  return single;
}

double Value(int rank, int round, size_t index) {
  return static_cast<double>(Mixed(rank, round, index) % 32) - 15;
}

double Factor(int rank, int round, size_t index) {
  constexpr double kFactors[] = {1, 2, -1, -2};
  return kFactors[Mixed(rank, round, index) / 3 % 4];
}

}  // namespace railhead::stock

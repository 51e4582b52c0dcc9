// SPDX-License-Identifier: Apache-2.0
//
// Every type and operator between processes, over TCP and in shared memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/comm/api/ranks_by_environment_for_test.h"

namespace railhead {
namespace {

// The bits of a small positive whole number in any type.
std::string Encode(rhDataType_t type, int value) {
  const auto bytes_of = [](auto number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const auto small_float = [&](int mantissa_bits, int bias) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
    const auto mantissa = static_cast<uint32_t>((2 * fraction - 1) * (1U << mantissa_bits));
    return static_cast<uint16_t>(static_cast<uint32_t>(exponent - 1 + bias) << mantissa_bits |
                                 mantissa);
  };
  switch (type) {
    case rhInt8:
    case rhUint8:
      return bytes_of(static_cast<uint8_t>(value));
    case rhInt16:
    case rhUint16:
      return bytes_of(static_cast<uint16_t>(value));
    case rhInt32:
    case rhUint32:
      return bytes_of(static_cast<uint32_t>(value));
    case rhInt64:
    case rhUint64:
      return bytes_of(static_cast<uint64_t>(value));
    case rhFloat16:
      return bytes_of(small_float(10, 15));
    case rhBfloat16:
      return bytes_of(small_float(7, 127));
    case rhFloat8e4m3:
      return bytes_of(static_cast<uint8_t>(small_float(3, 7)));
    case rhFloat8e5m2:
      return bytes_of(static_cast<uint8_t>(small_float(2, 15)));
    case rhFloat32:
      return bytes_of(static_cast<float>(value));
    case rhFloat64:
      return bytes_of(static_cast<double>(value));
  }
  return "";
}

int Combine(rhRedOp_t op, int a, int b) {
  switch (op) {
    case rhSum:
    case rhAvg:
      return a + b;
    case rhProd:
      return a * b;
    case rhMax:
      return std::max(a, b);
    case rhMin:
      return std::min(a, b);
    case rhBand:
      return a & b;
    case rhBor:
      return a | b;
    case rhBxor:
      return a ^ b;
  }
  return 0;
}

// Value of one of three ranks at index i; small enough that every type holds every result. Repeats
// after three values.
int Given(int rank, size_t i) { return (static_cast<size_t>(rank) + i) % 3 == 0 ? 2 : 1; }

// The first `count` values of these three, again and again.
std::string Repeated(const std::string& three, size_t count) {
  std::string values;
  values.reserve(count * (three.size() / 3) + three.size());
  while (values.size() < count * (three.size() / 3)) values += three;
  values.resize(count * (three.size() / 3));
  return values;
}

std::string ReduceEverything(rhComm_t comm, int rank, int world) {
  for (int type = rhInt8; type <= rhUint16; ++type) {
    for (int op = rhSum; op <= rhBxor; ++op) {
      const auto t = static_cast<rhDataType_t>(type);
      const auto o = static_cast<rhRedOp_t>(op);
      const bool is_float = t >= rhFloat16 && t <= rhFloat8e5m2;
      if (is_float && (o >= rhBand || o == rhAvg)) continue;
      std::string given;
      std::string right;
      for (size_t i = 0; i < 3; ++i) {
        int result = Given(0, i);
        for (int other = 1; other < world; ++other) result = Combine(o, result, Given(other, i));
        given += Encode(t, Given(rank, i));
        const std::string bits = Encode(t, std::max(1, o == rhAvg ? result / world : result));
        right += result == 0 ? std::string(bits.size(), 0) : bits;
      }
      for (const size_t count : {size_t{1}, size_t{1000}, size_t{300001}}) {
        const std::string send = Repeated(given, count);
        const std::string expected = Repeated(right, count);
        std::string receive(send.size(), 'x');
        if (rhAllReduce(send.data(), receive.data(), count, t, o, comm, nullptr) != rhSuccess) {
          return rhGetLastError(comm);
        }
        if (receive != expected) {
          return absl::StrCat("type ", type, ", op ", op, ", count ", count, " is wrong");
        }
      }
    }
  }
  return "";
}

class ProcessesByTransportTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ProcessesByTransportTest, EveryTypeAndOperator) {
  const std::string transport = GetParam();
  const std::vector<std::string> outputs = RunForks(
      Environments(3, {{"RAILHEAD_TRANSPORT", transport}}),
      [&](int rank) {
        rhComm_t comm = nullptr;
        std::string error = Join(&comm);
        if (!error.empty()) return error;
        rhCommInfo_t info{};
        info.struct_size = sizeof info;
        rhCommGetInfo(comm, &info);
        error = ReduceEverything(comm, rank, 3);
        rhCommDestroy(comm);
        return error.empty() ? std::string(info.transport) : error;
      },
      300);
  EXPECT_EQ(outputs, std::vector<std::string>(3, transport));
}

INSTANTIATE_TEST_SUITE_P(Transports, ProcessesByTransportTest, ::testing::Values("tcp", "shm"));

}  // namespace
}  // namespace railhead

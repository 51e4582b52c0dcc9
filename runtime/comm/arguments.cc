// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/arguments.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "runtime/reduce/reduce.h"

namespace railhead::comm {
namespace {

std::string WrongBuffer(const char* name, const void* buffer, size_t element) {
  if (buffer == nullptr) return absl::StrCat(name, " is NULL");
  if (reinterpret_cast<uintptr_t>(buffer) % element == 0) return "";
  return absl::StrCat(name, " is not aligned to ", element, " bytes");
}

}  // namespace

std::string WrongType(rhDataType_t type) {
  if (reduce::SizeOf(type) != 0) return "";
  return absl::StrCat("datatype ", static_cast<int>(type), " does not exist");
}

std::string WrongOperator(rhDataType_t type, rhRedOp_t op) {
  if (op < rhSum || op > rhBxor) {
    return absl::StrCat("op ", static_cast<int>(op), " does not exist");
  }
  if (reduce::CanReduce(type, op)) return "";
  return absl::StrCat("op ", static_cast<int>(op), " works on integers only, and datatype ",
                      static_cast<int>(type), " is a float");
}

std::string WrongRoot(int root, int world_size) {
  if (root >= 0 && root < world_size) return "";
  return absl::StrCat("root ", root, " does not exist; ranks go from 0 to ", world_size - 1);
}

std::string WrongStream(rhStream_t stream) {
  return stream == nullptr ? "" : "stream must be NULL: buffers are in host memory";
}

std::string WrongBuffers(const Buffers& buffers, size_t element) {
  if (buffers.count == 0 || element == 0) return "";
  const size_t parts = std::max(buffers.send_parts, buffers.receive_parts);
  if (buffers.count > SIZE_MAX / 2 / element / parts) {
    return absl::StrCat(buffers.count_name, " ", buffers.count, " is too large");
  }
  std::string wrong;
  if (buffers.send_parts > 0) wrong = WrongBuffer("sendbuf", buffers.send, element);
  if (wrong.empty() && buffers.receive_parts > 0) {
    wrong = WrongBuffer("recvbuf", buffers.receive, element);
  }
  if (!wrong.empty() || buffers.send_parts == 0 || buffers.receive_parts == 0) return wrong;

  const size_t part = buffers.count * element;
  const auto send = reinterpret_cast<uintptr_t>(buffers.send);
  const auto receive = reinterpret_cast<uintptr_t>(buffers.receive);
  if (send >= receive + buffers.receive_parts * part ||
      receive >= send + buffers.send_parts * part) {
    return "";
  }
  const size_t place = buffers.in_place_part * part;
  if (buffers.send_parts == buffers.receive_parts) {
    if (send == receive) return "";
    return "sendbuf and recvbuf overlap; they may be the same, or apart";
  }
  const bool gathers = buffers.send_parts < buffers.receive_parts;
  if (gathers ? send == receive + place : receive == send + place) return "";
  return absl::StrCat("sendbuf and recvbuf overlap; in place, ",
                      gathers ? "sendbuf is recvbuf" : "recvbuf is sendbuf", " + rank * ",
                      buffers.count_name, ", and else they are apart");
}

}  // namespace railhead::comm

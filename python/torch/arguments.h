// SPDX-License-Identifier: Apache-2.0
//
// Tensors that torch's calls give in lists: checked, joined into one piece of memory, and spread
// from it. Errors are torch's own exception types; `call` is the call's name in them.
#ifndef RAILHEAD_PYTHON_TORCH_ARGUMENTS_H_
#define RAILHEAD_PYTHON_TORCH_ARGUMENTS_H_

#include <ATen/ATen.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "types.h"

namespace railhead_torch {

using Tensors = std::vector<at::Tensor>;

// Moves are of bytes: any type will do.
inline size_t BytesOf(const at::Tensor& tensor) { return tensor.nbytes(); }

inline const at::Tensor& OnlyOne(const char* call, const Tensors& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "railhead: ", call, ": ", tensors.size(),
                    " tensors, and must be one for this process");
  return tensors.front();
}

inline const Tensors& OnlyList(const char* call, const std::vector<Tensors>& lists, size_t ranks) {
  TORCH_CHECK_VALUE(lists.size() == 1 && lists.front().size() == ranks, "railhead: ", call,
                    ": there must be one list of ", ranks, " tensors, one for each rank");
  return lists.front();
}

inline void CheckSame(const char* call, const at::Tensor& output, const at::Tensor& input) {
  TORCH_CHECK_TYPE(output.scalar_type() == input.scalar_type(), "railhead: ", call,
                   ": the output has ", output.scalar_type(), ", and the input ",
                   input.scalar_type());
  TORCH_CHECK_TYPE(output.device() == input.device(), "railhead: ", call, ": the output is on ",
                   output.device(), ", and the input on ", input.device());
}

// Parts of one piece of memory, and the tensors that they are.
struct Parts {
  Tensors tensors;
  std::vector<size_t> bytes;
  size_t total = 0;

  Parts(const char* call, const Tensors& list) : tensors(list) {
    for (const at::Tensor& tensor : tensors) {
      CheckTensor(call, tensor);
      bytes.push_back(BytesOf(tensor));
      total += bytes.back();
    }
  }
  // Copies what was received to where it belongs.
  void Spread(const at::Tensor& memory) const {
    auto* from = static_cast<char*>(memory.data_ptr());
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (bytes[i] == 0) continue;
      tensors[i].copy_(at::from_blob(from, tensors[i].sizes(),
                                     tensors[i].options().memory_format(std::nullopt)));
      from += bytes[i];
    }
  }
};

// Memory on a device.
inline at::Tensor Bytes(size_t count, c10::Device device) {
  return at::empty({static_cast<int64_t>(count)}, at::device(device).dtype(at::kByte));
}

// All of them, one after the other.
inline at::Tensor Joined(const char* call, const Tensors& list) {
  Tensors flat;
  flat.reserve(list.size());
  for (const at::Tensor& tensor : list) {
    CheckSame(call, tensor, list.front());
    // As bytes, since devices do not join all types.
    flat.push_back(MakeDense(call, tensor).elements.reshape(-1).view(at::kByte));
  }
  return at::cat(flat).view(list.front().scalar_type());
}

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_ARGUMENTS_H_

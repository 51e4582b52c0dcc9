// SPDX-License-Identifier: Apache-2.0
//
// Converts torch's tensors and operators to those of the C API. Throws torch's exception types.
#ifndef RAILHEAD_PYTHON_TORCH_TYPES_H_
#define RAILHEAD_PYTHON_TORCH_TYPES_H_

#include <ATen/ATen.h>
#include <railhead/railhead.h>

#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <vector>

namespace railhead_torch {

// A tensor whose elements lie one after the other, and the tensor it stands for. They differ where
// that one is not contiguous, or is a lazy conjugate or negation.
struct Dense {
  at::Tensor elements;
  at::Tensor original;
  // Call after a result was written to `elements`.
  void CopyBack() const {
    if (!elements.is_same(original)) original.copy_(elements);
  }
};

inline void CheckTensor(const char* call, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), "railhead: ", call, ": a tensor is undefined");
  TORCH_CHECK_TYPE(tensor.device().is_cpu() || tensor.device().is_cuda(), "railhead: ", call,
                   ": the tensor is on ", tensor.device(),
                   ", and this backend takes tensors of the CPU and of CUDA devices: copy it, or "
                   "use another backend for that device");
  TORCH_CHECK_TYPE(tensor.layout() == at::kStrided, "railhead: ", call, ": the tensor is ",
                   tensor.layout(), "; make it dense first (to_dense())");
}

// True for most tensors: their elements are in memory as they are to be sent. To ask torch's
// dispatcher for such a tensor takes longer than a small transfer.
inline bool IsDense(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

inline Dense MakeDense(const char* call, const at::Tensor& tensor) {
  CheckTensor(call, tensor);
  if (IsDense(tensor)) return {tensor, tensor};
  return {tensor.resolve_conj().resolve_neg().contiguous(), tensor};
}

// A result whose old elements do not matter is not copied beforehand.
inline Dense MakeDenseResult(const char* call, const at::Tensor& tensor) {
  CheckTensor(call, tensor);
  if (IsDense(tensor)) return {tensor, tensor};
  return {at::empty(tensor.sizes(), tensor.options().memory_format(at::MemoryFormat::Contiguous)),
          tensor};
}

// The type with which elements are reduced; those of a complex number are two.
inline rhDataType_t TypeOf(const char* call, const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kChar:
      return rhInt8;
    case at::kByte:
    case at::kBool:
      return rhUint8;
    case at::kShort:
      return rhInt16;
    case at::kUInt16:
      return rhUint16;
    case at::kInt:
      return rhInt32;
    case at::kUInt32:
      return rhUint32;
    case at::kLong:
      return rhInt64;
    case at::kUInt64:
      return rhUint64;
    case at::kHalf:
      return rhFloat16;
    case at::kBFloat16:
      return rhBfloat16;
    case at::kFloat:
    case at::kComplexFloat:
      return rhFloat32;
    case at::kDouble:
    case at::kComplexDouble:
      return rhFloat64;
    case at::kFloat8_e4m3fn:
      return rhFloat8e4m3;
    case at::kFloat8_e5m2:
      return rhFloat8e5m2;
    default:
      TORCH_CHECK_TYPE(false, "railhead: ", call, ": there is no arithmetic for ",
                       tensor.scalar_type());
  }
}

inline size_t ElementsOf(const at::Tensor& tensor) {
  return static_cast<size_t>(tensor.numel()) * (tensor.is_complex() ? 2 : 1);
}

// An operator of the C API. With a factor it has to be made for the communicator.
struct Operator {
  rhRedOp_t op = rhSum;
  at::Tensor factor;  // of PREMUL_SUM
};

inline Operator OperatorOf(const char* call, const c10d::ReduceOp& op, const at::Tensor& tensor) {
  const bool truth = tensor.scalar_type() == at::kBool;
  const auto refuse = [&](const char* what) {
    TORCH_CHECK_VALUE(false, "railhead: ", call, ": there is no ", what, " of ",
                      tensor.scalar_type());
  };
  // Bytes of 0 and 1: the sum of truth values is whether any is true.
  const auto arithmetic = [&](const char* name, rhRedOp_t number, rhRedOp_t of_truth) -> Operator {
    if (tensor.is_complex() && number != rhSum && number != rhAvg) refuse(name);
    return {truth ? of_truth : number, {}};
  };
  const auto bits = [&](const char* name, rhRedOp_t number, rhRedOp_t of_truth) -> Operator {
    if (tensor.is_floating_point() || tensor.is_complex()) refuse(name);
    return {truth ? of_truth : number, {}};
  };
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return arithmetic("SUM", rhSum, rhMax);
    case c10d::ReduceOp::PRODUCT:
      return arithmetic("PRODUCT", rhProd, rhMin);
    case c10d::ReduceOp::MIN:
      return arithmetic("MIN", rhMin, rhMin);
    case c10d::ReduceOp::MAX:
      return arithmetic("MAX", rhMax, rhMax);
    case c10d::ReduceOp::AVG:
      if (truth) refuse("AVG");
      return {rhAvg, {}};
    case c10d::ReduceOp::BAND:
      return bits("BAND", rhBand, rhMin);
    case c10d::ReduceOp::BOR:
      return bits("BOR", rhBor, rhMax);
    case c10d::ReduceOp::BXOR:
      return bits("BXOR", rhBxor, rhBxor);
    case c10d::ReduceOp::PREMUL_SUM: {
      if (truth || tensor.is_complex()) refuse("PREMUL_SUM");
      // By its type's name, as the object may come from another shared object.
      const auto* const with =
          static_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
      TORCH_CHECK_VALUE(with != nullptr, "railhead: ", call, ": PREMUL_SUM has no factor");
      return {rhSum, with->tensor_factor.defined()
                         ? with->tensor_factor.to(at::kCPU, tensor.scalar_type()).contiguous()
                         : at::full({1}, with->double_factor, tensor.options().device(at::kCPU))};
    }
    default:
      TORCH_CHECK_VALUE(false, "railhead: ", call, ": unknown reduction operator");
  }
}

}  // namespace railhead_torch

#endif  // RAILHEAD_PYTHON_TORCH_TYPES_H_

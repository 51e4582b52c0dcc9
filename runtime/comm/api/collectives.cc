// SPDX-License-Identifier: Apache-2.0
//
// Collectives of the C API: check the arguments and submit the call.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "railhead/railhead.h"
#include "runtime/base/parts.h"
#include "runtime/comm/api/arguments.h"
#include "runtime/comm/api/calls.h"
#include "runtime/comm/api/handle.h"
#include "runtime/comm/api/on_host.h"
#include "runtime/comm/communicator/communicator.h"
#include "runtime/reduce/reduce.h"
#include "runtime/reduce/scalar.h"

// NOLINTBEGIN(readability-identifier-naming): these names are the C API.

namespace {

using railhead::Parts;
using railhead::collectives::Transfer;
using railhead::comm::Area;
using railhead::comm::CannotUse;
using railhead::comm::Communicator;
using railhead::comm::CopyToHost;
using railhead::comm::Guard;
using railhead::comm::ListedParts;
using railhead::comm::NullArgument;
using railhead::comm::OnHost;
using railhead::comm::Report;
using railhead::comm::Submit;
using railhead::comm::ThreadGroup;
using railhead::comm::WrongBuffers;
using railhead::comm::WrongOperator;
using railhead::comm::WrongPair;
using railhead::comm::WrongPart;
using railhead::comm::WrongRoot;
using railhead::comm::WrongType;
using railhead::reduce::Scalar;
using railhead::reduce::SizeOf;

// Number of the first operator that a program creates.
constexpr int kFirstOwnOperator = 1024;

// Returns the first status that is not OK.
absl::Status FirstOf(std::initializer_list<absl::Status> checks) {
  const auto* found =
      std::find_if(checks.begin(), checks.end(), [](const auto& check) { return !check.ok(); });
  return found == checks.end() ? absl::OkStatus() : *found;
}

rhResult_t ReportWrong(const char* call, rhComm_t comm, const absl::Status& wrong) {
  return Report(comm, rhInvalidArgument, absl::StrCat(call, ": ", wrong.message()));
}

// Submits a collective. `prepare` sets the error in the arguments, if any, and returns the function
// that runs the call.
template <class Prepare>
rhResult_t Collective(const char* call, rhComm_t comm, rhStream_t stream, Prepare prepare) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse(call, comm); cannot != rhSuccess) return cannot;
    absl::Status wrong;
    const auto body = prepare(wrong);
    if (!wrong.ok()) return ReportWrong(call, comm, wrong);
    return Submit(call, comm, stream, body);
  });
}

std::byte* Bytes(void* buffer) { return static_cast<std::byte*>(buffer); }

size_t Rank(rhComm_t comm) { return static_cast<size_t>(comm->communicator->rank()); }
size_t Ranks(rhComm_t comm) { return static_cast<size_t>(comm->communicator->world_size()); }
bool IsRoot(rhComm_t comm, int root) { return comm->communicator->rank() == root; }
absl::Status WrongRoot(rhComm_t comm, int root) {
  return WrongRoot(root, comm->communicator->world_size(), "root");
}

// Implementation of an operator of the API: the communicator's operator, and the factor that
// multiplies this rank's values first.
struct Operator {
  rhRedOp_t op = rhSum;
  std::optional<Scalar> factor;
};

// Sets `use`, or returns why there is no such operator.
absl::Status Find(rhComm_t comm, rhDataType_t type, rhRedOp_t op, Operator& use) {
  if (op < kFirstOwnOperator) {
    use.op = op;
    return WrongOperator(type, op);
  }
  const std::lock_guard<std::mutex> lock(comm->state);
  const auto index = static_cast<size_t>(op - kFirstOwnOperator);
  if (index >= comm->operators.size() || !comm->operators[index].has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("op ", op, " does not exist in this communicator"));
  }
  const rhComm::Operator& own = *comm->operators[index];
  if (own.type != type) {
    return absl::InvalidArgumentError(
        absl::StrCat("op ", op, " was made for datatype ", own.type, ", not ", type));
  }
  use.factor = own.factor;
  return absl::OkStatus();
}

// Multiplies `count` values by the factor.
void Multiply(rhDataType_t type, const Scalar& factor, const std::byte* from, std::byte* to,
              size_t count) {
  railhead::reduce::Reduce({type, rhSum, 1, absl::MakeConstSpan(&factor, 1)}, {from}, to, count,
                           railhead::reduce::Stores::kNormal);
}

// Input of a collective in place of `send`, if an operator multiplies and there is no other memory
// for the products.
class Multiplied {
 public:
  Multiplied(const std::optional<Scalar>& factor, rhDataType_t type, const std::byte* send,
             size_t count)
      : data_(send) {
    if (!factor.has_value() || count == 0) return;
    products_ = std::make_unique_for_overwrite<std::byte[]>(count * SizeOf(type));
    Multiply(type, *factor, send, products_.get(), count);
    data_ = products_.get();
  }
  const std::byte* data() const { return data_; }

 private:
  std::unique_ptr<std::byte[]> products_;
  const std::byte* data_;
};

rhResult_t AddTransfer(const char* call, Transfer::Direction direction, const void* buffer,
                       size_t count, rhDataType_t datatype, int peer, rhComm_t comm,
                       rhStream_t stream) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse(call, comm); cannot != rhSuccess) return cannot;
    const bool sends = direction == Transfer::Direction::kSend;
    const absl::Status wrong =
        FirstOf({WrongType(datatype), WrongRoot(peer, comm->communicator->world_size(), "peer"),
                 WrongBuffers({.send = buffer,
                               .receive = buffer,
                               .count = count,
                               .send_parts = sends ? size_t{1} : 0,
                               .receive_parts = sends ? 0 : size_t{1}},
                              SizeOf(datatype))});
    if (!wrong.ok()) return ReportWrong(call, comm, wrong);
    // A send does not write to its buffer.
    const Transfer transfer = {direction, peer, Bytes(const_cast<void*>(buffer)),
                               count * SizeOf(datatype)};
    if (ThreadGroup().depth > 0) {
      auto& part = ThreadGroup().Of(call, comm, stream);
      if (part.transfers.empty()) part.transfer_name = call;
      part.transfers.push_back(transfer);
      return rhSuccess;
    }
    if (const absl::Status own =
            railhead::collectives::WrongOwn(comm->communicator->rank(), {&transfer, 1});
        !own.ok()) {
      return ReportWrong(call, comm, own);
    }
    return Submit(call, comm, stream, [call, transfer](Communicator& communicator) {
      return railhead::comm::Transfer(call, communicator, {transfer});
    });
  });
}

}  // namespace

rhResult_t rhAllReduce(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                       rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  return Collective("rhAllReduce", comm, stream, [&](absl::Status& wrong) {
    Operator use;
    wrong = FirstOf(
        {WrongType(datatype), Find(comm, datatype, op, use),
         WrongBuffers({.send = sendbuf, .receive = recvbuf, .count = count}, SizeOf(datatype))});
    return [=](Communicator& communicator) {
      const size_t bytes = count * SizeOf(datatype);
      return OnHost("rhAllReduce", communicator, {sendbuf, bytes}, {recvbuf, bytes},
                    [&](const std::byte* send, std::byte* receive) {
                      if (use.factor.has_value()) {
                        Multiply(datatype, *use.factor, send, receive, count);
                        send = receive;
                      }
                      return communicator.AllReduce(datatype, use.op, send, receive, count);
                    });
    };
  });
}

rhResult_t rhAllGather(const void* sendbuf, void* recvbuf, size_t sendcount, rhDataType_t datatype,
                       rhComm_t comm, rhStream_t stream) {
  return Collective("rhAllGather", comm, stream, [&](absl::Status& wrong) {
    const Parts parts(Ranks(comm), Ranks(comm) * sendcount * SizeOf(datatype));
    wrong = FirstOf({WrongType(datatype), WrongBuffers({.send = sendbuf,
                                                        .receive = recvbuf,
                                                        .count_name = "sendcount",
                                                        .count = sendcount,
                                                        .receive_parts = Ranks(comm),
                                                        .in_place_part = Rank(comm)},
                                                       SizeOf(datatype))});
    return [=](Communicator& communicator) {
      return OnHost("rhAllGather", communicator, {sendbuf, parts.largest()},
                    {recvbuf, parts.total()}, [&](const std::byte* send, std::byte* receive) {
                      return communicator.AllGather(send, receive, parts);
                    });
    };
  });
}

rhResult_t rhAllGatherv(const void* sendbuf, void* recvbuf, const size_t* recvcounts,
                        const size_t* displs, rhDataType_t datatype, rhComm_t comm,
                        rhStream_t stream) {
  return Collective("rhAllGatherv", comm, stream, [&](absl::Status& wrong) {
    const ListedParts listed("recvcounts", recvcounts, "displs", displs, Ranks(comm),
                             SizeOf(datatype));
    wrong = FirstOf({WrongType(datatype), listed.wrong(), listed.Overlap(),
                     WrongPart({"recvbuf", recvbuf}, listed, {"sendbuf", sendbuf}, Rank(comm),
                               SizeOf(datatype))});
    return [=, rank = Rank(comm)](Communicator& communicator) {
      const Parts parts = listed.InBytes();
      return OnHost("rhAllGatherv", communicator, {sendbuf, parts[rank].size},
                    {recvbuf, listed.extent(), &parts},
                    [&](const std::byte* send, std::byte* receive) {
                      return communicator.AllGather(send, receive, parts);
                    });
    };
  });
}

rhResult_t rhReduceScatter(const void* sendbuf, void* recvbuf, size_t recvcount,
                           rhDataType_t datatype, rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  return Collective("rhReduceScatter", comm, stream, [&](absl::Status& wrong) {
    Operator use;
    const Parts parts(Ranks(comm), Ranks(comm) * recvcount);
    wrong = FirstOf({WrongType(datatype), Find(comm, datatype, op, use),
                     WrongBuffers({.send = sendbuf,
                                   .receive = recvbuf,
                                   .count_name = "recvcount",
                                   .count = recvcount,
                                   .send_parts = Ranks(comm),
                                   .in_place_part = Rank(comm)},
                                  SizeOf(datatype))});
    return [=](Communicator& communicator) {
      const size_t element = SizeOf(datatype);
      return OnHost(
          "rhReduceScatter", communicator, {sendbuf, parts.total() * element},
          {recvbuf, parts.largest() * element}, [&](const std::byte* values, std::byte* receive) {
            const Multiplied send(use.factor, datatype, values, parts.total());
            return communicator.ReduceScatter(datatype, use.op, send.data(), receive, parts);
          });
    };
  });
}

rhResult_t rhReduceScatterv(const void* sendbuf, void* recvbuf, const size_t* recvcounts,
                            rhDataType_t datatype, rhRedOp_t op, rhComm_t comm, rhStream_t stream) {
  return Collective("rhReduceScatterv", comm, stream, [&](absl::Status& wrong) {
    Operator use;
    const ListedParts listed("recvcounts", recvcounts, "", nullptr, Ranks(comm), SizeOf(datatype));
    wrong = FirstOf({WrongType(datatype), Find(comm, datatype, op, use), listed.wrong(),
                     WrongPart({"sendbuf", sendbuf}, listed, {"recvbuf", recvbuf}, Rank(comm),
                               SizeOf(datatype))});
    return [=, rank = Rank(comm)](Communicator& communicator) {
      const Parts parts = listed.InValues();
      return OnHost(
          "rhReduceScatterv", communicator, {sendbuf, listed.extent()},
          {recvbuf, listed.InBytes()[rank].size}, [&](const std::byte* values, std::byte* receive) {
            const Multiplied send(use.factor, datatype, values, parts.total());
            return communicator.ReduceScatter(datatype, use.op, send.data(), receive, parts);
          });
    };
  });
}

rhResult_t rhBroadcast(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                       int root, rhComm_t comm, rhStream_t stream) {
  return Collective("rhBroadcast", comm, stream, [&](absl::Status& wrong) {
    wrong = FirstOf({WrongType(datatype), WrongRoot(comm, root),
                     WrongBuffers({.send = sendbuf,
                                   .receive = recvbuf,
                                   .count = count,
                                   .send_parts = IsRoot(comm, root) ? size_t{1} : 0},
                                  SizeOf(datatype))});
    return [=, is_root = IsRoot(comm, root)](Communicator& communicator) {
      const size_t bytes = count * SizeOf(datatype);
      return railhead::comm::Broadcast("rhBroadcast", communicator, {sendbuf, is_root ? bytes : 0},
                                       {recvbuf, bytes}, root);
    };
  });
}

rhResult_t rhReduce(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                    rhRedOp_t op, int root, rhComm_t comm, rhStream_t stream) {
  return Collective("rhReduce", comm, stream, [&](absl::Status& wrong) {
    Operator use;
    wrong = FirstOf({WrongType(datatype), Find(comm, datatype, op, use), WrongRoot(comm, root),
                     WrongBuffers({.send = sendbuf,
                                   .receive = recvbuf,
                                   .count = count,
                                   .receive_parts = IsRoot(comm, root) ? size_t{1} : 0},
                                  SizeOf(datatype))});
    return [=, is_root = IsRoot(comm, root)](Communicator& communicator) {
      const size_t bytes = count * SizeOf(datatype);
      return OnHost("rhReduce", communicator, {sendbuf, bytes}, {recvbuf, is_root ? bytes : 0},
                    [&](const std::byte* values, std::byte* receive) {
                      const Multiplied send(use.factor, datatype, values, count);
                      return communicator.Reduce(datatype, use.op, send.data(), receive, count,
                                                 root);
                    });
    };
  });
}

rhResult_t rhAlltoAll(const void* sendbuf, void* recvbuf, size_t count, rhDataType_t datatype,
                      rhComm_t comm, rhStream_t stream) {
  return Collective("rhAlltoAll", comm, stream, [&](absl::Status& wrong) {
    const Parts parts(Ranks(comm), Ranks(comm) * count * SizeOf(datatype));
    wrong = FirstOf({WrongType(datatype), WrongBuffers({.send = sendbuf,
                                                        .receive = recvbuf,
                                                        .count = count,
                                                        .send_parts = Ranks(comm),
                                                        .receive_parts = Ranks(comm)},
                                                       SizeOf(datatype))});
    return [=](Communicator& communicator) {
      const Area all = {recvbuf, parts.total()};
      return OnHost("rhAlltoAll", communicator, {sendbuf, parts.total()}, all,
                    [&](const std::byte* send, std::byte* receive) {
                      if (send != receive) {
                        return communicator.AllToAll(send, parts, receive, parts);
                      }
                      const std::vector<std::byte> copy(send, send + parts.total());
                      return communicator.AllToAll(copy.data(), parts, receive, parts);
                    });
    };
  });
}

rhResult_t rhAlltoAllv(const void* sendbuf, const size_t* sendcounts, const size_t* sdispls,
                       void* recvbuf, const size_t* recvcounts, const size_t* rdispls,
                       rhDataType_t datatype, rhComm_t comm, rhStream_t stream) {
  return Collective("rhAlltoAllv", comm, stream, [&](absl::Status& wrong) {
    const size_t element = SizeOf(datatype);
    const ListedParts sends("sendcounts", sendcounts, "sdispls", sdispls, Ranks(comm), element);
    const ListedParts receives("recvcounts", recvcounts, "rdispls", rdispls, Ranks(comm), element);
    wrong =
        FirstOf({WrongType(datatype), sends.wrong(), receives.wrong(), receives.Overlap(),
                 WrongPair({"sendbuf", sendbuf}, sends, {"recvbuf", recvbuf}, receives, element)});
    if (wrong.ok() && sends.InBytes()[Rank(comm)].size != receives.InBytes()[Rank(comm)].size) {
      wrong = absl::InvalidArgumentError(
          "sendcounts and recvcounts of this rank's part for itself differ");
    }
    return [=](Communicator& communicator) {
      const Parts from = sends.InBytes();
      const Parts to = receives.InBytes();
      return OnHost("rhAlltoAllv", communicator, {sendbuf, sends.extent(), &from},
                    {recvbuf, receives.extent(), &to},
                    [&](const std::byte* send, std::byte* receive) {
                      return communicator.AllToAll(send, from, receive, to);
                    });
    };
  });
}

rhResult_t rhGather(const void* sendbuf, void* recvbuf, size_t sendcount, rhDataType_t datatype,
                    int root, rhComm_t comm, rhStream_t stream) {
  return Collective("rhGather", comm, stream, [&](absl::Status& wrong) {
    wrong = FirstOf({WrongType(datatype), WrongRoot(comm, root),
                     WrongBuffers({.send = sendbuf,
                                   .receive = recvbuf,
                                   .count_name = "sendcount",
                                   .count = sendcount,
                                   .receive_parts = IsRoot(comm, root) ? Ranks(comm) : 0,
                                   .in_place_part = Rank(comm)},
                                  SizeOf(datatype))});
    return [=, all = IsRoot(comm, root) ? Ranks(comm) : 0](Communicator& communicator) {
      const size_t bytes = sendcount * SizeOf(datatype);
      return OnHost("rhGather", communicator, {sendbuf, bytes}, {recvbuf, all * bytes},
                    [&](const std::byte* send, std::byte* receive) {
                      return communicator.Gather(send, receive, bytes, root);
                    });
    };
  });
}

rhResult_t rhScatter(const void* sendbuf, void* recvbuf, size_t recvcount, rhDataType_t datatype,
                     int root, rhComm_t comm, rhStream_t stream) {
  return Collective("rhScatter", comm, stream, [&](absl::Status& wrong) {
    wrong = FirstOf({WrongType(datatype), WrongRoot(comm, root),
                     WrongBuffers({.send = sendbuf,
                                   .receive = recvbuf,
                                   .count_name = "recvcount",
                                   .count = recvcount,
                                   .send_parts = IsRoot(comm, root) ? Ranks(comm) : 0,
                                   .in_place_part = Rank(comm)},
                                  SizeOf(datatype))});
    return [=, all = IsRoot(comm, root) ? Ranks(comm) : 0](Communicator& communicator) {
      const size_t bytes = recvcount * SizeOf(datatype);
      return OnHost("rhScatter", communicator, {sendbuf, all * bytes}, {recvbuf, bytes},
                    [&](const std::byte* send, std::byte* receive) {
                      return communicator.Scatter(send, receive, bytes, root);
                    });
    };
  });
}

rhResult_t rhBarrier(rhComm_t comm, rhStream_t stream) {
  return Collective("rhBarrier", comm, stream, [](absl::Status& /*wrong*/) {
    return [](Communicator& communicator) { return communicator.Barrier(); };
  });
}

rhResult_t rhSend(const void* sendbuf, size_t count, rhDataType_t datatype, int peer, rhComm_t comm,
                  rhStream_t stream) {
  return AddTransfer("rhSend", Transfer::Direction::kSend, sendbuf, count, datatype, peer, comm,
                     stream);
}

rhResult_t rhRecv(void* recvbuf, size_t count, rhDataType_t datatype, int peer, rhComm_t comm,
                  rhStream_t stream) {
  return AddTransfer("rhRecv", Transfer::Direction::kReceive, recvbuf, count, datatype, peer, comm,
                     stream);
}

rhResult_t rhRedOpCreatePreMulSum(rhRedOp_t* op, void* scalar, rhDataType_t datatype,
                                  rhScalarResidence_t /*residence*/, rhComm_t comm) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhRedOpCreatePreMulSum", comm); cannot != rhSuccess) {
      return cannot;
    }
    if (op == nullptr) return NullArgument(comm, "rhRedOpCreatePreMulSum", "op");
    if (scalar == nullptr) return NullArgument(comm, "rhRedOpCreatePreMulSum", "scalar");
    const absl::Status wrong = WrongType(datatype);
    if (!wrong.ok()) return ReportWrong("rhRedOpCreatePreMulSum", comm, wrong);
    // The factor may be in GPU memory, whatever the residence argument is.
    alignas(alignof(std::max_align_t)) std::array<std::byte, sizeof(uint64_t)> copy{};
    const absl::Status copied =
        CopyToHost(*comm->communicator, scalar, SizeOf(datatype), copy.data());
    if (!copied.ok()) {
      return Report(comm, rhSystemError,
                    absl::StrCat("rhRedOpCreatePreMulSum: scalar: ", copied.message()));
    }
    const std::lock_guard<std::mutex> lock(comm->state);
    auto& operators = comm->operators;
    auto place = std::find(operators.begin(), operators.end(), std::nullopt);
    if (place == operators.end()) place = operators.emplace(place);
    place->emplace(rhComm::Operator{datatype, railhead::reduce::ReadScalar(datatype, copy.data())});
    *op = static_cast<rhRedOp_t>(kFirstOwnOperator + (place - operators.begin()));
    return rhSuccess;
  });
}

rhResult_t rhRedOpDestroy(rhRedOp_t op, rhComm_t comm) {
  return Guard(comm, [&] {
    if (const rhResult_t cannot = CannotUse("rhRedOpDestroy", comm); cannot != rhSuccess) {
      return cannot;
    }
    {
      const std::lock_guard<std::mutex> lock(comm->state);
      const auto index = static_cast<size_t>(op - kFirstOwnOperator);
      if (op >= kFirstOwnOperator && index < comm->operators.size() &&
          comm->operators[index].has_value()) {
        comm->operators[index].reset();
        return rhSuccess;
      }
    }
    return Report(comm, rhInvalidArgument,
                  absl::StrCat("rhRedOpDestroy: op ", static_cast<int>(op),
                               " is not one of rhRedOpCreatePreMulSum"));
  });
}

// NOLINTEND(readability-identifier-naming)

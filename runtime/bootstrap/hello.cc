// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/hello.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"

namespace railhead::bootstrap {

std::string EncodeHello(const Hello& hello) {
  WireWriter writer;
  writer.U32(hello.version);
  writer.U32(hello.world_size);
  writer.U32(hello.rank);
  writer.String(hello.job);
  writer.String(hello.name);
  return writer.Take();
}

absl::StatusOr<Hello> ParseHello(absl::string_view payload) {
  WireReader reader(payload);
  Hello hello;
  hello.version = reader.U32();
  hello.world_size = reader.U32();
  hello.rank = reader.U32();
  hello.job = reader.String(kHelloLimit);
  hello.name = reader.String(kHelloLimit);
  // Another version may have put more behind; Judge refuses it by its number.
  if (!reader.ok() || (hello.version == kProtocolVersion && !reader.Complete())) {
    return absl::InvalidArgumentError("a malformed introduction");
  }
  return hello;
}

std::string EncodeRefusal(const Refusal& refusal) {
  WireWriter writer;
  writer.U8(refusal.final ? 1 : 0);
  writer.String(refusal.text);
  return writer.Take();
}

absl::StatusOr<Refusal> ParseRefusal(absl::string_view payload) {
  WireReader reader(payload);
  Refusal refusal;
  refusal.final = reader.U8() != 0;
  refusal.text = reader.String(kHelloLimit);
  if (!reader.Complete()) return absl::InvalidArgumentError("a malformed refusal");
  return refusal;
}

std::optional<Refusal> Judge(const Hello& hello, absl::string_view job,
                             const std::vector<bool>& present) {
  if (hello.version != kProtocolVersion) {
    return Refusal{true,
                   absl::StrCat("rank ", hello.rank, " speaks version ", hello.version,
                                " of the rendezvous, rank 0 speaks version ", kProtocolVersion,
                                ": use the same Railhead release in all pods")};
  }
  if (hello.job != job) {
    return Refusal{false, "it belongs to another job (RAILHEAD_JOB or the unique id differs)"};
  }
  if (hello.world_size != present.size()) {
    return Refusal{true, absl::StrCat("rank ", hello.rank, " has WORLD_SIZE=", hello.world_size,
                                      ", rank 0 has WORLD_SIZE=", present.size(),
                                      ": set the same on all ranks")};
  }
  if (hello.rank >= present.size()) {
    return Refusal{true,
                   absl::StrCat("rank ", hello.rank, " is not below WORLD_SIZE=", present.size())};
  }
  if (present[hello.rank]) {
    return Refusal{false, absl::StrCat("rank ", hello.rank,
                                       " is already here: two processes have the same RANK")};
  }
  return std::nullopt;
}

}  // namespace railhead::bootstrap

// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/agreement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/wire.h"
#include "runtime/comm/setup/partners.h"
#include "runtime/comm/setup/start_warnings.h"

namespace railhead::comm {
namespace {

constexpr size_t kAddressLimit = 4096;
constexpr size_t kReasonLimit = 65536;
constexpr size_t kKeyLimit = 64;

void Write(WireWriter& writer, const std::vector<std::string>& texts) {
  writer.U32(static_cast<uint32_t>(texts.size()));
  for (const std::string& text : texts) writer.String(text);
}

std::vector<std::string> ReadTexts(WireReader& reader, size_t limit) {
  std::vector<std::string> texts;
  const uint32_t count = reader.U32();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) texts.push_back(reader.String(limit));
  return texts;
}

void Write(WireWriter& writer, const Whereabouts& whereabouts) {
  writer.String(whereabouts.name);
  Write(writer, whereabouts.addresses);
  writer.U64(whereabouts.closed);
}

Whereabouts ReadWhereabouts(WireReader& reader) {
  Whereabouts whereabouts;
  whereabouts.name = reader.String(kAddressLimit);
  whereabouts.addresses = ReadTexts(reader, kAddressLimit);
  whereabouts.closed = reader.U64();
  return whereabouts;
}

// The ranks of a place are mostly consecutive, or every n-th one, so they are encoded as runs with
// a constant distance.
void WritePlace(WireWriter& writer, const std::vector<int>& ranks) {
  WireWriter runs;
  uint32_t count = 0;
  for (size_t first = 0; first < ranks.size(); ++count) {
    const int step = first + 1 < ranks.size() ? ranks[first + 1] - ranks[first] : 1;
    size_t next = first + 1;
    while (next < ranks.size() && ranks[next] - ranks[next - 1] == step) ++next;
    runs.U32(static_cast<uint32_t>(ranks[first]));
    runs.U32(static_cast<uint32_t>(step));
    runs.U32(static_cast<uint32_t>(next - first));
    first = next;
  }
  writer.U32(count);
  writer.Raw(runs.Take());
}

// Returns false unless these are ranks in ascending order.
bool ReadPlace(WireReader& reader, int world_size, std::vector<int>& ranks) {
  const auto world = static_cast<uint64_t>(world_size);
  const uint32_t runs = reader.U32();
  for (uint32_t i = 0; i < runs; ++i) {
    const uint64_t first = reader.U32();
    const uint64_t step = reader.U32();
    const uint64_t count = reader.U32();
    if (!reader.ok() || step == 0 || step > world || count == 0 || count > world ||
        first + (count - 1) * step >= world ||
        (!ranks.empty() && static_cast<int64_t>(first) <= ranks.back())) {
      return false;
    }
    for (uint64_t k = 0; k < count; ++k) ranks.push_back(static_cast<int>(first + k * step));
  }
  return reader.ok() && !ranks.empty();
}

void Write(WireWriter& writer, const Decision& decision) {
  writer.U8(decision.shm ? 1 : 0);
  writer.U8(decision.crowded ? 1 : 0);
  writer.U8(decision.all_met ? 1 : 0);
  writer.U8(decision.verbs ? 1 : 0);
  writer.U8(static_cast<uint8_t>(decision.protection));
  writer.U8(static_cast<uint8_t>(decision.fallback));
  writer.U32(static_cast<uint32_t>(decision.places.size()));
  for (const std::vector<int>& place : decision.places) WritePlace(writer, place);
  writer.String(decision.flat_reason.substr(0, kReasonLimit));
  writer.U32(static_cast<uint32_t>(decision.rails.size()));
  for (const int rail : decision.rails) writer.U32(static_cast<uint32_t>(rail));
  writer.String(decision.degraded_reason.substr(0, kReasonLimit));
}

bool ReadFlag(WireReader& reader, bool& valid) {
  const uint8_t flag = reader.U8();
  valid = valid && flag <= 1;
  return flag == 1;
}

// Returns false for input that Write does not produce.
bool Read(WireReader& reader, int world_size, Decision& decision) {
  bool valid = true;
  decision.shm = ReadFlag(reader, valid);
  decision.crowded = ReadFlag(reader, valid);
  decision.all_met = ReadFlag(reader, valid);
  decision.verbs = ReadFlag(reader, valid);
  const uint8_t protection = reader.U8();
  const uint8_t fallback = reader.U8();
  const uint32_t places = reader.U32();
  if (!valid || protection > static_cast<uint8_t>(transport::FrameProtection::kAes256Gcm) ||
      fallback > static_cast<uint8_t>(config::Fallback::kFail) ||
      places > static_cast<uint32_t>(world_size)) {
    return false;
  }
  decision.protection = static_cast<transport::FrameProtection>(protection);
  decision.fallback = static_cast<config::Fallback>(fallback);
  for (uint32_t i = 0; i < places; ++i) {
    if (!ReadPlace(reader, world_size, decision.places.emplace_back())) return false;
  }
  decision.flat_reason = reader.String(kReasonLimit);
  const uint32_t rails = reader.U32();
  for (uint32_t i = 0; i < rails && reader.ok(); ++i) {
    decision.rails.push_back(static_cast<int>(reader.U32()));
  }
  decision.degraded_reason = reader.String(kReasonLimit);
  return reader.ok();
}

}  // namespace

std::string Encode(const Whereabouts& whereabouts) {
  WireWriter writer;
  Write(writer, whereabouts);
  return writer.Take();
}

absl::StatusOr<Whereabouts> ParseWhereabouts(absl::string_view bytes) {
  WireReader reader(bytes);
  Whereabouts whereabouts = ReadWhereabouts(reader);
  if (!reader.Complete()) return absl::InternalError("a rank's whereabouts are malformed");
  return whereabouts;
}

std::string Encode(const Statement& statement) {
  WireWriter writer;
  writer.String(statement.report);
  Write(writer, statement.addresses);
  writer.U64(statement.closed);
  writer.U32(static_cast<uint32_t>(statement.wanted.size()));
  for (const int rank : statement.wanted) writer.U32(static_cast<uint32_t>(rank));
  return writer.Take();
}

absl::StatusOr<Statement> ParseStatement(absl::string_view bytes) {
  WireReader reader(bytes);
  Statement statement;
  statement.report = reader.String(bytes.size());
  statement.addresses = ReadTexts(reader, kAddressLimit);
  statement.closed = reader.U64();
  const uint32_t wanted = reader.U32();
  for (uint32_t i = 0; i < wanted && reader.ok(); ++i) {
    statement.wanted.push_back(static_cast<int>(reader.U32()));
  }
  if (!reader.Complete()) return absl::InternalError("a rank's statement is malformed");
  return statement;
}

std::string Encode(const Agreement& agreement) {
  WireWriter writer;
  Write(writer, agreement.decision);
  writer.U32(static_cast<uint32_t>(agreement.pods));
  writer.U32(static_cast<uint32_t>(agreement.usual.size()));
  for (const RailReport& rail : agreement.usual) {
    writer.U32(static_cast<uint32_t>(rail.rail));
    writer.String(rail.rate);
    writer.U32(static_cast<uint32_t>(rail.mtu));
  }
  for (const std::string& address : agreement.rejoin_addresses) {
    writer.U8(static_cast<uint8_t>(address.size()));
    writer.Raw(address);
  }
  writer.String(agreement.key);
  return writer.Take();
}

absl::StatusOr<Agreement> ParseAgreement(absl::string_view bytes, int world_size) {
  absl::Status malformed = absl::InternalError("rank 0's decision is malformed");
  WireReader reader(bytes);
  Agreement agreement;
  if (!Read(reader, world_size, agreement.decision)) return malformed;
  agreement.pods = static_cast<int>(reader.U32());
  const uint32_t usual = reader.U32();
  for (uint32_t i = 0; i < usual && reader.ok(); ++i) {
    RailReport& rail = agreement.usual.emplace_back();
    rail.rail = static_cast<int>(reader.U32());
    rail.rate = reader.String(kAddressLimit);
    rail.mtu = static_cast<int>(reader.U32());
  }
  for (int rank = 0; rank < world_size && reader.ok(); ++rank) {
    const uint8_t size = reader.U8();
    if (size > kRejoinAddressLimit) return malformed;
    agreement.rejoin_addresses.emplace_back(reader.Raw(size));
  }
  agreement.key = reader.String(kKeyLimit);
  if (!reader.Complete()) return malformed;
  return agreement;
}

std::string Encode(const Particulars& particulars) {
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(particulars.partner));
  writer.U32(static_cast<uint32_t>(particulars.wanted.size()));
  for (const auto& [rank, whereabouts] : particulars.wanted) {
    writer.U32(static_cast<uint32_t>(rank));
    Write(writer, whereabouts);
  }
  return writer.Take();
}

absl::StatusOr<Particulars> ParseParticulars(absl::string_view bytes, int world_size) {
  absl::Status malformed = absl::InternalError("rank 0's answer to this rank is malformed");
  const auto world = static_cast<uint32_t>(world_size);
  WireReader reader(bytes);
  const uint32_t partner = reader.U32();
  const uint32_t count = reader.U32();
  if (!reader.ok() || partner >= world || count > world) return malformed;
  Particulars particulars;
  particulars.partner = static_cast<int>(partner);
  int64_t previous = -1;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t rank = reader.U32();
    if (!reader.ok() || rank >= world || static_cast<int64_t>(rank) <= previous) return malformed;
    particulars.wanted[static_cast<int>(rank)] = ReadWhereabouts(reader);
    previous = rank;
  }
  if (!reader.Complete()) return malformed;
  return particulars;
}

absl::StatusOr<bootstrap::Node::Answer> Coordinator::Answer(
    const std::vector<std::string>& statements) {
  const size_t world = statements.size();
  const bool first = reports_.empty();
  reports_.resize(world);
  bool changed = false;
  std::vector<Statement> said;
  said.reserve(world);
  for (size_t rank = 0; rank < world; ++rank) {
    absl::StatusOr<Statement> statement = ParseStatement(statements[rank]);
    if (!statement.ok()) return statement.status();
    said.push_back(*std::move(statement));
    if (said.back().report.empty()) {
      if (!first) continue;
      return absl::InternalError(absl::StrCat("rank ", rank, " has sent no description of itself"));
    }
    absl::StatusOr<RankReport> report = ParseReport(said.back().report);
    if (!report.ok()) return report.status();
    reports_[rank] = *std::move(report);
    changed = true;
  }
  bootstrap::Node::Answer answer;
  if (changed) {
    absl::StatusOr<Decision> decision = Decide(reports_);
    if (!decision.ok()) return decision.status();
    const std::vector<int> pods = PlaceNumbers(reports_);
    Agreement agreement{*std::move(decision),
                        *std::max_element(pods.begin(), pods.end()) + 1,
                        UsualRails(reports_),
                        {},
                        key_};
    for (const RankReport& report : reports_) {
      agreement.rejoin_addresses.push_back(report.rejoin_address);
    }
    partners_ = Partners(pods);
    answer.for_all = Encode(agreement);
  }
  answer.for_each.reserve(world);
  for (size_t rank = 0; rank < world; ++rank) {
    Particulars particulars;
    particulars.partner = partners_[rank];
    for (const int wanted : said[rank].wanted) {
      const auto index = static_cast<size_t>(wanted);
      if (wanted < 0 || index >= world) {
        return absl::InternalError(
            absl::StrCat(reports_[rank].name, " wants to know where rank ", wanted, " is"));
      }
      particulars.wanted[wanted] = {reports_[index].name, said[index].addresses,
                                    said[index].closed};
    }
    answer.for_each.push_back(Encode(particulars));
  }
  return answer;
}

}  // namespace railhead::comm

// SPDX-License-Identifier: Apache-2.0
#include "runtime/preflight/facts.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "fabric/rail_limit.h"
#include "runtime/base/wire.h"

namespace railhead::preflight {
namespace {

constexpr size_t kTextLimit = 1024;
// Longer lists do not happen: a rank has few rails, and at most 63 neighbours.
constexpr uint32_t kMostCounters = 64;
constexpr uint32_t kMostPings = 65536;

class Writer {
 public:
  void Text(absl::string_view text) { out_.String(text.substr(0, kTextLimit)); }
  void Flag(bool flag) { out_.U8(flag ? 1 : 0); }
  void Number(int number) { out_.U32(static_cast<uint32_t>(number)); }
  void Big(uint64_t number) { out_.U64(number); }
  std::string Take() { return out_.Take(); }

 private:
  WireWriter out_;
};

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : in_(bytes) {}
  std::string Text() { return in_.String(kTextLimit); }
  bool Flag() {
    const uint8_t value = in_.U8();
    good_ = good_ && value <= 1;
    return value == 1;
  }
  int Number() { return static_cast<int>(in_.U32()); }
  uint64_t Big() { return in_.U64(); }
  uint32_t Count(uint32_t most) {
    const uint32_t count = in_.U32();
    good_ = good_ && count <= most;
    return ok() ? count : 0;
  }
  bool ok() const { return good_ && in_.ok(); }
  bool Complete() const { return good_ && in_.Complete(); }

 private:
  WireReader in_;
  bool good_ = true;
};

void Write(Writer& out, const PortFacts& port) {
  out.Number(port.mtu);
  out.Number(port.largest_mtu);
  out.Text(port.gid_kind);
  out.Number(static_cast<int>(port.gid_index));
  out.Text(port.gid_address);
  out.Flag(port.roce_v1);
  out.Big(port.registers);
  out.Big(port.least_bytes);
}

PortFacts ReadPort(Reader& in) {
  PortFacts port;
  port.mtu = in.Number();
  port.largest_mtu = in.Number();
  port.gid_kind = in.Text();
  port.gid_index = static_cast<uint32_t>(in.Number());
  port.gid_address = in.Text();
  port.roce_v1 = in.Flag();
  port.registers = in.Big();
  port.least_bytes = in.Big();
  return port;
}

void Write(Writer& out, const RailFacts& rail) {
  out.Number(rail.name.rail);
  out.Text(rail.name.device);
  out.Number(rail.name.port);
  out.Text(rail.name.transport);
  for (const std::string* text :
       {&rail.trouble, &rail.state, &rail.physical, &rail.link_layer, &rail.rate, &rail.device_node,
        &rail.device_node_trouble, &rail.ecn, &rail.attached_elsewhere, &rail.leaves_elsewhere}) {
    out.Text(*text);
  }
  out.Flag(rail.has_node_gid);
  out.Flag(rail.port.has_value());
  if (rail.port.has_value()) Write(out, *rail.port);
  out.Flag(rail.counted);
  out.Number(static_cast<int>(rail.growth.size()));
  for (const Growth& growth : rail.growth) {
    out.Text(growth.counter);
    out.Big(growth.by);
  }
}

RailFacts ReadRail(Reader& in) {
  RailFacts rail;
  rail.name.rail = in.Number();
  rail.name.device = in.Text();
  rail.name.port = in.Number();
  rail.name.transport = in.Text();
  for (std::string* text :
       {&rail.trouble, &rail.state, &rail.physical, &rail.link_layer, &rail.rate, &rail.device_node,
        &rail.device_node_trouble, &rail.ecn, &rail.attached_elsewhere, &rail.leaves_elsewhere}) {
    *text = in.Text();
  }
  rail.has_node_gid = in.Flag();
  if (in.Flag()) rail.port = ReadPort(in);
  rail.counted = in.Flag();
  const uint32_t counters = in.Count(kMostCounters);
  for (uint32_t i = 0; i < counters && in.ok(); ++i) {
    Growth& growth = rail.growth.emplace_back();
    growth.counter = in.Text();
    growth.by = in.Big();
  }
  return rail;
}

}  // namespace

bool RailFacts::operator==(const RailFacts& other) const {
  const auto all = [](const RailFacts& rail) {
    return std::tie(rail.name.rail, rail.name.device, rail.name.port, rail.name.transport,
                    rail.trouble, rail.state, rail.physical, rail.link_layer, rail.rate, rail.port,
                    rail.device_node, rail.device_node_trouble, rail.ecn, rail.attached_elsewhere,
                    rail.leaves_elsewhere, rail.has_node_gid, rail.counted, rail.growth);
  };
  return all(*this) == all(other);
}

std::string Encode(const RankFacts& facts) {
  Writer out;
  out.Text(facts.name);
  out.Big(facts.memlock);
  out.Big(facts.registers);
  out.Big(facts.least_bytes);
  out.Number(static_cast<int>(facts.rails.size()));
  for (const RailFacts& rail : facts.rails) Write(out, rail);
  out.Number(static_cast<int>(facts.pings.size()));
  for (const PingFacts& ping : facts.pings) {
    out.Number(ping.peer);
    out.Number(ping.rail);
    out.Number(static_cast<int>(ping.nanoseconds));
    out.Text(ping.trouble);
    out.Number(static_cast<int>(ping.large_bytes));
    out.Text(ping.large_trouble);
  }
  out.Flag(facts.sharp.wanted);
  out.Text(facts.sharp.name);
  out.Text(facts.sharp.plugin);
  out.Flag(facts.sharp.has_collnet);
  out.Text(facts.sharp.library);
  out.Text(facts.sharp.hello);
  return out.Take();
}

absl::StatusOr<RankFacts> ParseFacts(absl::string_view bytes) {
  Reader in(bytes);
  RankFacts facts;
  facts.name = in.Text();
  facts.memlock = in.Big();
  facts.registers = in.Big();
  facts.least_bytes = in.Big();
  const uint32_t rails = in.Count(fabric::kMaxRails);
  for (uint32_t i = 0; i < rails && in.ok(); ++i) facts.rails.push_back(ReadRail(in));
  const uint32_t pings = in.Count(kMostPings);
  for (uint32_t i = 0; i < pings && in.ok(); ++i) {
    PingFacts& ping = facts.pings.emplace_back();
    ping.peer = in.Number();
    ping.rail = in.Number();
    ping.nanoseconds = static_cast<uint32_t>(in.Number());
    ping.trouble = in.Text();
    ping.large_bytes = static_cast<uint32_t>(in.Number());
    ping.large_trouble = in.Text();
  }
  facts.sharp.wanted = in.Flag();
  facts.sharp.name = in.Text();
  facts.sharp.plugin = in.Text();
  facts.sharp.has_collnet = in.Flag();
  facts.sharp.library = in.Text();
  facts.sharp.hello = in.Text();
  if (!in.Complete()) {
    return absl::InternalError("a rank's facts of its rails are malformed");
  }
  return facts;
}

}  // namespace railhead::preflight

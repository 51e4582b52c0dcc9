// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/setup/decision.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "fabric/rail_limit.h"
#include "runtime/base/rank_causes.h"
#include "runtime/base/wire.h"

namespace railhead::comm {
namespace {

constexpr size_t kTextLimit = 4096;
constexpr size_t kMostCores = 1U << 16U;

void ForEach(absl::Span<const RankReport> reports,
             absl::FunctionRef<void(int rank, const RankReport& report)> does) {
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    does(static_cast<int>(rank), reports[rank]);
  }
}

// Returns the setting that chose the rank's transport, for messages.
std::string Choice(const RankReport& report) {
  return absl::StrCat(
      report.configured.contains("transport") ? "rhConfig_t.transport=" : "RAILHEAD_TRANSPORT=",
      config::TransportChoiceName(report.choice));
}

bool Wants(const RankReport& report) {
  return report.require_rdma || report.choice == config::TransportChoice::kVerbs ||
         (report.choice == config::TransportChoice::kAuto && report.has_rails_file);
}

// Returns the first of the ranks with the strictest policy.
const RankReport& Strictest(absl::Span<const RankReport> reports) {
  return *std::max_element(
      reports.begin(), reports.end(),
      [](const RankReport& a, const RankReport& b) { return a.fallback < b.fallback; });
}

// Returns the rails for which `is`; none with TCP.
std::set<int> RailsThat(const RankReport& report, bool (*is)(const RailReport&)) {
  std::set<int> rails;
  if (report.choice == config::TransportChoice::kTcp) return rails;
  for (const RailReport& rail : report.rails) {
    if (is(rail)) rails.insert(rail.rail);
  }
  return rails;
}

// Rails that the rank was given. One that it lacks has no device.
std::set<int> Given(const RankReport& report) {
  return RailsThat(report, [](const RailReport& rail) { return !rail.device.empty(); });
}

std::set<int> Usable(const RankReport& report) {
  return RailsThat(report, [](const RailReport& rail) { return rail.trouble.empty(); });
}

// Rails that work with all ranks.
std::set<int> Complete(const RankReport& report) {
  return RailsThat(report, [](const RailReport& rail) {
    return rail.trouble.empty() && rail.unreached.empty();
  });
}

// Returns the rails that are in the set of every rank.
std::set<int> OnAll(absl::Span<const RankReport> reports,
                    std::set<int> (*of)(const RankReport& report)) {
  std::set<int> common = of(reports.front());
  for (const RankReport& report : reports) {
    const std::set<int> its = of(report);
    std::erase_if(common, [&its](int rail) { return its.count(rail) == 0; });
  }
  return common;
}

// Returns two ranks without a common rail; nullopt if every pair has one. `rails`: the set of each
// rank, as bits.
std::optional<std::pair<size_t, size_t>> PairWithoutRail(const std::vector<uint64_t>& rails) {
  if (rails.size() < 2) return std::nullopt;
  std::map<uint64_t, size_t> first;  // rank with this set: most ranks have the same one
  for (size_t rank = 0; rank < rails.size(); ++rank) {
    if (rails[rank] == 0) return std::pair(rank == 0 ? size_t{1} : 0, rank);
    if (!first.emplace(rails[rank], rank).second) continue;
    for (const auto& [set, other] : first) {
      if ((set & rails[rank]) == 0) return std::pair(other, rank);
    }
  }
  return std::nullopt;
}

// Formats the rail for messages. A rail that the rank does not have has no device.
std::string Name(const RailReport& rail) {
  if (rail.device.empty()) return absl::StrCat("rail ", rail.rail);
  return absl::StrCat("rail ", rail.rail, " (", rail.device, ")");
}

// Returns why this rank cannot use `rail`.
std::string WhyNot(const RankReport& report, int rail) {
  for (const RailReport& candidate : report.rails) {
    if (candidate.rail != rail) continue;
    return absl::StrCat(report.name, ": ", Name(candidate), " cannot be used: ",
                        candidate.trouble.empty() ? candidate.unreached : candidate.trouble);
  }
  return absl::StrCat(report.name, ": it was not given rail ", rail);
}

// Returns why this rank cannot use any rail.
std::string WhyNone(const RankReport& report) {
  if (report.choice == config::TransportChoice::kTcp) {
    return absl::StrCat(report.name, ": ", Choice(report), " is set there");
  }
  if (!report.trouble.empty()) return absl::StrCat(report.name, ": ", report.trouble);
  if (report.rails.empty()) {
    return absl::StrCat(report.name, ": it was given no RDMA device; request rdma/hca in its pod");
  }
  return absl::StrCat(
      report.name, ": ",
      absl::StrJoin(report.rails, "; ", [](std::string* out, const RailReport& rail) {
        absl::StrAppend(out, Name(rail), " cannot be used: ", rail.trouble);
      }));
}

// Returns why some rails are not common to all ranks; "" if all are.
std::string WhyNotAllRails(absl::Span<const RankReport> reports, const std::set<int>& common,
                           const std::set<int>& known) {
  RankCauses reasons;
  for (const int rail : known) {
    if (common.count(rail) > 0) continue;
    ForEach(reports, [&](int rank, const RankReport& report) {
      if (Complete(report).count(rail) == 0) reasons.Add(rank, report.name, WhyNot(report, rail));
    });
  }
  if (reasons.empty()) return "";
  return absl::StrCat("RDMA on ", common.size(), " of ", known.size(), " rails: ", reasons.Text());
}

// Returns why not every pair of ranks has a common RDMA rail; "" if every pair has one. `given`:
// rails that all ranks were given.
std::string WhyNoCommonRail(absl::Span<const RankReport> reports, const std::set<int>& given) {
  RankCauses reasons;
  std::vector<uint64_t> sets;
  ForEach(reports, [&](int rank, const RankReport& report) {
    const std::set<int> usable = Usable(report);
    if (usable.empty()) reasons.Add(rank, report.name, WhyNone(report));
    uint64_t& set = sets.emplace_back(0);
    for (const int rail : given) set |= usable.contains(rail) ? uint64_t{1} << rail : 0;
  });
  if (!reasons.empty()) return reasons.Text();
  if (given.empty()) {
    ForEach(reports, [&](int rank, const RankReport& report) {
      reasons.Add(rank, report.name,
                  absl::StrCat(" has rails ", absl::StrJoin(Usable(report), ", ")));
    });
    return absl::StrCat("no rail works on every rank: ", reasons.Text());
  }
  if (const auto pair = PairWithoutRail(sets); pair.has_value()) {
    for (const size_t rank : {pair->first, pair->second}) {
      const RankReport& report = reports[rank];
      for (const int rail : given) {
        if (Usable(report).contains(rail)) continue;
        reasons.Add(static_cast<int>(rank), report.name, WhyNot(report, rail));
      }
    }
    return absl::StrCat("no rail works between ", reports[pair->first].name, " and ",
                        reports[pair->second].name, ": ", reasons.Text());
  }
  ForEach(reports, [&](int rank, const RankReport& report) {
    if (!report.cut_off.empty()) reasons.Add(rank, report.name, report.cut_off);
  });
  return reasons.Text();
}

// Returns why the ranks do not share memory; "" if they do.
std::string WhyNotShared(absl::Span<const RankReport> reports) {
  const RankReport& first = reports.front();
  for (const RankReport& report : reports) {
    if (!report.shm_trouble.empty()) return absl::StrCat(report.name, ": ", report.shm_trouble);
    if (report.require_rdma) {
      return absl::StrCat(report.name, ": RAILHEAD_REQUIRE_RDMA=1 is set there");
    }
    if (report.choice != config::TransportChoice::kAuto &&
        report.choice != config::TransportChoice::kShm) {
      return absl::StrCat(report.name, ": ", Choice(report), " is set there");
    }
    if (report.place.empty() || report.place != first.place) {
      return absl::StrCat(report.name, " and ", first.name, " are not in one pod");
    }
  }
  return "";
}

// Returns why ranks of one pod do not share memory; "" if they do.
std::string WhyMemoryFailed(absl::Span<const RankReport> reports) {
  RankCauses reasons;
  ForEach(reports, [&](int rank, const RankReport& report) {
    if (!report.shm_trouble.empty()) reasons.Add(rank, report.name, report.shm_trouble);
  });
  return reasons.empty() ? "" : absl::StrCat("no shared memory: ", reasons.Text());
}

// Returns the places of ranks that are in several places; see Decision. If ranks of one place
// cannot share memory, sets `why_not`.
std::vector<std::vector<int>> SeveralPlaces(absl::Span<const RankReport> reports,
                                            std::string& why_not) {
  std::vector<std::vector<int>> places;
  const std::vector<int> numbers = PlaceNumbers(reports);
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    places.resize(std::max(places.size(), static_cast<size_t>(numbers[rank]) + 1));
    places[static_cast<size_t>(numbers[rank])].push_back(static_cast<int>(rank));
  }
  // Each rank is alone in its place.
  if (places.size() == reports.size()) return {};
  for (const RankReport& report : reports) {
    // Reported as a degradation.
    if (!report.shm_trouble.empty()) return {};
    if (report.choice == config::TransportChoice::kAuto) continue;
    why_not = absl::StrCat(report.name, ": ", Choice(report), " is set there");
    return {};
  }
  if (places.size() < 2) return {};
  return places;
}

bool Crowded(absl::Span<const RankReport> reports, const std::vector<std::vector<int>>& places) {
  return !std::all_of(places.begin(), places.end(), [&reports](const std::vector<int>& place) {
    constexpr uint64_t kCore = 1000;
    std::vector<Cores> cores;
    cores.reserve(place.size());
    std::map<uint64_t, uint64_t> wanted;  // by the group whose limit it counts against
    for (const int rank : place) {
      const RankReport& report = reports[static_cast<size_t>(rank)];
      cores.push_back(report.cores);
      if (report.cpu.millicores == 0) continue;
      // A rank that spins uses as much CPU time as one that computes.
      uint64_t& of_group = wanted[report.cpu.group];
      of_group += kCore;
      if (of_group > report.cpu.millicores) return false;
    }
    return OneForEach(cores);
  });
}

// Returns an error unless all ranks have rank 0's value of `variable`.
template <typename T>
absl::Status CheckAlike(absl::Span<const RankReport> reports, absl::string_view variable,
                        T RankReport::*value) {
  const RankReport& first = reports.front();
  for (const RankReport& report : reports) {
    if (report.*value == first.*value) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(report.name, " has ", variable, "='", report.*value, "', and ", first.name,
                     " '", first.*value, "'; set the same value on all ranks"));
  }
  return absl::OkStatus();
}

// Returns the value of the field that the rank's program set; nullopt if it did not.
std::optional<std::string> SetTo(const RankReport& report, const std::string& field) {
  const auto found = report.configured.find(field);
  if (found == report.configured.end()) return std::nullopt;
  return found->second;
}

// Returns an error unless all ranks' programs set the same value as rank 0's.
absl::Status CheckConfigured(absl::Span<const RankReport> reports) {
  const RankReport& first = reports.front();
  for (const RankReport& report : reports) {
    config::Fields either = report.configured;
    either.insert(first.configured.begin(), first.configured.end());
    for (const auto& entry : either) {
      const std::string& field = entry.first;
      if (SetTo(report, field) == SetTo(first, field)) continue;
      const auto words = [&field](const RankReport& rank) {
        const std::optional<std::string> to = SetTo(rank, field);
        return to.has_value() ? absl::StrCat(rank.name, " has set it to '", *to, "'")
                              : absl::StrCat(rank.name, " has not set it");
      };
      return absl::InvalidArgumentError(absl::StrCat("rhConfig_t.", field, ": ", words(first),
                                                     ", and ", words(report),
                                                     "; set the same value on all ranks"));
    }
  }
  return absl::OkStatus();
}

// Returns an error if an interface does not exist on any rank that lists it.
absl::Status CheckInterfaces(absl::Span<const RankReport> reports) {
  std::set<std::string> known;
  for (const RankReport& report : reports) {
    for (const TcpReport& rail : report.tcp) {
      if (!rail.unknown) known.insert(rail.interface);
    }
  }
  for (const RankReport& report : reports) {
    for (const TcpReport& rail : report.tcp) {
      if (known.contains(rail.interface)) continue;
      return absl::NotFoundError(absl::StrCat(report.name, ": ",
                                              report.configured.contains("socketIfname")
                                                  ? "rhConfig_t.socketIfname"
                                                  : "RAILHEAD_SOCKET_IFNAME",
                                              ": ", rail.trouble));
    }
  }
  return absl::OkStatus();
}

// Returns an error unless every rank has as many TCP rails as most ranks.
absl::Status CheckTcpRails(absl::Span<const RankReport> reports) {
  std::map<size_t, int> ranks;  // by their number of rails
  for (const RankReport& report : reports) ++ranks[report.tcp.size()];
  // If two numbers are equally frequent, rank 0's applies.
  size_t usual = reports.front().tcp.size();
  for (const auto& [rails, count] : ranks) {
    if (count > ranks[usual]) usual = rails;
  }
  RankCauses culprits;
  ForEach(reports, [&](int rank, const RankReport& report) {
    if (report.tcp.size() == usual) return;
    culprits.Add(rank, report.name,
                 absl::StrCat(" has ", report.tcp.size(), " TCP rail",
                              report.tcp.size() == 1 ? "" : "s", ", but the others have ", usual));
  });
  if (culprits.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(culprits.Text(),
                   ": list the same number of interfaces in RAILHEAD_SOCKET_IFNAME on every rank"));
}

// Returns an error, with the states of both ranks' rails, if a pair has no TCP rail in common.
absl::Status CheckTcpPairs(absl::Span<const RankReport> reports) {
  std::vector<uint64_t> sets;
  for (const RankReport& report : reports) {
    uint64_t& set = sets.emplace_back(0);
    for (size_t i = 0; i < report.tcp.size(); ++i) {
      set |= report.tcp[i].trouble.empty() ? uint64_t{1} << i : 0;
    }
  }
  const auto pair = PairWithoutRail(sets);
  if (!pair.has_value()) return absl::OkStatus();
  RankCauses states;
  for (const size_t rank : {pair->first, pair->second}) {
    const std::vector<TcpReport>& rails = reports[rank].tcp;
    std::vector<std::string> each;
    each.reserve(rails.size());
    for (size_t i = 0; i < rails.size(); ++i) {
      each.push_back(absl::StrCat("rail ", i, " (", rails[i].interface, ", tcp) ",
                                  rails[i].trouble.empty()
                                      ? "can be opened"
                                      : absl::StrCat("cannot be opened: ", rails[i].trouble)));
    }
    states.Add(static_cast<int>(rank), reports[rank].name, absl::StrJoin(each, ", "));
  }
  return absl::UnavailableError(absl::StrCat(reports[pair->first].name, " and ",
                                             reports[pair->second].name,
                                             " have no TCP rail in common (", states.Text(),
                                             "): bring the interfaces of one rail up on both"));
}

transport::FrameProtection ProtectionFor(config::FrameWish wish,
                                         absl::Span<const RankReport> reports) {
  switch (wish) {
    case config::FrameWish::kPlain:
      return transport::FrameProtection::kNone;
    case config::FrameWish::kSigned:
      return transport::FrameProtection::kSigned;
    case config::FrameWish::kEncrypted:
      break;
  }
  return std::all_of(reports.begin(), reports.end(), [](const RankReport& r) { return r.has_aes; })
             ? transport::FrameProtection::kAes256Gcm
             : transport::FrameProtection::kChaCha20Poly1305;
}

bool HaveMet(absl::Span<const RankReport> reports, const Decision& decision) {
  return std::all_of(reports.begin(), reports.end(), [&decision](const RankReport& report) {
    if (!decision.verbs) return report.met.tcp;
    return std::all_of(decision.rails.begin(), decision.rails.end(), [&report](int rail) {
      return std::find(report.met.rails.begin(), report.met.rails.end(), rail) !=
             report.met.rails.end();
    });
  });
}

}  // namespace

std::vector<int> PlaceNumbers(absl::Span<const RankReport> reports) {
  std::vector<int> numbers;
  std::map<std::string, int> known;
  int next = 0;
  for (const RankReport& report : reports) {
    // A rank that cannot share memory is alone in its place.
    const auto [number, fresh] = known.try_emplace(report.place, next);
    numbers.push_back(report.place.empty() ? next : number->second);
    if (fresh || report.place.empty()) ++next;
  }
  return numbers;
}

absl::StatusOr<Decision> Decide(absl::Span<const RankReport> reports) {
  absl::Status alike = CheckConfigured(reports);
  alike.Update(CheckAlike(reports, "RAILHEAD_ALGO", &RankReport::algorithms));
  alike.Update(CheckInterfaces(reports));
  if (!alike.ok()) return alike;
  const RankReport& strictest = Strictest(reports);
  Decision decision;
  decision.fallback = strictest.fallback;
  const RankReport& most_guarded = *std::max_element(
      reports.begin(), reports.end(),
      [](const RankReport& a, const RankReport& b) { return a.frames < b.frames; });
  decision.protection = ProtectionFor(most_guarded.frames, reports);
  const std::string why_not_shared = WhyNotShared(reports);
  if (why_not_shared.empty() && reports.size() > 1) {
    decision.shm = true;
    std::vector<int>& all = decision.places.emplace_back(reports.size());
    std::iota(all.begin(), all.end(), 0);
    decision.crowded = Crowded(reports, decision.places);
    return decision;
  }
  const auto wants_shm = std::find_if(reports.begin(), reports.end(), [](const RankReport& r) {
    return r.choice == config::TransportChoice::kShm;
  });
  if (wants_shm != reports.end() && reports.size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat("shared memory was chosen (",
                                                      Choice(*wants_shm), " on ", wants_shm->name,
                                                      ") but cannot be used: ", why_not_shared));
  }
  decision.places = SeveralPlaces(reports, decision.flat_reason);
  decision.crowded = Crowded(reports, decision.places);

  std::set<int> known;
  for (const RankReport& report : reports) {
    if (report.choice == config::TransportChoice::kTcp) continue;
    for (const RailReport& rail : report.rails) known.insert(rail.rail);
  }
  const std::set<int> given = OnAll(reports, Given);
  const std::string none = WhyNoCommonRail(reports, given);

  std::string less;  // rails that are not used; for the message
  if (none.empty()) {
    alike = CheckAlike(reports, "RAILHEAD_IB_TC", &RankReport::ib_traffic_class);
    alike.Update(CheckAlike(reports, "RAILHEAD_IB_SL", &RankReport::ib_service_level));
    if (!alike.ok()) return alike;
    if (most_guarded.frames == config::FrameWish::kEncrypted && reports.size() > 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("RAILHEAD_AUTH=encrypt on ", most_guarded.name,
                       ", but the job would use RDMA, which carries data unencrypted: set "
                       "RAILHEAD_TRANSPORT=tcp on a rank, or remove encrypt from RAILHEAD_AUTH"));
    }
    decision.verbs = true;
    decision.rails.assign(given.begin(), given.end());
    less = WhyNotAllRails(reports, OnAll(reports, Complete), known);
  } else if (std::any_of(reports.begin(), reports.end(), Wants)) {
    less = absl::StrCat("TCP instead of RDMA: ", none);
  }
  const auto requires_rdma = std::find_if(reports.begin(), reports.end(),
                                          [](const RankReport& r) { return r.require_rdma; });
  if (!decision.verbs && requires_rdma != reports.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("RDMA is required (RAILHEAD_REQUIRE_RDMA=1 on ", requires_rdma->name,
                     "), but the job would have ", less));
  }
  if (!less.empty() && decision.fallback == config::Fallback::kFail) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the job must use all rails that it was given (",
        strictest.configured.contains("fallback") ? "rhConfig_t.fallback" : "RAILHEAD_FALLBACK",
        "=fail on ", strictest.name, "), but the job would have ", less));
  }
  const std::string memory = WhyMemoryFailed(reports);
  decision.degraded_reason =
      absl::StrCat(memory, !memory.empty() && !less.empty() ? "; " : "", less);
  decision.all_met = HaveMet(reports, decision);
  if (decision.verbs) return decision;
  absl::Status tcp = CheckTcpRails(reports);
  tcp.Update(CheckTcpPairs(reports));
  if (!tcp.ok()) return tcp;
  return decision;
}

std::string Encode(const RankReport& report) {
  WireWriter writer;
  writer.String(report.name);
  writer.U8(static_cast<uint8_t>(report.choice));
  writer.U8(report.require_rdma ? 1 : 0);
  writer.U8(static_cast<uint8_t>(report.fallback));
  writer.U8(report.has_rails_file ? 1 : 0);
  writer.String(report.trouble.substr(0, kTextLimit));
  writer.U32(static_cast<uint32_t>(report.rails.size()));
  for (const RailReport& rail : report.rails) {
    writer.U32(static_cast<uint32_t>(rail.rail));
    writer.String(rail.device);
    writer.String(rail.trouble.substr(0, kTextLimit));
    writer.String(rail.rate);
    writer.U32(static_cast<uint32_t>(rail.mtu));
    writer.String(rail.unreached.substr(0, kTextLimit));
  }
  writer.String(report.cut_off.substr(0, kTextLimit));
  writer.String(report.place);
  writer.String(report.shm_trouble.substr(0, kTextLimit));
  writer.String(report.cores);
  writer.U64(report.cpu.group);
  writer.U64(report.cpu.millicores);
  writer.String(report.rejoin_address);
  writer.String(report.algorithms);
  writer.U32(static_cast<uint32_t>(report.tcp.size()));
  for (const TcpReport& rail : report.tcp) {
    writer.String(rail.interface);
    writer.String(rail.trouble.substr(0, kTextLimit));
    writer.U8(rail.unknown ? 1 : 0);
  }
  writer.U8(static_cast<uint8_t>(report.ib_traffic_class));
  writer.U8(static_cast<uint8_t>(report.ib_service_level));
  writer.U32(static_cast<uint32_t>(report.configured.size()));
  for (const auto& [field, text] : report.configured) {
    writer.String(field);
    writer.String(text);
  }
  writer.U8(static_cast<uint8_t>(report.frames));
  writer.U8(report.has_aes ? 1 : 0);
  writer.U8(report.met.tcp ? 1 : 0);
  writer.U32(static_cast<uint32_t>(report.met.rails.size()));
  for (const int rail : report.met.rails) writer.U32(static_cast<uint32_t>(rail));
  return writer.Take();
}

absl::StatusOr<RankReport> ParseReport(absl::string_view bytes) {
  WireReader reader(bytes);
  RankReport report;
  report.name = reader.String(kTextLimit);
  const uint8_t choice = reader.U8();
  report.require_rdma = reader.U8() != 0;
  const uint8_t fallback = reader.U8();
  report.has_rails_file = reader.U8() != 0;
  report.trouble = reader.String(kTextLimit);
  const uint32_t rails = reader.U32();
  if (!reader.ok() || choice > static_cast<uint8_t>(config::TransportChoice::kShm) ||
      fallback > static_cast<uint8_t>(config::Fallback::kFail) || rails > fabric::kMaxRails) {
    return absl::InternalError("a rank's report is malformed");
  }
  report.choice = static_cast<config::TransportChoice>(choice);
  report.fallback = static_cast<config::Fallback>(fallback);
  for (uint32_t i = 0; i < rails && reader.ok(); ++i) {
    RailReport rail;
    const uint32_t number = reader.U32();
    if (number >= fabric::kMaxRails) return absl::InternalError("a rank's report is malformed");
    rail.rail = static_cast<int>(number);
    rail.device = reader.String(kTextLimit);
    rail.trouble = reader.String(kTextLimit);
    rail.rate = reader.String(kTextLimit);
    rail.mtu = static_cast<int>(reader.U32());
    rail.unreached = reader.String(kTextLimit);
    report.rails.push_back(std::move(rail));
  }
  report.cut_off = reader.String(kTextLimit);
  report.place = reader.String(kTextLimit);
  report.shm_trouble = reader.String(kTextLimit);
  report.cores = reader.String(kMostCores / 8);
  report.cpu.group = reader.U64();
  report.cpu.millicores = reader.U64();
  report.rejoin_address = reader.String(kRejoinAddressLimit);
  report.algorithms = reader.String(bytes.size());
  const uint32_t tcp = reader.U32();
  report.tcp.clear();
  for (uint32_t i = 0; i < tcp && i < fabric::kMaxRails && reader.ok(); ++i) {
    TcpReport& rail = report.tcp.emplace_back();
    rail.interface = reader.String(kTextLimit);
    rail.trouble = reader.String(kTextLimit);
    rail.unknown = reader.U8() != 0;
  }
  report.ib_traffic_class = reader.U8();
  report.ib_service_level = reader.U8();
  const uint32_t configured = reader.U32();
  for (uint32_t i = 0; i < configured && reader.ok(); ++i) {
    std::string field = reader.String(kTextLimit);
    report.configured[std::move(field)] = reader.String(kTextLimit);
  }
  const uint8_t frames = reader.U8();
  report.has_aes = reader.U8() != 0;
  report.met.tcp = reader.U8() != 0;
  const uint32_t met = reader.U32();
  for (uint32_t i = 0; i < met && reader.ok(); ++i) {
    report.met.rails.push_back(static_cast<int>(reader.U32()));
  }
  if (!reader.Complete() || frames > static_cast<uint8_t>(config::FrameWish::kEncrypted)) {
    return absl::InternalError("a rank's report is malformed");
  }
  report.frames = static_cast<config::FrameWish>(frames);
  return report;
}

}  // namespace railhead::comm

// SPDX-License-Identifier: Apache-2.0
#include "runtime/recorder/report.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable_text.h"

namespace railhead::recorder {
namespace {

using collectives::Collective;

// Maximum number of ranks named per statement.
constexpr size_t kNamed = 4;
// Maximum number of ranks in a statement with details of each.
constexpr size_t kInDetail = 2;
// Names are the users'; longer ones are cut.
constexpr size_t kNameLimit = 120;
// One sentence, with all its names.
constexpr size_t kSentenceLimit = 900;

std::string Seconds(absl::Duration duration) {
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(duration));
}

std::string Bytes(uint64_t bytes) {
  constexpr uint64_t kStep = 1024;
  if (bytes < kStep) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / kStep;
  for (const char* unit : {"KiB", "MiB", "GiB"}) {
    if (value < kStep) return absl::StrFormat("%.1f %s", value, unit);
    value /= kStep;
  }
  return absl::StrFormat("%.1f TiB", value);
}

// "number 5, broadcast of 20 bytes, root 1 (ring)".
std::string NameOf(const Doing& last) {
  if (last.collective == Collective::kSendReceive) {
    return absl::StrCat("send_receive number ", last.number);
  }
  return absl::StrCat("number ", last.number, ", ", last.call.ToString(), " (",
                      collectives::Name(last.algorithm), ")");
}

// Describes the progress of a running operation.
std::string Detail(const Doing& last) {
  std::string text =
      absl::StrCat("sent ", Bytes(last.moved.sent), " and received ", Bytes(last.moved.received),
                   ", nothing for ", Seconds(last.still));
  if (!last.way.has_value() || last.way->peer < 0) return text;
  absl::StrAppend(&text, "; the last ", last.way->received ? "from" : "to", " rank ",
                  last.way->peer, " over ", last.way->rail);
  return text;
}

// Equal for ranks with the same description, ordered from those behind to those ahead: collectives
// begun, and the last operation's state, number and call.
using Where = std::tuple<uint64_t, std::optional<std::tuple<State, uint64_t, uint64_t>>>;

Where WhereIs(const Position& position) {
  if (!position.last.has_value()) return {position.collectives, std::nullopt};
  const Doing& last = *position.last;
  return {position.collectives, {{last.state, last.number, last.call.word()}}};
}

// Messages that their peers have not taken for the timeout, because they cannot be reached, or run
// no transfers yet.
std::string AboutTransfers(const std::vector<const Seen*>& ranks) {
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kInDetail); ++i) {
    const StillTransfers::Peers& peers = ranks[i]->position.transfers.under_way;
    absl::StrAppend(&text, i == 0 ? "" : ", and ", "messages between ",
                    ranks[i]->name.substr(0, kNameLimit), " and rank ", peers.ranks.front());
    if (peers.all > 1) absl::StrAppend(&text, " and ", peers.all - 1, " more");
  }
  if (ranks.size() > kInDetail) {
    absl::StrAppend(&text, ", and those of ", ranks.size() - kInDetail, " more ranks");
  }
  return absl::StrCat(text, " are not delivered");
}

// "rank 1, rank 2 and 7 more".
std::string Names(const std::vector<const Seen*>& ranks) {
  std::string text;
  const size_t named = std::min(ranks.size(), kNamed);
  for (size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == ranks.size();
    absl::StrAppend(&text,
                    i == 0 ? ""
                    : last ? " and "
                           : ", ",
                    PrintableText(ranks[i]->name, kNameLimit));
  }
  if (named < ranks.size()) absl::StrAppend(&text, " and ", ranks.size() - named, " more");
  return text;
}

// Describes ranks at the same place; `front`: maximum number of collectives begun by a rank.
std::string WhatItDoes(const Position& position, bool several, uint64_t front) {
  if (!position.last.has_value()) return several ? "have called nothing" : "has called nothing";
  const Doing& last = *position.last;
  if (last.state == State::kRunning) {
    return absl::StrCat(several ? "are in " : "is in ", NameOf(last));
  }
  const std::string done = last.state == State::kDone ? "done" : "failed";
  if (position.collectives < front) {
    return absl::StrCat(several ? "have" : "has", " not called number ", position.collectives, " (",
                        several ? "their" : "its", " last was ", NameOf(last), ", ", done, " ",
                        Seconds(last.age), " ago)");
  }
  return absl::StrCat(several ? "are" : "is", last.state == State::kDone ? " done" : " out",
                      " with ", NameOf(last), " for ", Seconds(last.age));
}

std::string AboutOne(const Seen& seen, uint64_t front) {
  std::string text = absl::StrCat(PrintableText(seen.name, kNameLimit), " ",
                                  WhatItDoes(seen.position, false, front));
  const std::optional<Doing>& last = seen.position.last;
  if (last.has_value() && last->state == State::kRunning) {
    absl::StrAppend(&text, ": ", Detail(*last));
  }
  return text;
}

// The rank of these in whose operation nothing has moved for the longest time.
const Seen& FirstToStop(const std::vector<const Seen*>& ranks) {
  return **std::max_element(ranks.begin(), ranks.end(), [](const Seen* a, const Seen* b) {
    return a->position.last->still < b->position.last->still;
  });
}

std::string About(const std::vector<const Seen*>& ranks, bool rest, size_t world, uint64_t front) {
  std::string text;
  if (ranks.size() <= kInDetail) {
    for (const Seen* seen : ranks) {
      absl::StrAppend(&text, text.empty() ? "" : "; ", AboutOne(*seen, front));
    }
    return text;
  }
  const Position& position = ranks.front()->position;
  const std::string who = !rest                   ? Names(ranks)
                          : ranks.size() == world ? absl::StrCat("all ", world, " ranks")
                                                  : absl::StrCat("the other ", ranks.size());
  text = absl::StrCat(who, " ", WhatItDoes(position, true, front));
  if (position.last.has_value() && position.last->state == State::kRunning) {
    const Seen& first = FirstToStop(ranks);
    absl::StrAppend(&text, ", of which ", PrintableText(first.name, kNameLimit),
                    " stopped first: ", Detail(*first.position.last));
  }
  return text;
}

}  // namespace

std::string Report(const std::vector<Seen>& ranks) {
  std::vector<const Seen*> silent;
  std::vector<const Seen*> left;
  size_t not_asked = 0;
  std::vector<const Seen*> undelivered;
  uint64_t front = 0;
  std::map<Where, std::vector<const Seen*>> places;
  for (const Seen& seen : ranks) {
    switch (seen.how) {
      case Seen::How::kSilent:
        silent.push_back(&seen);
        break;
      case Seen::How::kLeft:
        left.push_back(&seen);
        break;
      case Seen::How::kNotAsked:
        ++not_asked;
        break;
      case Seen::How::kAnswered:
        if (!seen.position.transfers.under_way.ranks.empty()) undelivered.push_back(&seen);
        front = std::max(front, seen.position.collectives);
        places[WhereIs(seen.position)].push_back(&seen);
    }
  }

  std::vector<std::string> sentences;
  if (!silent.empty()) {
    sentences.push_back(absl::StrCat(Names(silent), silent.size() == 1 ? " does" : " do",
                                     " not answer (stopped, or cut off from the others)"));
  }
  if (!left.empty()) {
    sentences.push_back(
        absl::StrCat(Names(left), left.size() == 1 ? " has" : " have", " left the communicator"));
  }
  if (!undelivered.empty()) sentences.push_back(AboutTransfers(undelivered));
  // The place with the most ranks comes last in the text; among equals, the furthest ahead.
  auto rest = places.begin();
  for (auto place = places.begin(); place != places.end(); ++place) {
    if (place->second.size() >= rest->second.size()) rest = place;
  }
  for (auto place = places.begin(); place != places.end(); ++place) {
    if (place != rest) sentences.push_back(About(place->second, false, ranks.size(), front));
  }
  if (rest != places.end()) sentences.push_back(About(rest->second, true, ranks.size(), front));
  if (not_asked > 0) {
    sentences.push_back(absl::StrCat(not_asked, " could not be queried: no connection to them"));
  }

  std::string text;
  size_t left_out = 0;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const std::string& sentence = sentences[i];
    const bool last = i + 1 == sentences.size();
    // Room for a word on what is left out, and for the sentence about most of them.
    const size_t limit = last ? kReportLimit - 100 : kReportLimit - 100 - kSentenceLimit;
    if (text.size() + std::min(sentence.size(), kSentenceLimit) > limit) {
      ++left_out;
      continue;
    }
    absl::StrAppend(&text, text.empty() ? "" : "; ", PrintableText(sentence, kSentenceLimit));
  }
  if (left_out > 0) absl::StrAppend(&text, "; ", left_out, " other places are left out");
  return text;
}

}  // namespace railhead::recorder

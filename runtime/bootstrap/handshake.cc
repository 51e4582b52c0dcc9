// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/handshake.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/bootstrap/starter.h"

namespace railhead::bootstrap {
namespace {

constexpr absl::string_view kAsGuest = "railhead handshake: guest";
constexpr absl::string_view kAsHost = "railhead handshake: host";

constexpr absl::string_view kSameSecret =
    "mount the same Secret into all pods of the job (RAILHEAD_SECRET_FILE)";

std::string DescribeLaunch(absl::string_view launch) {
  return launch.empty() ? "no launcher" : std::string(launch);
}

}  // namespace

std::string DescribeRank(int rank, absl::string_view name) {
  if (name.empty()) return absl::StrCat("rank ", rank);
  return absl::StrCat("rank ", rank, " (", name, ")");
}

HostHandshake::Step HostHandshake::Receive(const Frame& frame) {
  switch (state_) {
    case State::kHello:
      if (frame.kind != FrameKind::kHello) break;
      return ReceiveHello(frame.payload);
    case State::kProof:
      if (frame.kind != FrameKind::kProof) break;
      return ReceiveProof(frame.payload);
    case State::kProven:
    case State::kRefused:
      break;
  }
  state_ = State::kRefused;
  return {"", "unexpected frame in the handshake"};
}

HostHandshake::Step HostHandshake::ReceiveHello(absl::string_view payload) {
  const absl::StatusOr<Hello> hello = ParseHello(payload);
  if (!hello.ok()) {
    state_ = State::kRefused;
    return {"", std::string(hello.status().message())};
  }
  hello_ = *hello;
  if (const std::optional<Refusal> objection = Object(); objection.has_value()) {
    Step step = Refuse(*objection);
    step.other_job = hello_.version == kProtocolVersion && hello_.job != self_.job;
    return step;
  }
  transcript_[0] = std::string(payload);
  transcript_[1] = EncodeChallenge({self_.name, nonce_});
  state_ = State::kProof;
  return {EncodeFrame(FrameKind::kChallenge, transcript_[1]), ""};
}

std::optional<Refusal> HostHandshake::Object() const {
  if (hello_.version != kProtocolVersion) {
    return Refusal{true,
                   absl::StrCat("rank ", hello_.rank, " speaks version ", hello_.version,
                                " of the rendezvous, but rank ", self_.rank, " speaks version ",
                                kProtocolVersion, ": use the same Railhead release in all pods")};
  }
  if (hello_.job != self_.job) {
    return Refusal{false, "it belongs to another job (RAILHEAD_JOB or the unique id differs)"};
  }
  if (std::optional<Refusal> other = ObjectToLaunch(); other.has_value()) return other;
  if (hello_.host_rank != static_cast<uint32_t>(self_.rank)) {
    return Refusal{false, absl::StrCat(Guest(), " looks for rank ", hello_.host_rank,
                                       ", but this is ", Self())};
  }
  if (!self_.trouble.empty()) return Refusal{true, absl::StrCat(Self(), ": ", self_.trouble)};
  if (!hello_.trouble.empty()) {
    return Refusal{true, absl::StrCat(Guest(), ": ", hello_.trouble), true};
  }
  if (hello_.has_secret != secret_.has_file()) {
    return Refusal{
        false,
        absl::StrCat(Guest(), hello_.has_secret ? " has a secret, " : " has no secret, ", Self(),
                     secret_.has_file() ? " has one: " : " has none: ", kSameSecret,
                     "; ranks with RAILHEAD_AUTH=off or RAILHEAD_JOB_SECRET=off use none"),
        true};
  }
  return std::nullopt;
}

std::optional<Refusal> HostHandshake::ObjectToLaunch() const {
  // The other job may have this address next.
  if (hello_.launch != self_.launch) {
    return Refusal{false, absl::StrCat(Guest(), " and ", Self(),
                                       " are of different jobs, although both have this address: ",
                                       DescribeLaunch(hello_.launch), " has started one, ",
                                       DescribeLaunch(self_.launch),
                                       " the other; give each job its own MASTER_PORT")};
  }
  if (HaveOtherStarters(hello_.starter, self_.starter)) {
    return Refusal{
        false, absl::StrCat(Guest(), " and ", Self(),
                            " are not known to be of one job: ", DescribeStarter(hello_.starter),
                            " has started one, ", DescribeStarter(self_.starter),
                            " the other, on one host; set the same RAILHEAD_JOB on all ranks of a "
                            "job, or give each job its own MASTER_PORT")};
  }
  return std::nullopt;
}

HostHandshake::Step HostHandshake::ReceiveProof(absl::string_view proof) {
  if (!SameMac(proof, secret_.Mac(kAsGuest, {transcript_[0], transcript_[1]}))) {
    return Refuse(
        {false, absl::StrCat(Guest(), " has a different secret than ", Self(), ": ", kSameSecret)});
  }
  state_ = State::kProven;
  return {EncodeFrame(FrameKind::kAccept, secret_.Mac(kAsHost, {transcript_[0], transcript_[1]})),
          ""};
}

HostHandshake::Step HostHandshake::Refuse(const Refusal& refusal) {
  state_ = State::kRefused;
  return {EncodeFrame(FrameKind::kRefuse, EncodeRefusal(refusal)), refusal.text,
          refusal.cannot_prove};
}

GuestHandshake::GuestHandshake(Hello hello, Secret secret)
    : hello_(std::move(hello)), secret_(std::move(secret)) {
  hello_.has_secret = secret_.has_file();
  transcript_[0] = EncodeHello(hello_);
}

std::string GuestHandshake::Begin() const { return EncodeFrame(FrameKind::kHello, transcript_[0]); }

std::string GuestHandshake::Host() const {
  return DescribeRank(static_cast<int>(hello_.host_rank), host_name_);
}

GuestHandshake::Step GuestHandshake::Receive(const Frame& frame) {
  if (frame.kind == FrameKind::kRefuse) {
    const absl::StatusOr<Refusal> refusal = ParseRefusal(frame.payload);
    if (!refusal.ok()) return {"", refusal.status()};
    if (refusal->not_open) {
      return {"", absl::UnavailableError(absl::StrCat(Host(), ": ", refusal->text)), false, true};
    }
    // If there is a secret, only a host that has proven to know it can reject this rank for good.
    return {
        "",
        absl::FailedPreconditionError(absl::StrCat(Host(), " rejected this rank: ", refusal->text)),
        refusal->final && (proven() || !secret_.proves())};
  }
  if (state_ == State::kChallenge && frame.kind == FrameKind::kChallenge) {
    const absl::StatusOr<Challenge> challenge = ParseChallenge(frame.payload);
    if (!challenge.ok()) return {"", challenge.status()};
    host_name_ = challenge->name;
    transcript_[1] = frame.payload;
    state_ = State::kAccept;
    return {EncodeFrame(FrameKind::kProof, secret_.Mac(kAsGuest, {transcript_[0], transcript_[1]})),
            absl::OkStatus()};
  }
  if (state_ == State::kAccept && frame.kind == FrameKind::kAccept) {
    if (!SameMac(frame.payload, secret_.Mac(kAsHost, {transcript_[0], transcript_[1]}))) {
      return {"", absl::FailedPreconditionError(
                      absl::StrCat("the process that responds as ", Host(),
                                   " has a different secret than this rank: ", kSameSecret))};
    }
    state_ = State::kProven;
    return {"", absl::OkStatus()};
  }
  return {"", absl::InternalError(absl::StrCat(Host(), " answered with an unexpected frame"))};
}

}  // namespace railhead::bootstrap

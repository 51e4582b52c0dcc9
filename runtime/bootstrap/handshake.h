// SPDX-License-Identifier: Apache-2.0
//
// How two ranks make sure of each other before either believes anything else: who dials is the
// guest, who listens the host, and each proves to the other that it knows the job's secret.
//
//   guest                                 host
//   Hello: who, whom, guest's nonce  -->
//                                    <--  Challenge: host's nonce
//   Proof: HMAC as guest             -->
//                                    <--  Accept: HMAC as host
//
// Both proofs are over the role, the Hello and the Challenge as they travelled: so over protocol
// version, job, ranks and world size. What was recorded earlier answers no new nonce, and neither
// side's proof serves as the other's. The guest goes first, so that a stranger who dials gets
// nothing that he could try secrets on.
//
// Pure: frames in, frames out; no socket, no clock, no source of randomness.
#ifndef RAILHEAD_RUNTIME_BOOTSTRAP_HANDSHAKE_H_
#define RAILHEAD_RUNTIME_BOOTSTRAP_HANDSHAKE_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/hello.h"
#include "runtime/bootstrap/secret.h"

namespace railhead::bootstrap {

// The name of a rank in messages: "rank 2 (pod a on node b)", or "rank 2".
std::string DescribeRank(int rank, absl::string_view name);

class HostHandshake {
 public:
  struct Identity {
    int rank = 0;
    std::string job;
    std::string name;
    std::string trouble = "";  // why it cannot take part; "" if it can
  };

  HostHandshake(Identity self, Secret secret, std::string nonce)
      : self_(std::move(self)), secret_(std::move(secret)), nonce_(std::move(nonce)) {}

  struct Step {
    std::string reply;          // frames for the guest
    std::string refusal;        // why this guest is turned away; "" otherwise
    bool cannot_prove = false;  // see Refusal
  };
  Step Receive(const Frame& frame);

  bool proven() const { return state_ == State::kProven; }
  // What the guest says of itself; true once it is proven.
  const Hello& hello() const { return hello_; }

 private:
  enum class State { kHello, kProof, kProven, kRefused };

  Step ReceiveHello(absl::string_view payload);
  Step ReceiveProof(absl::string_view proof);
  Step Refuse(const Refusal& refusal);
  std::optional<Refusal> Object() const;
  std::string Guest() const { return DescribeRank(static_cast<int>(hello_.rank), hello_.name); }
  std::string Self() const { return DescribeRank(self_.rank, self_.name); }

  Identity self_;
  Secret secret_;
  std::string nonce_;
  State state_ = State::kHello;
  Hello hello_;
  std::string transcript_[2];  // the payloads of Hello and Challenge
};

class GuestHandshake {
 public:
  // hello.nonce must be fresh.
  GuestHandshake(Hello hello, Secret secret);

  // The frame to begin with.
  std::string Begin() const;

  struct Step {
    std::string reply;
    absl::Status error;  // why this host is not to be believed, or does not want this guest
    bool final = false;  // whether it is of no use to try again
  };
  Step Receive(const Frame& frame);

  bool proven() const { return state_ == State::kProven; }
  // Where the host runs; true once it is proven.
  const std::string& host_name() const { return host_name_; }

 private:
  enum class State { kChallenge, kAccept, kProven };

  std::string Host() const;

  Hello hello_;
  Secret secret_;
  State state_ = State::kChallenge;
  std::string host_name_;
  std::string transcript_[2];
};

}  // namespace railhead::bootstrap

#endif  // RAILHEAD_RUNTIME_BOOTSTRAP_HANDSHAKE_H_

// SPDX-License-Identifier: Apache-2.0
//
// Mutual authentication of two ranks: the side that dials is the client (GuestHandshake), the other
// the server (HostHandshake). Each proves that it knows the job's secret.
//
//   client                                server
//   Hello: ranks, client's nonce     -->
//                                    <--  Challenge: server's nonce
//   Proof: HMAC as client            -->
//                                    <--  Accept: HMAC as server
//
// Both proofs cover the role, the Hello and the Challenge as sent, and so protocol version, job,
// ranks and world size. Recorded proofs do not match new nonces, and a proof of one side is invalid
// as the other's. The client proves first, so that an unauthenticated one gets nothing to test
// secrets on.
//
// Pure: frames in, frames out; no socket, clock or random source.
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

// Returns a rank's name in messages: "rank 2 (pod a on node b)", or "rank 2".
std::string DescribeRank(int rank, absl::string_view name);

class HostHandshake {
 public:
  struct Identity {
    int rank = 0;
    std::string job;
    std::string name;
    std::string trouble = "";  // why it cannot take part; "" if it can
    std::string launch = "";   // as in Hello
    std::string starter = "";
  };

  HostHandshake(Identity self, Secret secret, std::string nonce)
      : self_(std::move(self)), secret_(std::move(secret)), nonce_(std::move(nonce)) {}

  struct Step {
    std::string reply;          // frames for the client
    std::string refusal;        // reason of rejection; "" otherwise
    bool cannot_prove = false;  // see Refusal
    bool other_job = false;     // rejected because it belongs to another job
  };
  Step Receive(const Frame& frame);

  bool proven() const { return state_ == State::kProven; }
  // The client's self-description; authenticated if proven().
  const Hello& hello() const { return hello_; }

 private:
  enum class State { kHello, kProof, kProven, kRefused };

  Step ReceiveHello(absl::string_view payload);
  Step ReceiveProof(absl::string_view proof);
  Step Refuse(const Refusal& refusal);
  std::optional<Refusal> Object() const;
  // Returns the refusal if the client is of another job with the same name.
  std::optional<Refusal> ObjectToLaunch() const;
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

  // Returns the first frame.
  std::string Begin() const;

  struct Step {
    std::string reply;
    absl::Status error;     // why the server is not authentic, or rejects this client
    bool final = false;     // a retry is useless
    bool not_open = false;  // see Refusal
  };
  Step Receive(const Frame& frame);

  bool proven() const { return state_ == State::kProven; }
  // Location of the server; authenticated if proven().
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

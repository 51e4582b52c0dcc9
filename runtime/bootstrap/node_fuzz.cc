// SPDX-License-Identifier: Apache-2.0
//
// Whatever a neighbour in the tree sends, whenever: a rank goes on, or says what is wrong and tells
// the others; and it never has two verdicts.
//
// The input: a byte for the rank, then for each event a byte that says what happens and with which
// neighbour, a byte for the kind of frame, one for the size of the payload, and the payload.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/bootstrap/inquiry.h"
#include "runtime/bootstrap/messages.h"
#include "runtime/bootstrap/node.h"
#include "runtime/bootstrap/tree.h"
#include "runtime/testing/fuzz_input.h"

namespace railhead::bootstrap {
namespace {

using testing::Input;
using testing::Require;

constexpr int kWorld = 30;

void Inquire(Inquiry& inquiry, uint8_t what) {
  switch (what % 6) {
    case 0:
      inquiry.Call();
      break;
    case 1:
      inquiry.Ask();
      break;
    case 2:
      inquiry.Testify("here");
      break;
    case 3:
      inquiry.Hurry();
      break;
    case 4:
      inquiry.Reopen();
      break;
    default:
      inquiry.Tell("all is well");
  }
  if (const auto answers = inquiry.TakeAnswers(); answers.has_value()) {
    Require(answers->size() == static_cast<size_t>(kWorld));
  }
}

void RunNode(absl::string_view bytes) {
  Input input(bytes);
  const int rank = input.Byte() % kWorld;
  Node node(rank, kWorld);
  std::vector<int> neighbours;
  for (const std::optional<int> above : {Parent(rank), Guardian(rank)}) {
    if (!above.has_value()) continue;
    node.AttachUp(*above);
    neighbours.push_back(*above);
  }
  for (const std::vector<int>& below : {Children(rank, kWorld), Grandchildren(rank, kWorld)}) {
    for (const int other : below) {
      node.AttachDown(other);
      neighbours.push_back(other);
    }
  }
  const size_t most = 3 * neighbours.size() + 3;
  absl::Status verdict;
  while (!input.empty()) {
    const uint8_t what = input.Byte();
    const int from = neighbours[what % neighbours.size()];
    switch (what / 32) {
      case 0:
        node.Give(std::string("mine"), [](std::vector<std::string> parts) {
          Require(parts.size() == static_cast<size_t>(kWorld));
          Node::Answer answer{"all", std::move(parts)};
          return absl::StatusOr<Node::Answer>(std::move(answer));
        });
        node.Locate((rank + 1 + what) % kWorld);
        break;
      case 1:
        node.Report(absl::InternalError("this rank failed"));
        break;
      case 2:
        node.Goodbye();
        break;
      case 3:
        node.Lost(from);
        break;
      case 4:
        Inquire(node.inquiry(), input.Byte());
        break;
      default: {
        const auto kind = static_cast<FrameKind>(1 + input.Byte() % 20);
        node.Receive(from, kind, input.Text(input.Byte()));
      }
    }
    const std::vector<Node::Outgoing> outgoing = node.TakeOutgoing();
    Require(outgoing.size() <= most);
    for (const Node::Outgoing& message : outgoing) {
      Require(message.to >= 0 && message.to < kWorld && message.to != rank);
      Require(message.payload != nullptr);
    }
    node.TakeResult();
    node.TakeLocated();
    Require(verdict.ok() || verdict == node.verdict());
    verdict = node.verdict();
  }
}

void RunParsers(absl::string_view bytes) {
  if (const absl::StatusOr<Welcome> welcome = ParseWelcome(bytes); welcome.ok()) {
    Require(ParseWelcome(EncodeWelcome(*welcome)).ok());
  }
  for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1} << 30U}) {
    if (const absl::StatusOr<Parts> parts = ParseParts(bytes, count); parts.ok()) {
      Require(EncodeParts(*parts) == bytes);
    }
  }
  for (const size_t count : {size_t{0}, size_t{1}, size_t{3}, size_t{1} << 30U}) {
    if (const absl::StatusOr<Answers> answers = ParseAnswers(bytes, count); answers.ok()) {
      Require(EncodeAnswers(*answers) == bytes);
    }
  }
  if (const absl::StatusOr<Location> location = ParseLocation(bytes, kWorld); location.ok()) {
    Require(EncodeLocation(*location) == bytes);
  }
  if (const absl::StatusOr<Missing> missing = ParseMissing(bytes, kWorld); missing.ok()) {
    Require(EncodeMissing(*missing) == bytes);
  }
  if (const absl::StatusOr<Question> question = ParseQuestion(bytes, kWorld); question.ok()) {
    Require(EncodeQuestion(*question) == bytes);
  }
  if (const absl::StatusOr<Testimony> testimony = ParseTestimony(bytes, kWorld); testimony.ok()) {
    Require(EncodeTestimony(*testimony) == bytes);
  }
  if (const absl::StatusOr<InquiryReport> report = ParseInquiryReport(bytes, kWorld); report.ok()) {
    Require(EncodeInquiryReport(*report) == bytes);
  }
  Require(!ParseFailure(bytes).ok());
}

}  // namespace
}  // namespace railhead::bootstrap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  railhead::bootstrap::RunNode(bytes);
  railhead::bootstrap::RunParsers(bytes);
  return 0;
}

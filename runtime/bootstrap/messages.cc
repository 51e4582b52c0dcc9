// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/messages.h"

#include <utility>

#include "base/printable_text.h"
#include "runtime/base/wire.h"
#include "runtime/bootstrap/secret.h"
#include "runtime/bootstrap/tree.h"

namespace railhead::bootstrap {
namespace {

// Longer texts of errors are cut on their way.
constexpr size_t kFailureLimit = 4096;

}  // namespace

std::string EncodePlace(const std::optional<net::SocketAddress>& place) {
  if (!place.has_value()) return "";
  WireWriter writer;
  writer.U16(place->port);
  writer.Raw(place->address.Bytes());
  return writer.Take();
}

absl::StatusOr<std::optional<net::SocketAddress>> ParsePlace(absl::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  WireReader reader(bytes);
  const uint16_t port = reader.U16();
  if (!reader.ok() || port == 0) return absl::InvalidArgumentError("a malformed port");
  const absl::StatusOr<net::IpAddress> address =
      net::IpAddress::FromBytes(bytes.substr(sizeof port));
  if (!address.ok()) return address.status();
  return net::SocketAddress{*address, port};
}

std::string EncodeWelcome(const Welcome& welcome) {
  WireWriter writer;
  writer.Raw(welcome.session);
  writer.String(EncodePlace(welcome.parent));
  writer.String(EncodePlace(welcome.guardian));
  return writer.Take();
}

absl::StatusOr<Welcome> ParseWelcome(absl::string_view payload) {
  WireReader reader(payload);
  Welcome welcome;
  welcome.session = std::string(reader.Raw(kNonceSize));
  const absl::StatusOr<std::optional<net::SocketAddress>> parent =
      ParsePlace(reader.String(kPlaceLimit));
  const absl::StatusOr<std::optional<net::SocketAddress>> guardian =
      ParsePlace(reader.String(kPlaceLimit));
  if (!reader.Complete() || !parent.ok() || !guardian.ok()) {
    return absl::InternalError("rank 0 sent a malformed welcome");
  }
  welcome.parent = *parent;
  welcome.guardian = *guardian;
  return welcome;
}

std::string EncodeParts(const Parts& parts) {
  WireWriter writer;
  writer.U32(parts.round);
  writer.U32(static_cast<uint32_t>(parts.parts.size()));
  for (const std::string& part : parts.parts) writer.String(part);
  return writer.Take();
}

absl::StatusOr<Parts> ParseParts(absl::string_view payload, size_t count) {
  WireReader reader(payload);
  Parts parts;
  parts.round = reader.U32();
  // Each part has at least a length: a wrong count does not reserve memory.
  if (reader.U32() != count || count > payload.size() / sizeof(uint32_t)) {
    return absl::InternalError("parts of another number of ranks");
  }
  parts.parts.resize(count);
  for (std::string& part : parts.parts) part = reader.String(kPartLimit);
  if (!reader.Complete()) return absl::InternalError("malformed parts");
  return parts;
}

std::string EncodeAnswers(const Answers& answers) {
  WireWriter writer;
  writer.U32(answers.round);
  writer.String(answers.for_all);
  writer.U32(static_cast<uint32_t>(answers.for_each.size()));
  for (const std::string& answer : answers.for_each) writer.String(answer);
  return writer.Take();
}

absl::StatusOr<Answers> ParseAnswers(absl::string_view payload, size_t count) {
  WireReader reader(payload);
  Answers answers;
  answers.round = reader.U32();
  answers.for_all = reader.String(kAllLimit);
  const uint32_t each = reader.U32();
  // As above.
  if ((each != 0 && each != count) || each > payload.size() / sizeof(uint32_t)) {
    return absl::InternalError("answers for another number of ranks");
  }
  answers.for_each.resize(each);
  for (std::string& answer : answers.for_each) answer = reader.String(kAllLimit);
  if (!reader.Complete()) return absl::InternalError("malformed answers");
  return answers;
}

std::string EncodeLocation(const Location& location) {
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(location.asker));
  writer.U32(static_cast<uint32_t>(location.rank));
  writer.String(location.place);
  return writer.Take();
}

absl::StatusOr<Location> ParseLocation(absl::string_view payload, int world_size) {
  WireReader reader(payload);
  const uint32_t asker = reader.U32();
  const uint32_t rank = reader.U32();
  std::string place = reader.String(kLocationLimit);
  const auto world = static_cast<uint32_t>(world_size);
  if (!reader.Complete() || asker >= world || rank >= world) {
    return absl::InternalError("a malformed location of a rank");
  }
  return Location{static_cast<int>(asker), static_cast<int>(rank), std::move(place)};
}

std::string EncodeMissing(const Missing& missing) {
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(missing.rank));
  writer.U32(static_cast<uint32_t>(missing.children.size()));
  for (const int child : missing.children) writer.U32(static_cast<uint32_t>(child));
  return writer.Take();
}

absl::StatusOr<Missing> ParseMissing(absl::string_view payload, int world_size) {
  WireReader reader(payload);
  const uint32_t rank = reader.U32();
  const uint32_t count = reader.U32();
  const auto world = static_cast<uint32_t>(world_size);
  if (!reader.ok() || rank >= world || count > static_cast<uint32_t>(kArity)) {
    return absl::InternalError("a malformed list of missing ranks");
  }
  Missing missing{static_cast<int>(rank), {}};
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t child = reader.U32();
    if (child >= world) return absl::InternalError("a malformed list of missing ranks");
    missing.children.push_back(static_cast<int>(child));
  }
  if (!reader.Complete()) return absl::InternalError("a malformed list of missing ranks");
  return missing;
}

namespace {

void Write(WireWriter& writer, const Question& question) {
  writer.U32(static_cast<uint32_t>(question.asker));
  writer.U32(question.number);
}

std::optional<Question> ReadQuestion(WireReader& reader, int world_size) {
  const uint32_t asker = reader.U32();
  const uint32_t number = reader.U32();
  if (!reader.ok() || asker >= static_cast<uint32_t>(world_size) || number == 0) {
    return std::nullopt;
  }
  return Question{static_cast<int>(asker), number};
}

}  // namespace

std::string EncodeQuestion(const Question& question) {
  WireWriter writer;
  Write(writer, question);
  return writer.Take();
}

absl::StatusOr<Question> ParseQuestion(absl::string_view payload, int world_size) {
  WireReader reader(payload);
  const std::optional<Question> question = ReadQuestion(reader, world_size);
  if (!question.has_value() || !reader.Complete()) {
    return absl::InternalError("a malformed question");
  }
  return *question;
}

std::string EncodeTestimony(const Testimony& testimony) {
  WireWriter writer;
  Write(writer, testimony.question);
  writer.U32(static_cast<uint32_t>(testimony.answers.size()));
  for (const auto& [rank, text] : testimony.answers) {
    writer.U32(static_cast<uint32_t>(rank));
    writer.String(absl::string_view(text).substr(0, kAnswerLimit));
  }
  return writer.Take();
}

absl::StatusOr<Testimony> ParseTestimony(absl::string_view payload, int world_size) {
  absl::Status malformed = absl::InternalError("a malformed testimony");
  WireReader reader(payload);
  const std::optional<Question> question = ReadQuestion(reader, world_size);
  const uint32_t count = reader.U32();
  if (!question.has_value() || !reader.ok() || count > static_cast<uint32_t>(world_size)) {
    return malformed;
  }
  Testimony testimony{*question, {}};
  int64_t previous = -1;
  for (uint32_t i = 0; i < count; ++i) {
    const int64_t rank = reader.U32();
    std::string text = reader.String(kAnswerLimit);
    // In their order, so none comes twice.
    if (!reader.ok() || rank <= previous || rank >= world_size) return malformed;
    testimony.answers.emplace_hint(testimony.answers.end(), static_cast<int>(rank),
                                   std::move(text));
    previous = rank;
  }
  if (!reader.Complete()) return malformed;
  return testimony;
}

std::string EncodeInquiryReport(const InquiryReport& report) {
  WireWriter writer;
  Write(writer, report.question);
  writer.String(absl::string_view(report.text).substr(0, kReportLimit));
  return writer.Take();
}

absl::StatusOr<InquiryReport> ParseInquiryReport(absl::string_view payload, int world_size) {
  WireReader reader(payload);
  const std::optional<Question> question = ReadQuestion(reader, world_size);
  std::string text = reader.String(kReportLimit);
  if (!question.has_value() || !reader.Complete()) {
    return absl::InternalError("a malformed report");
  }
  return InquiryReport{*question, std::move(text)};
}

std::string EncodeGone(const Gone& gone) {
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(gone.rank));
  writer.String(PrintableText(gone.name, kFailureLimit));
  return writer.Take();
}

absl::StatusOr<Gone> ParseGone(absl::string_view payload, int world_size) {
  WireReader reader(payload);
  const uint32_t rank = reader.U32();
  std::string name = reader.String(kFailureLimit);
  if (!reader.Complete() || rank >= static_cast<uint32_t>(world_size)) {
    return absl::InternalError("a malformed notice of a rank's end");
  }
  return Gone{static_cast<int>(rank), std::move(name)};
}

std::string EncodeFailure(const absl::Status& status) {
  WireWriter writer;
  writer.U32(static_cast<uint32_t>(status.code()));
  writer.String(PrintableText(status.message(), kFailureLimit));
  return writer.Take();
}

absl::Status ParseFailure(absl::string_view payload) {
  WireReader reader(payload);
  const auto code = static_cast<absl::StatusCode>(reader.U32());
  const std::string text = reader.String(kFailureLimit);
  if (!reader.Complete() || code == absl::StatusCode::kOk ||
      code > absl::StatusCode::kUnauthenticated) {
    return absl::InternalError("a malformed notice of failure");
  }
  return absl::Status(code, text);
}

}  // namespace railhead::bootstrap

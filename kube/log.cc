// SPDX-License-Identifier: Apache-2.0
#include "kube/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <memory>
#include <utility>

#include "base/printable_text.h"

namespace railhead::kube {
namespace {

class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& record, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const std::string text = PrintableText({record.payload.data(), record.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

}  // namespace

void SetUpLog(const std::string& program) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt(program));
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<PrintableMessage>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %*");
  spdlog::set_formatter(std::move(formatter));
}

const std::vector<std::string>& LogLevels() {
  static const auto* const levels = new std::vector<std::string>{"info", "warning", "error"};
  return *levels;
}

void SetLogLevel(const std::string& level) { spdlog::set_level(spdlog::level::from_str(level)); }

}  // namespace railhead::kube

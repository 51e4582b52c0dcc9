// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/background.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <future>
#include <string>

#include "absl/time/clock.h"
#include "runtime/base/now.h"
#include "runtime/net/fd.h"
#include "runtime/testing/no_threads.h"

namespace railhead {
namespace {

TEST(BackgroundTest, NobodyWaitsForIt) {
  std::promise<void> go;
  std::promise<void> done;
  RunInBackground(MonotonicNow() + absl::Seconds(20), [&] {
    go.get_future().wait();
    done.set_value();
  });
  // It has returned, though the work cannot be done yet.
  go.set_value();
  done.get_future().wait();
  AwaitBackground();
}

// Runs `body` in a program of its own that ends by exit(), and returns its output.
std::string OutputOf(const std::function<void(int output)>& body) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  const net::Fd in(ends[0]);
  net::Fd out(ends[1]);
  if (::fork() == 0) {
    body(out.get());
    std::exit(0);
  }
  out.Reset();
  std::string text;
  char byte = 0;
  while (::read(in.get(), &byte, 1) == 1) text += byte;
  ::wait(nullptr);
  return text;
}

TEST(BackgroundTest, TheEndOfTheProcessWaitsForItUntilItsDeadline) {
  EXPECT_EQ(OutputOf([](int output) {
              RunInBackground(MonotonicNow() + absl::Seconds(20), [output] {
                absl::SleepFor(absl::Milliseconds(200));
                if (::write(output, "done", 4) != 4) std::abort();
              });
            }),
            "done");
  EXPECT_EQ(OutputOf([](int) {
              RunInBackground(MonotonicNow() + absl::Milliseconds(50), [] {
                while (true) absl::SleepFor(absl::Seconds(1));
              });
            }),
            "")
      << "the process has ended all the same";
}

TEST(BackgroundTest, WithoutAThreadTheWorkRunsAtOnceAndMayStartMore) {
  EXPECT_EQ(OutputOf([](int output) {
              const auto write = [output](const char* word, size_t size) {
                if (::write(output, word, size) != static_cast<ssize_t>(size)) std::abort();
              };
              ::alarm(20);  // ends a process that hangs
              const testing::NoThreads none;
              RunInBackground(MonotonicNow() + absl::Seconds(20), [&] {
                RunInBackground(MonotonicNow() + absl::Seconds(20), [&] { write("inner ", 6); });
                write("outer", 5);
              });
            }),
            "inner outer");
}

TEST(BackgroundTest, WorkThatMayBlockDoesNotRunWithoutAThread) {
  bool done = false;
  const auto work = [&done] { done = true; };
  {
    const testing::NoThreads none;
    EXPECT_EQ(TryRunInBackground(MonotonicNow() + absl::Seconds(20), work).code(),
              absl::StatusCode::kResourceExhausted);
  }
  AwaitBackground();
  EXPECT_FALSE(done);
  EXPECT_TRUE(TryRunInBackground(MonotonicNow() + absl::Seconds(20), work).ok());
  AwaitBackground();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace railhead

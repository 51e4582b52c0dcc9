// SPDX-License-Identifier: Apache-2.0
#include "mpi/transfers.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "mpi/testing/program.h"

namespace railhead::mpi {
namespace {

constexpr int kLarge = 64 << 20;  // bytes that take a while

size_t Threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// Whether no more than `most` threads are left, soon: /proc lists a thread for a moment after its
// end.
bool ThreadsEndDownTo(size_t most) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (Threads() > most) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

class TransfersTest : public RunningProgramTest {
 protected:
  void SetUp() override {
    RunningProgramTest::SetUp();
    threads_without_ = Threads();
    ASSERT_EQ(MPI_Comm_dup(kWorld, &comm_), kSuccess);
  }
  void TearDown() override {
    if (comm_ != &ompi_mpi_comm_null) {
      EXPECT_EQ(MPI_Comm_free(&comm_), kSuccess);
    }
  }

  // Requests of a message to this rank itself; `room` bytes are less than `bytes`: both fail.
  std::array<Request*, 2> Begin(int bytes, int room) {
    sent_.resize(static_cast<size_t>(bytes));
    received_.resize(static_cast<size_t>(bytes));
    std::array<Request*, 2> requests = {};
    EXPECT_EQ(MPI_Irecv(received_.data(), room, kByte, 0, 0, comm_, &requests[0]), kSuccess);
    EXPECT_EQ(MPI_Isend(sent_.data(), bytes, kByte, 0, 0, comm_, &requests[1]), kSuccess);
    return requests;
  }

  size_t threads_without_ = 0;
  Communicator* comm_ = nullptr;
  std::vector<char> sent_;
  std::vector<char> received_;
};

// As MPI allows: the communicator ends with its last request.
TEST_F(TransfersTest, ACommunicatorMayBeFreedBeforeItsRequestsEnd) {
  sent_.assign(kLarge, 'x');
  std::array<Request*, 2> requests = Begin(kLarge, kLarge);
  EXPECT_GT(Threads(), threads_without_);
  ASSERT_EQ(MPI_Comm_free(&comm_), kSuccess);
  EXPECT_EQ(comm_, &ompi_mpi_comm_null);
  for (Request*& request : requests) EXPECT_EQ(MPI_Wait(&request, nullptr), kSuccess);
  EXPECT_EQ(received_, sent_);
  EXPECT_TRUE(ThreadsEndDownTo(threads_without_));
}

TEST_F(TransfersTest, AFailureIsReportedAfterItsCommunicatorIsFreed) {
  std::array<Request*, 2> requests = Begin(kLarge, 1);
  ASSERT_EQ(MPI_Comm_free(&comm_), kSuccess);
  // Other objects use what memory has been freed.
  std::vector<std::string> others;
  for (size_t size = 16; size < 1024; size += 16) others.emplace_back(size, '\0');
  EXPECT_EQ(MPI_Wait(&requests[0], nullptr), kErrorOther);
  int done = 0;
  int error = kSuccess;
  while (done == 0) error = MPI_Test(&requests[1], &done, nullptr);
  EXPECT_EQ(error, kErrorOther);
  EXPECT_TRUE(ThreadsEndDownTo(threads_without_));
}

TEST_F(TransfersTest, WaitallHasTheResultOfEachRequest) {
  for (const bool test : {false, true}) {
    SCOPED_TRACE(test);
    const std::array<Request*, 2> failing = Begin(1 << 20, 1);
    // Of another communicator, and therefore not failed.
    Communicator* other = nullptr;
    ASSERT_EQ(MPI_Comm_dup(kWorld, &other), kSuccess);
    int one = 0;
    const int number = 5;
    std::array<Request*, 4> requests = {nullptr, failing[0], &ompi_request_null, nullptr};
    ASSERT_EQ(MPI_Irecv(&one, 1, kInt, 0, 3, other, &requests[0]), kSuccess);
    ASSERT_EQ(MPI_Isend(&number, 1, kInt, 0, 3, other, &requests[3]), kSuccess);
    std::array<MpiStatus, 4> statuses = {};
    for (MpiStatus& status : statuses) status = {-9, -9, -9, -9, 99};
    int error = kSuccess;
    if (test) {
      int done = 0;
      while (done == 0) error = MPI_Testall(4, requests.data(), &done, statuses.data());
    } else {
      error = MPI_Waitall(4, requests.data(), statuses.data());
    }
    EXPECT_EQ(error, kErrorInStatus);
    std::array<char, 256> text = {};
    int length = 0;
    ASSERT_EQ(MPI_Error_string(error, text.data(), &length), kSuccess);
    EXPECT_NE(std::string(text.data()).find("1048576"), std::string::npos) << text.data();
    EXPECT_EQ(statuses[0].error, kSuccess);
    EXPECT_EQ(statuses[0].source, 0);
    EXPECT_EQ(statuses[0].tag, 3);
    EXPECT_EQ(statuses[0].bytes, sizeof(int));
    EXPECT_EQ(one, number);
    EXPECT_EQ(statuses[1].error, kErrorOther);
    EXPECT_EQ(statuses[2].error, kSuccess);
    EXPECT_EQ(statuses[2].source, -1);
    EXPECT_EQ(statuses[3].error, kSuccess);
    for (Request* request : requests) EXPECT_EQ(request, &ompi_request_null);
    Request* last = failing[1];
    EXPECT_EQ(MPI_Waitall(1, &last, nullptr), kErrorInStatus);
    ASSERT_EQ(MPI_Comm_free(&other), kSuccess);
    ASSERT_EQ(MPI_Comm_free(&comm_), kSuccess);
    ASSERT_EQ(MPI_Comm_dup(kWorld, &comm_), kSuccess);
  }
}

TEST_F(TransfersTest, WaitanyWithoutARequestHasAnEmptyStatus) {
  std::array<Request*, 2> requests = {&ompi_request_null, &ompi_request_null};
  MpiStatus status = {-9, -9, -9, -9, 99};
  int index = 7;
  EXPECT_EQ(MPI_Waitany(2, requests.data(), &index, &status), kSuccess);
  EXPECT_EQ(index, kUndefined);
  EXPECT_EQ(status.source, -1);
  EXPECT_EQ(status.tag, kAnyTag);
  EXPECT_EQ(status.error, kSuccess);
  EXPECT_EQ(status.bytes, 0U);
}

TEST_F(TransfersTest, SizesAndCountsThatAnIntCannotHoldAreUndefined) {
  Datatype* large = nullptr;
  ASSERT_EQ(MPI_Type_contiguous(1 << 30, kInt, &large), kSuccess);
  int bytes = 0;
  EXPECT_EQ(MPI_Type_size(large, &bytes), kSuccess);
  EXPECT_EQ(bytes, kUndefined);
  const MpiStatus status = {0, 0, 0, 0, size_t{1} << 32};
  int count = 0;
  EXPECT_EQ(MPI_Get_count(&status, kByte, &count), kSuccess);
  EXPECT_EQ(count, kUndefined);
  EXPECT_EQ(MPI_Get_count(&status, kInt, &count), kSuccess);
  EXPECT_EQ(count, 1 << 30);
  ASSERT_EQ(MPI_Type_free(&large), kSuccess);
}

TEST_F(TransfersTest, ATypeMayBeEmpty) {
  Datatype* empty = nullptr;
  ASSERT_EQ(MPI_Type_contiguous(0, kInt, &empty), kSuccess);
  int bytes = -1;
  EXPECT_EQ(MPI_Type_size(empty, &bytes), kSuccess);
  EXPECT_EQ(bytes, 0);
  Datatype* many = nullptr;
  EXPECT_EQ(MPI_Type_contiguous(3, empty, &many), kSuccess);
  EXPECT_EQ(MPI_Type_free(&many), kSuccess);
  MpiStatus status = {};
  EXPECT_EQ(MPI_Sendrecv(nullptr, 2, empty, 0, 1, nullptr, 2, empty, 0, 1, comm_, &status),
            kSuccess);
  int count = -1;
  EXPECT_EQ(MPI_Get_count(&status, empty, &count), kSuccess);
  EXPECT_EQ(count, 0);
  status.bytes = 4;
  EXPECT_EQ(MPI_Get_count(&status, empty, &count), kSuccess);
  EXPECT_EQ(count, kUndefined);
  EXPECT_EQ(MPI_Allgather(nullptr, 1, empty, nullptr, 1, empty, comm_), kSuccess);
  EXPECT_EQ(MPI_Bcast(nullptr, 1, empty, 0, comm_), kSuccess);
  ASSERT_EQ(MPI_Type_free(&empty), kSuccess);
  EXPECT_EQ(MPI_Type_size(empty, &bytes), kErrorType);  // it is MPI_DATATYPE_NULL now
}

}  // namespace
}  // namespace railhead::mpi

// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "mpi/testing/program.h"

namespace railhead::mpi {
namespace {

std::vector<std::string>& Calls() {
  static std::vector<std::string> calls;
  return calls;
}

void* Value(intptr_t number) { return reinterpret_cast<void*>(number); }

std::string Text(const char* what, void* value) {
  return what + std::to_string(reinterpret_cast<intptr_t>(value));
}

int Copy(Communicator* /*comm*/, int /*key*/, void* extra, void* value, void* made, int* flag) {
  Calls().push_back(Text("copy ", value));
  *static_cast<void**>(made) = Value(reinterpret_cast<intptr_t>(value) + 100);
  *flag = extra == nullptr ? 1 : 0;
  return kSuccess;
}

int Delete(Communicator* /*comm*/, int /*key*/, void* value, void* /*extra*/) {
  Calls().push_back(Text("delete ", value));
  return kSuccess;
}

int FailToCopy(Communicator* /*comm*/, int /*key*/, void* /*extra*/, void* /*value*/,
               void* /*made*/, int* /*flag*/) {
  return 77;
}

int FailToDelete(Communicator* /*comm*/, int /*key*/, void* /*value*/, void* extra) {
  return *static_cast<int*>(extra);
}

int Print(Communicator* comm, int /*key*/, void* value, void* /*extra*/) {
  int size = 0;
  std::fprintf(stderr, "%s of %s is deleted;", Text("", value).c_str(),
               MPI_Comm_rank(comm, &size) == kSuccess ? "a communicator" : "nothing");
  return kSuccess;
}

class AttributesTest : public RunningProgramTest {
 protected:
  void SetUp() override {
    RunningProgramTest::SetUp();
    Calls().clear();
    ASSERT_EQ(MPI_Comm_dup(kWorld, &comm_), kSuccess);
  }
  void TearDown() override {
    if (comm_ != &ompi_mpi_comm_null) {
      EXPECT_EQ(MPI_Comm_free(&comm_), kSuccess);
    }
  }

  static int Key(MpiCopyAttribute copy = &Copy, MpiDeleteAttribute remove = &Delete,
                 void* extra = nullptr) {
    int key = -1;
    EXPECT_EQ(MPI_Comm_create_keyval(copy, remove, &key, extra), kSuccess);
    return key;
  }
  // The attribute's value; -1: it has none.
  static intptr_t Get(Communicator* comm, int key) {
    void* value = nullptr;
    int flag = 0;
    EXPECT_EQ(MPI_Comm_get_attr(comm, key, static_cast<void*>(&value), &flag), kSuccess);
    return flag == 0 ? -1 : reinterpret_cast<intptr_t>(value);
  }

  int result_of_delete_ = kSuccess;
  Communicator* comm_ = nullptr;
};

using Texts = std::vector<std::string>;

TEST_F(AttributesTest, AValueThatIsReplacedOrDeletedIsToldToTheProgram) {
  const int key = Key();
  ASSERT_EQ(MPI_Comm_set_attr(comm_, key, Value(1)), kSuccess);
  EXPECT_EQ(Calls(), Texts());
  ASSERT_EQ(MPI_Comm_set_attr(comm_, key, Value(2)), kSuccess);
  EXPECT_EQ(Calls(), Texts({"delete 1"}));
  ASSERT_EQ(MPI_Comm_delete_attr(comm_, key), kSuccess);
  EXPECT_EQ(Calls(), Texts({"delete 1", "delete 2"}));
  EXPECT_EQ(Get(comm_, key), -1);
}

TEST_F(AttributesTest, ACopyOfACommunicatorHasThemAndItsEndDeletesThem) {
  const int key = Key();
  const int not_copied = Key(&Copy, &Delete, &comm_);
  const int without_function = Key(nullptr, nullptr);
  ASSERT_EQ(MPI_Comm_set_attr(comm_, key, Value(1)), kSuccess);
  ASSERT_EQ(MPI_Comm_set_attr(comm_, not_copied, Value(2)), kSuccess);
  ASSERT_EQ(MPI_Comm_set_attr(comm_, without_function, Value(3)), kSuccess);
  Communicator* copy = nullptr;
  ASSERT_EQ(MPI_Comm_dup(comm_, &copy), kSuccess);
  EXPECT_EQ(Calls(), Texts({"copy 1", "copy 2"}));
  EXPECT_EQ(Get(copy, key), 101);
  EXPECT_EQ(Get(copy, not_copied), -1);
  EXPECT_EQ(Get(copy, without_function), -1);
  Calls().clear();
  ASSERT_EQ(MPI_Comm_free(&copy), kSuccess);
  EXPECT_EQ(Calls(), Texts({"delete 101"}));
  Calls().clear();
  ASSERT_EQ(MPI_Comm_free(&comm_), kSuccess);
  EXPECT_EQ(Calls(), Texts({"delete 2", "delete 1"}));
}

TEST_F(AttributesTest, ASplitHasNone) {
  const int key = Key();
  ASSERT_EQ(MPI_Comm_set_attr(comm_, key, Value(1)), kSuccess);
  Communicator* part = nullptr;
  ASSERT_EQ(MPI_Comm_split(comm_, 0, 0, &part), kSuccess);
  EXPECT_EQ(Get(part, key), -1);
  EXPECT_EQ(Calls(), Texts());
  ASSERT_EQ(MPI_Comm_free(&part), kSuccess);
}

TEST_F(AttributesTest, AFailureOfTheProgramsFunctionFailsTheCall) {
  const int uncopied = Key(&FailToCopy);
  ASSERT_EQ(MPI_Comm_set_attr(comm_, uncopied, Value(1)), kSuccess);
  Communicator* copy = nullptr;
  EXPECT_EQ(MPI_Comm_dup(comm_, &copy), 77);
  EXPECT_EQ(copy, &ompi_mpi_comm_null);
  ASSERT_EQ(MPI_Comm_delete_attr(comm_, uncopied), kSuccess);

  result_of_delete_ = 78;
  const int kept = Key(nullptr, &FailToDelete, &result_of_delete_);
  ASSERT_EQ(MPI_Comm_set_attr(comm_, kept, Value(1)), kSuccess);
  EXPECT_EQ(MPI_Comm_set_attr(comm_, kept, Value(2)), 78);
  EXPECT_EQ(MPI_Comm_delete_attr(comm_, kept), 78);
  EXPECT_EQ(MPI_Comm_free(&comm_), 78);
  ASSERT_NE(comm_, &ompi_mpi_comm_null);
  EXPECT_EQ(Get(comm_, kept), 1);
  result_of_delete_ = kSuccess;
}

TEST_F(AttributesTest, AKeyThatIsFreedServesTheAttributesThatHaveIt) {
  int key = Key();
  const int freed = key;
  ASSERT_EQ(MPI_Comm_set_attr(comm_, key, Value(1)), kSuccess);
  ASSERT_EQ(MPI_Comm_free_keyval(&key), kSuccess);
  EXPECT_EQ(key, -1);
  EXPECT_EQ(MPI_Comm_free_keyval(&key), kErrorKeyval);
  EXPECT_EQ(MPI_Comm_set_attr(kWorld, freed, Value(1)), kErrorKeyval);
  EXPECT_EQ(MPI_Comm_delete_attr(kWorld, freed), kErrorKeyval);
  EXPECT_EQ(Get(comm_, freed), 1);
  ASSERT_EQ(MPI_Comm_delete_attr(comm_, freed), kSuccess);
  EXPECT_EQ(Calls(), Texts({"delete 1"}));
}

TEST_F(AttributesTest, ThreadsSetAndReadAttributesOfOneCommunicator) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 500; ++i) {
        const int key = Key(nullptr, nullptr);
        ASSERT_EQ(MPI_Comm_set_attr(comm_, key, Value(t)), kSuccess);
        ASSERT_EQ(Get(comm_, key), t);
        if (i % 2 == 0) {
          ASSERT_EQ(MPI_Comm_delete_attr(comm_, key), kSuccess);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(AttributesTest, TheFunctionsThatMpiPredefines) {
  const auto copies = [this](const char* name) {
    const auto function = reinterpret_cast<MpiCopyAttribute>(dlsym(RTLD_DEFAULT, name));
    EXPECT_NE(function, nullptr) << name;
    if (function == nullptr) return false;
    void* made = nullptr;
    int flag = 7;
    EXPECT_EQ(function(comm_, 1, nullptr, Value(5), static_cast<void*>(&made), &flag), kSuccess);
    EXPECT_EQ(made, flag == 0 ? nullptr : Value(5)) << name;
    return flag == 1;
  };
  for (const char* name : {"OMPI_C_MPI_COMM_DUP_FN", "OMPI_C_MPI_DUP_FN", "OMPI_C_MPI_TYPE_DUP_FN",
                           "OMPI_C_MPI_WIN_DUP_FN"}) {
    EXPECT_TRUE(copies(name)) << name;
  }
  for (const char* name : {"OMPI_C_MPI_COMM_NULL_COPY_FN", "OMPI_C_MPI_NULL_COPY_FN",
                           "OMPI_C_MPI_TYPE_NULL_COPY_FN", "OMPI_C_MPI_WIN_NULL_COPY_FN"}) {
    EXPECT_FALSE(copies(name)) << name;
  }
  for (const char* name : {"OMPI_C_MPI_COMM_NULL_DELETE_FN", "OMPI_C_MPI_NULL_DELETE_FN",
                           "OMPI_C_MPI_TYPE_NULL_DELETE_FN", "OMPI_C_MPI_WIN_NULL_DELETE_FN"}) {
    const auto function = reinterpret_cast<MpiDeleteAttribute>(dlsym(RTLD_DEFAULT, name));
    ASSERT_NE(function, nullptr) << name;
    EXPECT_EQ(function(comm_, 1, nullptr, nullptr), kSuccess) << name;
  }
  // MPItrampoline's constants are those functions.
  for (const char* name : {"COMM_DUP_FN", "COMM_NULL_COPY_FN", "COMM_NULL_DELETE_FN"}) {
    const std::string constant = std::string("MPIABI_") + name;
    const auto* const found = static_cast<void**>(dlsym(RTLD_DEFAULT, constant.c_str()));
    ASSERT_NE(found, nullptr) << constant;
    EXPECT_EQ(*found, dlsym(RTLD_DEFAULT, (std::string("OMPI_C_MPI_") + name).c_str()));
  }
}

TEST_F(ProgramTest, TheEndDeletesTheAttributesOfSelfTheLatestFirst) {
  const auto program = [] {
    StartMpi();
    for (const int value : {1, 2, 3}) {
      int key = -1;
      MPI_Comm_create_keyval(nullptr, &Print, &key, nullptr);
      MPI_Comm_set_attr(kSelf, key, Value(value));
    }
    std::exit(MPI_Finalize());
  };
  EXPECT_EXIT(program(), testing::ExitedWithCode(0),
              "3 of a communicator is deleted;2 of a communicator is deleted;1 of a communicator");
}

}  // namespace
}  // namespace railhead::mpi

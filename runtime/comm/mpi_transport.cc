#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/comm/internal/memory_access.h"
#include "runtime/comm/launcher.h"
#include "runtime/comm/transport.h"

namespace mox {
namespace {

constexpr size_t kLargestMessage = size_t{1} << 30;  // MPI counts with int
constexpr int kSends = -1;

// The functions of the MPI library that are used, found at run time: a process that no mpirun has started
// neither needs the library nor loads it.
struct MpiLibrary {
  decltype(&::MPI_Init_thread) init_thread;
  decltype(&::MPI_Finalize) finalize;
  decltype(&::MPI_Comm_rank) comm_rank;
  decltype(&::MPI_Comm_size) comm_size;
  decltype(&::MPI_Comm_set_errhandler) comm_set_errhandler;
  decltype(&::MPI_Error_string) error_string;
  decltype(&::MPI_Isend) isend;
  decltype(&::MPI_Irecv) irecv;
  decltype(&::MPI_Testsome) testsome;
  decltype(&::MPI_Get_count) get_count;
  MPI_Comm world;
  MPI_Datatype byte;
  MPI_Errhandler errors_return;
  MPI_Request null_request;

  MpiLibrary() {
    if (!dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL))
      throw NotFound(fmt::format(
          "this process is one of several, but the library of Open MPI (4.1 or 5) cannot be opened: {}",
          dlerror()));
    find(init_thread, "MPI_Init_thread");
    find(finalize, "MPI_Finalize");
    find(comm_rank, "MPI_Comm_rank");
    find(comm_size, "MPI_Comm_size");
    find(comm_set_errhandler, "MPI_Comm_set_errhandler");
    find(error_string, "MPI_Error_string");
    find(isend, "MPI_Isend");
    find(irecv, "MPI_Irecv");
    find(testsome, "MPI_Testsome");
    find(get_count, "MPI_Get_count");
    find(world, "ompi_mpi_comm_world");  // what the header's macros stand for
    find(byte, "ompi_mpi_byte");
    find(errors_return, "ompi_mpi_errors_return");
    find(null_request, "ompi_request_null");
  }

 private:
  template <typename T>
  static void find(T& target, const char* name) {
    // Not from the handle: a program that links the library has copies of its data, and those are the
    // ones in use.
    void* address = dlsym(RTLD_DEFAULT, name);
    if (!address) throw NotFound(fmt::format("libmpi.so.40 has no '{}'; Open MPI 4.1 or 5 is needed", name));
    target = reinterpret_cast<T>(address);
  }
};

}  // namespace

struct MpiTransport::Implementation {
  MpiLibrary mpi;
  int rank = 0, size = 1;
  std::string why_memory_is_not_read;
  uint64_t last_id = 0;
  // Messages under way: the requests of MPI side by side, as MPI_Testsome takes them, and for each the
  // id of ours.
  std::vector<MPI_Request> requests;
  std::vector<uint64_t> owners;
  std::vector<int> expected;           // by request: the bytes of one that receives, else kSends
  std::map<uint64_t, int> incomplete;  // by id: how many of its messages are under way
  std::vector<int> completed;          // as MPI_Testsome gives them, like the next
  std::vector<MPI_Status> statuses;

  void check(int code, const char* what) const {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    mpi.error_string(code, text, &length);
    throw IoError(fmt::format("MPI: {} failed: {}", what, text));
  }

  // One request for a message of any length.
  template <typename Byte, typename Post>
  Request post(int peer, std::span<Byte> data, bool receives, const char* what, Post one) {
    const uint64_t id = ++last_id;
    size_t begin = 0;
    do {
      const size_t count = std::min(kLargestMessage, data.size() - begin);
      check(one(data.data() + begin, static_cast<int>(count), &requests.emplace_back()), what);
      owners.push_back(id);
      expected.push_back(receives ? static_cast<int>(count) : kSends);
      ++incomplete[id];
      begin += count;
    } while (begin < data.size());
    return {.peer = peer, .id = id};
  }

  // Throws what has gone wrong with one of the requests.
  void check_each(int code, int count) const {
    if (code != MPI_ERR_IN_STATUS) return check(code, "MPI_Testsome");
    for (int i = 0; i < count; ++i) {
      if (statuses[i].MPI_ERROR == MPI_ERR_TRUNCATE) refuse_length(statuses[i]);
      check(statuses[i].MPI_ERROR, "MPI_Testsome");
    }
  }

  // A message that is too short comes as a success.
  void check_lengths(int count) const {
    for (int i = 0; i < count; ++i) {
      const int wanted = expected[completed[i]];
      int bytes = 0;
      if (wanted == kSends) continue;
      check(mpi.get_count(&statuses[i], mpi.byte, &bytes), "MPI_Get_count");
      if (bytes != wanted) refuse_length(statuses[i]);
    }
  }

  [[noreturn]] static void refuse_length(const MPI_Status& status) {
    throw FailedPrecondition(fmt::format(
        "rank {} has sent another message than this rank waits for: the two have not called the same "
        "functions in the same order. What all ranks take part in (an evaluation, barrier, broadcast, "
        "allreduce, allgather) must be called by all of them, not by one alone",
        status.MPI_SOURCE));
  }
};

MpiTransport::MpiTransport(int ranks) : implementation_(std::make_unique<Implementation>()) {
  Implementation& self = *implementation_;
  self.why_memory_is_not_read = internal::choose_single_copy_mechanism();
  int provided = 0;
  // The thread that makes this object is another one than the thread that communicates; never two at a time.
  self.check(self.mpi.init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_SERIALIZED)
    throw FailedPrecondition("this MPI library cannot be used from a thread of one's own");
  self.check(self.mpi.comm_set_errhandler(self.mpi.world, self.mpi.errors_return), "MPI_Comm_set_errhandler");
  self.check(self.mpi.comm_rank(self.mpi.world, &self.rank), "MPI_Comm_rank");
  self.check(self.mpi.comm_size(self.mpi.world, &self.size), "MPI_Comm_size");
  if (ranks != kRanksKnownToMpi && self.size != ranks)
    throw FailedPrecondition(fmt::format(
        "the launcher has started {} processes, but MPI connects {}: Open MPI has found no PMIx server that "
        "it can talk to (srun needs --mpi=pmix with a PMIx that fits, see srun --mpi=list); use mox launch, "
        "or Open MPI's mpirun",
        ranks, self.size));
}

MpiTransport::~MpiTransport() {
  // Operations that were abandoned have left requests, whose memory may be gone: MPI must not go
  // on with them.
  if (implementation_->requests.empty()) implementation_->mpi.finalize();
}

const std::string& MpiTransport::why_memory_is_not_read() const {
  return implementation_->why_memory_is_not_read;
}

int MpiTransport::rank() const { return implementation_->rank; }
int MpiTransport::size() const { return implementation_->size; }

Transport::Request MpiTransport::send(int to, int tag, std::span<const std::byte> data) {
  Implementation& self = *implementation_;
  Request request =
      self.post(to, data, false, "MPI_Isend", [&](const std::byte* part, int count, MPI_Request* posted) {
        return self.mpi.isend(part, count, self.mpi.byte, to, tag, self.mpi.world, posted);
      });
  request.bytes_sent = data.size();
  return request;
}

Transport::Request MpiTransport::receive(int from, int tag, std::span<std::byte> data) {
  Implementation& self = *implementation_;
  return self.post(from, data, true, "MPI_Irecv", [&](std::byte* part, int count, MPI_Request* posted) {
    return self.mpi.irecv(part, count, self.mpi.byte, from, tag, self.mpi.world, posted);
  });
}

void MpiTransport::progress() {
  Implementation& self = *implementation_;
  if (self.requests.empty()) return;
  self.completed.resize(self.requests.size());
  self.statuses.resize(self.requests.size());
  int count = 0;
  // Open MPI looks first and moves messages only if it found none complete: what has then arrived is seen by
  // the next call.
  for (int call = 0; call < 2 && count == 0; ++call) {
    const int code = self.mpi.testsome(static_cast<int>(self.requests.size()), self.requests.data(), &count,
                                       self.completed.data(), self.statuses.data());
    self.check_each(code, count);
  }
  if (count == 0) return;
  self.check_lengths(count);
  for (int i = 0; i < count; ++i) --self.incomplete.at(self.owners[self.completed[i]]);
  // MPI has set those that are complete to the null request.
  size_t kept = 0;
  for (size_t i = 0; i < self.requests.size(); ++i) {
    if (self.requests[i] == self.mpi.null_request) continue;
    self.requests[kept] = self.requests[i];
    self.expected[kept] = self.expected[i];
    self.owners[kept++] = self.owners[i];
  }
  self.requests.resize(kept);
  self.expected.resize(kept);
  self.owners.resize(kept);
}

bool MpiTransport::test(const Request& request) {
  Implementation& self = *implementation_;
  auto found = self.incomplete.find(request.id);
  MOX_ASSERT(found != self.incomplete.end(), "a request is tested until it is complete, and not after that");
  if (found->second > 0) return false;
  self.incomplete.erase(found);
  return true;
}

}  // namespace mox

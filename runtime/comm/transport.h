// Transport: messages between the ranks of a job, the ground that every collective operation stands on.
//
// Messages between two ranks with the same tag arrive in the order in which they were sent; a message and the
// receive that takes it have the same length. Nothing blocks: `progress` lets messages move, and `test` says
// which of them have arrived by then.
//
// Threads: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace mox {

class Transport {
 public:
  // A send or a receive under way. Its memory belongs to the caller and stays as it is until the
  // request is complete.
  struct Request {
    int peer = 0;
    uint64_t id = 0;
    size_t bytes_sent = 0;  // of a send
  };

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Request send(int to, int tag, std::span<const std::byte> data) = 0;
  virtual Request receive(int from, int tag, std::span<std::byte> data) = 0;
  // Moves what can be moved without waiting. One call for all requests: it asks the kernel about every
  // connection, which for each request by itself would take longer than the messages do. Throws IoError if
  // the network gave up, FailedPrecondition for a message of another length than its receive.
  virtual void progress() = 0;
  // True if the request was complete when `progress` returned last; it is gone then.
  virtual bool test(const Request& request) = 0;
};

// `size` ranks within this process, for tests of what is built on transports: rank r is the r-th of the
// result, to be used by a thread of its own. They may be destroyed in any order.
std::vector<std::unique_ptr<Transport>> make_thread_transports(int size);

// MPI between the processes of an mpirun (or of what else speaks PMIx). Opens the library, and calls
// MPI_Init_thread; the destructor calls MPI_Finalize, which waits for all ranks, unless requests are under
// way: then the job has failed, and mpirun will say that this process ended without it. Throws NotFound if
// there is no MPI library, FailedPrecondition if it does not do what is needed. Once a process.
class MpiTransport : public Transport {
 public:
  // `ranks`: how many the launcher has started, or kRanksKnownToMpi. Throws FailedPrecondition if MPI
  // connects another number.
  explicit MpiTransport(int ranks);
  ~MpiTransport() override;
  int rank() const override;
  int size() const override;
  Request send(int to, int tag, std::span<const std::byte> data) override;
  Request receive(int from, int tag, std::span<std::byte> data) override;
  void progress() override;
  bool test(const Request& request) override;
  // Why messages within this machine go through shared memory and are not read from the sender's, by the
  // system's words; "" where they are read, or where the environment has decided.
  const std::string& why_memory_is_not_read() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace mox

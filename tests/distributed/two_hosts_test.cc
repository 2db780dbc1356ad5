// Two hosts with a network of their own between them, which bench/harness/two_hosts makes of this machine.
// Skipped where it may not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "moxing/checkpoint/checkpoint.h"
#include "tests/distributed/job.h"

namespace mox {
namespace {

using testing::HasSubstr;

constexpr int kNoHosts = 77;

class TwoHosts : public TrainingTest {
 protected:
  void SetUp() override {
    const ProcessResult result = on_hosts("1gbit", "0", {"/bin/true"});
    if (result.status == kNoHosts) GTEST_SKIP() << "needs network namespaces: " << result.err;
    ASSERT_EQ(result.status, 0) << result.err;
  }

  // `command` as a job of one rank on each of two hosts.
  static ProcessResult on_hosts(const std::string& rate, const std::string& latency, Words command) {
    if (!command[0].starts_with('/')) command[0] = MOX_BINARY_DIR "/bin/" + command[0];
    return Process(Words{MOX_SOURCE_DIR "/bench/harness/two_hosts", rate, latency} + command).wait(100);
  }

  Words program(const std::string& log_dir, const Words& flags) const {
    return Words{"distributed_program", "--train_url=" + log_dir, "--max_number_of_steps=12",
                 "--log_every_n_steps=0", "--logical_replicas=4"} +
           flags;
  }
};

// One host sends 4 MB to the other, which prints the seconds from before the first byte was sent until the
// last one was here. The sender says when it began (its clock is the same): what arrives while a busy machine
// lets the receiver wait is no faster link.
constexpr auto kSend = R"(
import os, socket, struct, time
if os.environ["OMPI_COMM_WORLD_RANK"] == "0":
    listener = socket.create_server(("10.77.0.1", 5077))
    peer, _ = listener.accept()
    received = bytearray()
    while len(received) < 4 << 20:
        received += peer.recv(1 << 20)
    print("seconds:", time.monotonic() - struct.unpack("d", received[:8])[0])
else:
    for _ in range(100):
        try:
            peer = socket.create_connection(("10.77.0.1", 5077))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    peer.sendall(struct.pack("d", time.monotonic()) + bytes((4 << 20) - 8))
    peer.recv(1)
)";

// A machine may be slower than the link, but the link never faster than it is shaped.
TEST_F(TwoHosts, AreJoinedByALinkOfTheRateAskedFor) {
  for (const std::string latency : {"0", "0.002"}) {
    const ProcessResult result = on_hosts("20mbit", latency, {"/usr/bin/python3", "-c", kSend});
    expect_success(result);
    const size_t at = result.out.find("seconds: ");
    ASSERT_NE(at, std::string::npos) << result.out;
    // htb lets a burst pass at the beginning, another one before it stops (hysteresis), and does not cut the
    // last packet, of up to 64 KB.
    constexpr double kBits = 8.0 * (4 << 20), kAtOnce = 8.0 * (2 * (256 << 10) + (64 << 10));
    EXPECT_GE(std::stod(result.out.substr(at + 9)), (kBits - kAtOnce) / 20e6) << "latency " << latency;
  }
}

TEST_F(TwoHosts, TrainTheSameWeightsAsOne) {
  const std::string one = fresh("one");
  expect_success(run_process(program(one, {"--threads=2"})));
  for (const std::string latency : {"0", "0.002"}) {
    const std::string two = fresh("two");
    const ProcessResult result = on_hosts("100mbit", latency, program(two, {}));
    expect_success(result);
    EXPECT_THAT(result.err, HasSubstr("2 ranks x 1 device"));
    EXPECT_EQ(checkpoint_digest(two), checkpoint_digest(one));
  }
}

TEST_F(TwoHosts, NameTheHostThatIsLost) {
  const ProcessResult result =
      on_hosts("1gbit", "0", program(log_dir_, {"--fault=kill", "--fault_rank=1", "--save_model_steps=2"}));
  EXPECT_FALSE(result.timed_out);
  EXPECT_NE(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("rank 1 (host host1) was lost"));
  expect_all_intact(log_dir_, 1);
}

}  // namespace
}  // namespace mox

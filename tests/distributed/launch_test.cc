// mox launch: jobs from lists of hosts, restarted after a failure.
#include "tests/distributed/launch.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "moxing/checkpoint/checkpoint.h"
#include "moxing/engine/session/run.h"
#include "runtime/base/file.h"

namespace mox {
namespace {

using testing::HasSubstr;

// With a status, a server_count, and for each server its rank_ids.
std::string table_of(const std::string& count, const std::vector<std::pair<std::string, Words>>& servers) {
  std::string text;
  for (const auto& [host, ranks] : servers) {
    std::string devices;
    for (const std::string& rank : ranks)
      devices += (devices.empty() ? "" : ", ") + (R"({"rank_id": ")" + rank + "\"}");
    text += (text.empty() ? "" : ", ") + (R"({"server_id": ")" + host + R"(", "device": [)" + devices + "]}");
  }
  return R"({"status": "completed", "version": "1.0", "server_count": ")" + count + R"(", "server_list": [)" +
         text + "]}";
}

TEST_F(Launch, StartsAsManyRanksAsAreAskedFor) {
  const ProcessResult result = run_process(launch({"-n", "2"}, {"distributed_program", "--fault=functions"}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("ranks: 2"));
}

// mpirun starts nothing as root of its own accord, and says why it should not.
TEST_F(Launch, SaysOnceThatItAllowsRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  // A program that fails at once is started twice.
  const Words command = {MOX_BINARY_DIR "/bin/mox", "launch", "-n", "2",
                         "--max-restarts",          "1",      "--", "/bin/false"};
  const auto said_with = [&](const Words& environment) {
    const ProcessResult result = run_process(Words{"/usr/bin/env"} + environment + command);
    EXPECT_THAT(result.err, HasSubstr("restart 1 of 1"));
    size_t times = 0;
    for (size_t at = 0; (at = result.err.find("--allow-run-as-root", at)) != std::string::npos; ++at) ++times;
    return times;
  };
  const Words unset = {"-u", "OMPI_ALLOW_RUN_AS_ROOT", "-u", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"};
  EXPECT_EQ(said_with(unset), 1u);
  EXPECT_EQ(said_with(unset + Words{"OMPI_ALLOW_RUN_AS_ROOT=1"}), 1u);
  EXPECT_EQ(said_with({"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}), 0u);
}

TEST_F(Launch, ReadsTheRankTableOfHccl) {
  const std::string table =
      file_of(R"({"version": "1.0", "server_count": "1", "status": "completed", "server_list": [
      {"server_id": "127.0.0.1", "device": [{"device_id": "0", "device_ip": "192.98.92.166", "rank_id": "0"},
                                            {"device_id": "1", "device_ip": "192.98.93.166", "rank_id": "1"},
                                            {"device_id": "2", "device_ip": "192.98.94.166", "rank_id": "2"}]}]})");
  const ProcessResult result =
      run_process(launch({"--rank-table", table}, {"distributed_program", "--fault=functions"}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("ranks: 3"));
}

TEST_F(Launch, ReadsAFileOfHosts) {
  const std::string hosts = file_of("# this machine\n127.0.0.1 slots=2\n");
  const ProcessResult result =
      run_process(launch({"--hosts", hosts}, {"distributed_program", "--fault=functions"}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("ranks: 2"));
}

TEST_F(Launch, SaysWhatIsWrongWithAListOfHosts) {
  const auto error_of = [](const Words& flags, int status = 2) {
    const ProcessResult result = run_process(launch(flags, {"distributed_program"}));
    EXPECT_EQ(result.status, status) << result.err;
    return result.err;
  };
  EXPECT_THAT(error_of({"--hosts", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(error_of({"--hosts", file_of("# nothing\n")}), HasSubstr("names no hosts"));
  EXPECT_THAT(error_of({"--hosts", file_of("a slots=2\nb slots=x\n")}),
              HasSubstr(":2: expected 'HOST slots=NUMBER' (or HOST:NUMBER), got 'slots=x'"));
  EXPECT_THAT(error_of({"--hosts", file_of("a slots=4 max_slots=2\n")}), HasSubstr("more than max_slots=2"));
  EXPECT_THAT(error_of({"--hosts", file_of("a:x\n")}), HasSubstr("'a:x' is no name"));
  EXPECT_THAT(error_of({"--hosts", file_of("-oProxyCommand=x\n")}), HasSubstr("is no name"));
  EXPECT_THAT(error_of({"--hosts", file_of("2001:db8::1 slots=2\n")}),
              HasSubstr("takes no IPv6 addresses, as '2001:db8::1'; give the host's name"));
  EXPECT_THAT(error_of({"--hosts", file_of("a,b\n")}), HasSubstr("'a,b' is no name"));
  EXPECT_THAT(error_of({"--hosts", file_of("a slots=2\n"), "-n", "3"}),
              HasSubstr("3 ranks are asked for, but the hosts have 2 slots"));
  EXPECT_THAT(error_of({"--rank-table", file_of("{")}), HasSubstr("is no rank table"));
  EXPECT_THAT(error_of({"--rank-table", file_of("{\"server_list\": []}")}), HasSubstr("has no servers"));
  EXPECT_THAT(
      error_of({"--rank-table", file_of("{\"server_list\": [{\"server_id\": \"a\", \"device\": []}]}")}),
      HasSubstr("has no list of devices"));
  const auto error_of_table = [&](const std::string& json, int status = 2) {
    return error_of({"--rank-table", file_of(json)}, status);
  };
  // The platform is still writing it.
  EXPECT_THAT(error_of_table(R"({"status": "initializing", "version": "1.0"})", 1),
              HasSubstr("is not complete: its status is \"initializing\""));
  EXPECT_THAT(error_of_table(table_of("2", {{"a", {"0"}}})),
              HasSubstr("server_count is \"2\", but it lists 1 server"));
  EXPECT_THAT(error_of_table(table_of("1", {{"a", {"0", "0"}}})), HasSubstr("the rank_id 0 is there twice"));
  EXPECT_THAT(error_of_table(table_of("1", {{"a", {"0", "2"}}})), HasSubstr("2 devices, but no rank_id 1"));
  EXPECT_THAT(error_of_table(table_of("1", {{"a", {"zero"}}})), HasSubstr("is no number"));
  EXPECT_THAT(error_of_table(table_of("2", {{"a", {"0", "2"}}, {"b", {"1"}}})),
              HasSubstr("gives 'a' rank_id 2 apart from its others"));
  EXPECT_THAT(
      error_of_table(R"({"version": "2.0", "rank_count": 2, "rank_list": [{"rank_id": 0}, {"rank_id": 1}]})"),
      HasSubstr("lists ranks, but not the hosts that they run on: use --hosts FILE, or -n 2"));
}

// As schedulers and other MPIs write them; all of them two slots of this machine.
TEST_F(Launch, ReadsHostsInTheSpellingsThatThereAre) {
  for (const std::string text : {"127.0.0.1\n127.0.0.1\n", "127.0.0.1:2\n", "127.0.0.1 slots=2 max_slots=2\n",
                                 "127.0.0.1 slots = 2\r\n", "::1 slots=2\n", "[::1]:2\n",
                                 "\xEF\xBB\xBF"
                                 "127.0.0.1 slots=2\n",
                                 "localhost 2 all.q@a UNDEFINED\n", "127.0.1.1 max_slots=2\n"}) {
    const ProcessResult result =
        run_process(launch({"--hosts", file_of(text)}, {"distributed_program", "--fault=functions"}));
    expect_success(result);
    EXPECT_THAT(result.out, HasSubstr("ranks: 2")) << text;
  }
}

TEST_F(Launch, OrdersTheServersOfARankTableByTheirRanks) {
  const std::string table = file_of(table_of("2", {{"127.0.0.1", {"1", "2"}}, {"localhost", {"0"}}}));
  const ProcessResult result =
      run_process(launch({"--rank-table", table}, {"distributed_program", "--fault=functions"}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("ranks: 3"));
}

TEST_F(Launch, AProgramThatCannotBeRunIsNamed) {
  const auto result_of = [](const std::string& program) {
    const ProcessResult result = run_process({"mox", "launch", "-n", "2", "--", program});
    EXPECT_EQ(result.status, 127);
    EXPECT_THAT(result.err, testing::Not(HasSubstr("mpirun")));
    return result.err;
  };
  EXPECT_THAT(result_of("/nowhere/program"), HasSubstr("mox launch: '/nowhere/program' does not exist"));
  EXPECT_THAT(result_of("no_such_program"), HasSubstr("there is no program 'no_such_program'"));
  const std::string text = file_of("no program");
  EXPECT_THAT(result_of(text), HasSubstr("'" + text + "' is no program"));
}

TEST_F(Launch, WritesNoColoursToAFile) {
  const Words program = {"distributed_program", "--train_url=" + log_dir_, "--log_every_n_steps=0"};
  expect_success(run_process(launch({"-n", "1"}, program)));
  const ProcessResult result = run_process(launch({"-n", "1"}, program + Words{"--run_mode=eval"}));
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("accuracy"));
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos) << result.out;
}

// One rank is killed five steps after each start.
TEST_F(Launch, StartsAFailedJobAgainFromItsCheckpoint) {
  const std::string whole = fresh("whole");
  const Words program = {"distributed_program", "--log_every_n_steps=0",    "--logical_replicas=2",
                         "--threads=2",         "--max_number_of_steps=12", "--save_model_steps=1"};
  expect_success(run_process(program + Words{"--train_url=" + whole}));
  const Words faulty = program + Words{"--train_url=" + log_dir_, "--fault=kill_after"};
  const ProcessResult too_few = run_process(launch({"-n", "2", "--max-restarts", "1"}, faulty));
  EXPECT_NE(too_few.status, 0);
  EXPECT_THAT(too_few.err, HasSubstr("restart 1 of 1 with 2 ranks"));
  EXPECT_LT(load_checkpoint(log_dir_).global_step, 12);
  const ProcessResult result = run_process(launch({"-n", "2", "--max-restarts", "6"}, faulty));
  expect_success(result);
  EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
}

// Of two hosts one is gone: nothing can be started there.
TEST_F(Launch, GoesOnWithFewerRanksWhereAHostIsLost) {
  const Words program = {"distributed_program", "--log_every_n_steps=0", "--logical_replicas=2",
                         "--threads=2"};
  const std::string whole = fresh("whole");
  expect_success(run_process(program + Words{"--train_url=" + whole, "--max_number_of_steps=12"}));
  expect_success(run_process(
      launch({"-n", "2"}, program + Words{"--train_url=" + log_dir_, "--max_number_of_steps=6"})));

  const std::string agent = script("agent", "[ \"$1\" = 127.0.0.1 ] || exit 1\nshift\nexec bash -c \"$*\"\n");
  const std::string hosts = file_of("127.0.0.1 slots=1\n192.0.2.1 slots=1  # an address of nobody\n");
  Words command = launch({"--hosts", hosts, "--max-restarts", "1"},
                         program + Words{"--train_url=" + log_dir_, "--max_number_of_steps=12"});
  command[0] = MOX_BINARY_DIR "/bin/mox";
  const ProcessResult result =
      run_process(Words{"/usr/bin/env", "OMPI_MCA_plm_rsh_agent=" + agent} + command);
  expect_success(result);
  EXPECT_THAT(result.err, HasSubstr("the host '192.0.2.1' does not answer and is left out"));
  EXPECT_THAT(result.err, HasSubstr("restart 1 of 1 with 1 ranks"));
  EXPECT_EQ(checkpoint_digest(log_dir_), checkpoint_digest(whole));
}

TEST_F(Launch, ARefusedConfigurationIsNotTriedAgain) {
  const ProcessResult result =
      run_process(launch({"-n", "2", "--max-restarts", "5"}, {"distributed_program", "--no_such_flag=1"}));
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, testing::Not(HasSubstr("restart")));
}

// Values that are looked at in the run: the same command would end in the same way.
TEST_F(Launch, AValueThatTheRunRefusesIsNotTriedAgain) {
  for (const std::string flag : {"--optimizer.learning_rate=0.1->", "--checkpoint_path=/nowhere"}) {
    const ProcessResult result = run_process(
        launch({"-n", "2", "--max-restarts", "5"}, {"distributed_program", "--optimizer.name=sgd", flag}));
    EXPECT_EQ(result.status, 2) << flag << result.err;
    EXPECT_THAT(result.err, testing::Not(HasSubstr("restart")));
  }
}

// While the hosts are asked whether they answer, which may take minutes if they do not.
TEST_F(Launch, ASignalBetweenTwoAttemptsIsTheLast) {
  const std::string asked = fresh("asked"), attempts = fresh("attempts");
  Process job({"/usr/bin/env", "OMPI_MCA_plm_rsh_agent=" + script("agent", "touch " + asked + "\nsleep 2\n"),
               MOX_BINARY_DIR "/bin/mox", "launch", "--hosts", file_of("127.0.0.1 slots=1\n"),
               "--max-restarts", "2", "--", script("failing", "echo attempt >> " + attempts + "\nexit 1\n")});
  ASSERT_TRUE(job.wait_until([&] { return std::filesystem::exists(asked); }));
  job.send(SIGTERM);
  const ProcessResult result = job.wait(60);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.err, testing::Not(HasSubstr("restart")));
  EXPECT_EQ(read_file(attempts), "attempt\n");
}

// Open MPI takes the first that is there, as of its own "ssh : rsh".
TEST_F(Launch, OfSeveralAgentsTheFirstThatIsThereAsksTheHosts) {
  const ProcessResult result = run_process(
      {"/usr/bin/env", "OMPI_MCA_plm_rsh_agent=no_such_agent : " + script("agent", "exit 0\n") + " -q",
       MOX_BINARY_DIR "/bin/mox", "launch", "--hosts", file_of("127.0.0.1 slots=1\n"), "--max-restarts", "1",
       "--", script("failing", "exit 1\n")});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("restart 1 of 1 with 1 ranks"));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("does not answer")));
}

// Where no sshd runs; mpirun starts its processes here without one, too.
TEST_F(Launch, ThisMachineItselfIsNotAsked) {
  const std::string bin = fresh("bin");
  make_directories(bin);
  script_at(bin + "/ssh", "exit 1\n");
  char name[256] = "";
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  for (const std::string host : {"localhost", "127.0.1.1", static_cast<const char*>(name)}) {
    const ProcessResult result =
        run_process({"/usr/bin/env", "HOME=" + fresh("home"), "PATH=" + bin + ":" + std::getenv("PATH"),
                     MOX_BINARY_DIR "/bin/mox", "launch", "--hosts", file_of(host + " slots=1\n"),
                     "--max-restarts", "1", "--", script("failing", "exit 1\n")});
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("restart 1 of 1 with 1 ranks"));
    EXPECT_THAT(result.err, testing::Not(HasSubstr("does not answer")));
  }
}

// One after the other, many hosts that are gone would keep the others waiting for minutes.
TEST_F(Launch, HostsAreAskedAtTheSameTime) {
  const std::string met = fresh("met");
  make_directories(met);
  const std::string waits_for_three = "touch " + met + "/$1\n" + "for i in {1..80}; do [ $(ls " + met +
                                      " | wc -l) = 3 ] && exit 0; sleep 0.1; done\nexit 1\n";
  const ProcessResult result =
      run_process({"/usr/bin/env", "OMPI_MCA_plm_rsh_agent=" + script("agent", waits_for_three),
                   MOX_BINARY_DIR "/bin/mox", "launch", "--hosts",
                   file_of("127.0.0.1 slots=1\n127.0.0.2 slots=1\n127.0.0.3 slots=1\n"), "--max-restarts",
                   "1", "--", script("failing", "exit 1\n")});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("restart 1 of 1 with 3 ranks"));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("does not answer")));
}

// ssh that would wait for a password, or for a host that takes the connection and says nothing.
TEST_F(Launch, AHostThatSaysNothingIsLeftOut) {
  const std::string bin = fresh("bin"), asked = fresh("asked");
  make_directories(bin);
  const std::string agent = script_at(
      bin + "/ssh", "echo \"$@\" >> " + asked + "\n[[ \" $* \" != *' 127.0.0.2 '* ]] || exec sleep 600\n");
  const auto begin = std::chrono::steady_clock::now();
  const ProcessResult result =
      run_process({"/usr/bin/env", "OMPI_MCA_plm_rsh_agent=" + agent, MOX_BINARY_DIR "/bin/mox", "launch",
                   "--hosts", file_of("127.0.0.1 slots=1\n127.0.0.2 slots=1\n"), "--max-restarts", "1", "--",
                   script("failing", "exit 1\n")});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(90));
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("the host '127.0.0.2' does not answer and is left out"));
  EXPECT_THAT(result.err, HasSubstr("restart 1 of 1 with 1 ranks"));
  EXPECT_THAT(read_file(asked), HasSubstr("-o BatchMode=yes -o ConnectTimeout=10 127.0.0.1 true\n"));
}

// mpirun's own ssh asks at the terminal, in the background, where it is stopped without a word.
TEST_F(Launch, TheFirstStartAsksNoQuestionsEither) {
  const std::string bin = fresh("bin"), asked = fresh("asked");
  make_directories(bin);
  const std::string ssh = script_at(bin + "/ssh", "echo \"$@\" >> " + asked + "\nexit 255\n");
  const std::string agent = script("agent", "echo \"$@\" >> " + asked + "\nexit 255\n");
  const auto options_of = [&](const Words& environment) {
    write_file_atomically(asked, "");
    const ProcessResult result =
        run_process(Words{"/usr/bin/env", "HOME=" + fresh("home")} + environment +
                    Words{MOX_BINARY_DIR "/bin/mox", "launch", "--hosts", file_of("192.0.2.1 slots=1\n"),
                          "--", script("failing", "exit 1\n")});
    EXPECT_NE(result.status, 0);
    const std::string words = read_file(asked);
    return words.substr(0, words.find("192.0.2.1"));
  };
  const std::string path = "PATH=" + bin + ":" + std::getenv("PATH");
  const std::string both = "-o BatchMode=yes -o ConnectTimeout=10 ";
  EXPECT_THAT(options_of({path}), HasSubstr(both)) << "where nothing is said of an agent";
  EXPECT_THAT(options_of({"OMPI_MCA_plm_rsh_agent=no_such_agent : " + ssh + " -q"}), HasSubstr("-q " + both));
  const std::string own = options_of({"OMPI_MCA_plm_rsh_agent=" + ssh + " -oconnecttimeout=60"});
  EXPECT_THAT(own, HasSubstr("-oconnecttimeout=60 -o BatchMode=yes "));
  EXPECT_THAT(own, testing::Not(HasSubstr("ConnectTimeout=10")));
  EXPECT_THAT(options_of({path, "OMPI_MCA_plm_rsh_args=-o BatchMode=no"}),
              testing::AllOf(HasSubstr("-o BatchMode=no"), testing::Not(HasSubstr("BatchMode=yes"))));
  // An agent that is no ssh takes no options of ssh.
  EXPECT_THAT(options_of({"OMPI_MCA_plm_rsh_agent=" + agent}), testing::Not(HasSubstr("-o ")));
}

TEST_F(Launch, AnAgentThatAFileOfParametersNamesIsLeftToMpirun) {
  const std::string home = fresh("home"), asked = fresh("asked");
  make_directories(home + "/.openmpi");
  make_directories(home + "/.prte");
  const std::string agent = script("agent", "echo \"$@\" >> " + asked + "\nexit 255\n");
  write_file_atomically(home + "/.openmpi/mca-params.conf", "# how\nplm_rsh_agent = " + agent + "\n");
  write_file_atomically(home + "/.prte/mca-params.conf", "plm_ssh_agent = " + agent + "\n");
  run_process({"/usr/bin/env", "HOME=" + home, MOX_BINARY_DIR "/bin/mox", "launch", "--hosts",
               file_of("192.0.2.1 slots=1\n"), "--", script("failing", "exit 1\n")});
  ASSERT_TRUE(std::filesystem::exists(asked));
  EXPECT_THAT(read_file(asked), testing::AllOf(HasSubstr("192.0.2.1"), testing::Not(HasSubstr("BatchMode"))));
}

// As an Open MPI has it that was built here, or is a module: beside its own mpirun.
TEST_F(Launch, SoIsOneThatStandsBesideMpirunOrInAFileOfTheEnvironment) {
  const std::string open_mpi = fresh("open_mpi"), asked = fresh("asked"), named = fresh("parameters");
  make_directories(open_mpi + "/bin");
  make_directories(open_mpi + "/etc");
  script_at(open_mpi + "/bin/mpirun", "echo \"$@\" >> " + asked + "\nexit 1\n");
  const auto words_for_mpirun = [&] {
    write_file_atomically(asked, "");
    run_process({"/usr/bin/env", "HOME=" + fresh("home"), "PATH=" + open_mpi + "/bin:" + std::getenv("PATH"),
                 "OMPI_MCA_mca_base_param_files=/none," + named, MOX_BINARY_DIR "/bin/mox", "launch",
                 "--hosts", file_of("192.0.2.1 slots=1\n"), "--", script("failing", "exit 1\n")});
    return read_file(asked);
  };
  const std::string agent = "plm_rsh_agent = blaunch\n";
  EXPECT_THAT(words_for_mpirun(), HasSubstr("BatchMode=yes"));
  write_file_atomically(open_mpi + "/etc/openmpi-mca-params.conf", agent);
  EXPECT_THAT(words_for_mpirun(),
              testing::AllOf(HasSubstr("--hostfile"), testing::Not(HasSubstr("BatchMode"))));
  std::filesystem::remove(open_mpi + "/etc/openmpi-mca-params.conf");
  write_file_atomically(named, agent);
  EXPECT_THAT(words_for_mpirun(),
              testing::AllOf(HasSubstr("--hostfile"), testing::Not(HasSubstr("BatchMode"))));
}

}  // namespace
}  // namespace mox

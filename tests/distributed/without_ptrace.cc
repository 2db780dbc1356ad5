// Runs a command that may not read another process's memory, as containers without ptrace have it: the kernel
// answers EPERM.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

int main(int, char** argv) {
  const auto refuse = [](unsigned number, unsigned char passed_over) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, passed_over, 0);
  };
  sock_filter lines[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         refuse(SYS_process_vm_readv, 3),
                         refuse(SYS_process_vm_writev, 2),
                         refuse(SYS_ptrace, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)};
  const sock_fprog program{sizeof lines / sizeof lines[0], lines};
  if (!argv[1] || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::perror("without_ptrace");
    return 77;
  }
  execv(argv[1], argv + 1);
  std::perror(argv[1]);
  return 127;
}

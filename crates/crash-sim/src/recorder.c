// Runs a program and records its operations on the files below one folder.
//
//   recorder LOG ROOT [FAULT...] -- PROGRAM [ARGUMENT...]
//
// Every write, truncation, sync, rename, link, removal and new name below ROOT, and every
// write to stdout or to a socket, is appended to LOG with its data, in the order in which it
// happened.
// Several recorders may share one log, at once or one after another.
//
// It traces system calls (ptrace with a seccomp filter), because some file operations of a
// Rust program never pass through libc.
//
// Invariant: at any time at most one recorded call of all programs that share a log is under
// way, so the order of the log is the order of the calls. A program that exits, or is killed by a
// fault, is never inside a recorded call.
//
// FAULT is KIND:N:ACTION[:PART]. KIND is sync, write, truncate, create, rename, unlink, mkdir, ack or
// any (all but ack). N counts the calls of that kind whose path contains PART, from 1; "N-M" means the
// N-th to the M-th, "N+" the N-th and all that follow. ACTION is eio, enospc, short (half of a write), torn-kill
// (half of a write, then SIGKILL), kill-before or kill-after.

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum op {
  OP_CREATE = 1,
  OP_WRITE,
  OP_TRUNCATE,
  OP_ALLOCATE,
  OP_SYNC,
  OP_SYNC_ALL,
  OP_RENAME,
  OP_UNLINK,
  OP_MKDIR,
  OP_RMDIR,
  OP_LINK,
  OP_MMAP,
  OP_ACK,
  OP_EXIT,
  OP_UNSUPPORTED,
  OP_BARRIER, // never logged
};

// A record in the log, followed by the two paths and the data.
struct record {
  uint32_t magic;
  uint32_t op;
  uint32_t pid;
  int32_t result; // of the call: what it returned, or a negative error number
  uint64_t inode;
  uint64_t offset; // or the new length
  uint32_t injected; // whether a fault was injected into it
  uint32_t path_length;
  uint32_t path2_length;
  uint32_t data_length;
};
#define MAGIC 0x43525348u

struct fault {
  char kind[16];
  unsigned long number; // the first
  unsigned long last;
  char action[16];
  char part[256];
  unsigned long count;
};

// The call under way.
struct call {
  pid_t tid; // 0: none
  enum op op;
  uint64_t args[6];
  long number;
  char path[PATH_MAX];
  char path2[PATH_MAX];
  struct fault *fault;
  int denied; // the error number returned instead of running the call
};

static char root[PATH_MAX];
static size_t root_length;
static int log_fd;
static struct fault faults[16];
static int fault_count;
static struct call current;
static pid_t waiting[4096];
static int waiting_count;

static void die(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "recorder: ");
  vfprintf(stderr, format, list);
  fprintf(stderr, ": %s\n", strerror(errno));
  exit(125);
}

// ---- The traced program's memory and files.

static ssize_t read_memory(pid_t tid, uint64_t address, void *into, size_t length) {
  struct iovec local = {into, length}, remote = {(void *)address, length};
  return process_vm_readv(tid, &local, 1, &remote, 1, 0);
}

static void read_string(pid_t tid, uint64_t address, char *into, size_t room) {
  size_t length = 0;
  while (length + 1 < room) {
    // Not beyond a page, since the next one may not be mapped.
    size_t chunk = 4096 - ((address + length) & 4095);
    if (chunk > room - 1 - length) chunk = room - 1 - length;
    ssize_t count = read_memory(tid, address + length, into + length, chunk);
    if (count <= 0) break;
    char *end = memchr(into + length, 0, (size_t)count);
    if (end) return;
    length += (size_t)count;
  }
  into[length] = 0;
}

static int read_link(char *into, const char *format, ...) {
  char link[64];
  va_list list;
  va_start(list, format);
  vsnprintf(link, sizeof link, format, list);
  va_end(list);
  ssize_t length = readlink(link, into, PATH_MAX - 1);
  into[length < 0 ? 0 : length] = 0;
  return length >= 0;
}

static int is_watched(const char *path) {
  return strncmp(path, root, root_length) == 0 &&
         (path[root_length] == 0 || path[root_length] == '/');
}

static int fd_path(pid_t tid, int fd, char *into) {
  return read_link(into, "/proc/%d/fd/%d", tid, fd);
}

static void argument_path(pid_t tid, int folder, uint64_t address, char *into) {
  char given[PATH_MAX], base[PATH_MAX];
  read_string(tid, address, given, sizeof given);
  if (given[0] == '/') {
    memcpy(into, given, sizeof given);
    return;
  }
  if (folder == AT_FDCWD)
    read_link(base, "/proc/%d/cwd", tid);
  else
    fd_path(tid, folder, base);
  if (snprintf(into, PATH_MAX, "%s/%s", base, given) >= PATH_MAX) into[0] = 0;
}

static uint64_t fd_inode(pid_t tid, int fd) {
  char link[64];
  struct stat found;
  snprintf(link, sizeof link, "/proc/%d/fd/%d", tid, fd);
  return stat(link, &found) ? 0 : found.st_ino;
}

static uint64_t path_inode(const char *path) {
  struct stat found;
  return lstat(path, &found) ? 0 : found.st_ino;
}

static uint64_t fd_position(pid_t tid, int fd) {
  char name[64], line[64];
  unsigned long long position = 0;
  snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", tid, fd);
  FILE *file = fopen(name, "r");
  if (!file) die("%s", name);
  if (fgets(line, sizeof line, file)) sscanf(line, "pos: %llu", &position);
  fclose(file);
  return position;
}

// ---- Registers.

static void set_result(pid_t tid, long result) {
#if defined(__x86_64__)
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, tid, 0, &registers)) return;
  registers.rax = (unsigned long long)result;
  ptrace(PTRACE_SETREGS, tid, 0, &registers);
#elif defined(__aarch64__)
  struct user_regs_struct registers;
  struct iovec all = {&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all)) return;
  registers.regs[0] = (unsigned long long)result;
  ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &all);
#else
#error "the recorder knows the registers of x86-64 and 64-bit ARM only"
#endif
}

static void skip_call(pid_t tid) {
#if defined(__x86_64__)
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, tid, 0, &registers)) return;
  registers.orig_rax = (unsigned long long)-1;
  ptrace(PTRACE_SETREGS, tid, 0, &registers);
#elif defined(__aarch64__)
  int none = -1;
  struct iovec number = {&none, sizeof none};
  ptrace(PTRACE_SETREGSET, tid, (void *)NT_ARM_SYSTEM_CALL, &number);
#endif
}

static void set_third_argument(pid_t tid, uint64_t value) {
#if defined(__x86_64__)
  struct user_regs_struct registers;
  if (ptrace(PTRACE_GETREGS, tid, 0, &registers)) return;
  registers.rdx = value;
  ptrace(PTRACE_SETREGS, tid, 0, &registers);
#elif defined(__aarch64__)
  struct user_regs_struct registers;
  struct iovec all = {&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &all)) return;
  registers.regs[2] = value;
  ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &all);
#endif
}

// ---- The log.

static void append_record(struct record record, const char *path, const char *path2,
                          const void *data, size_t length) {
  record.magic = MAGIC;
  record.path_length = (uint32_t)strlen(path);
  record.path2_length = (uint32_t)strlen(path2);
  record.data_length = (uint32_t)length;
  struct iovec parts[4] = {{&record, sizeof record},
                           {(void *)path, record.path_length},
                           {(void *)path2, record.path2_length},
                           {(void *)data, length}};
  ssize_t whole = (ssize_t)(sizeof record + record.path_length + record.path2_length + length);
  if (writev(log_fd, parts, 4) != whole) die("the log cannot be written");
}

static pid_t process_of(pid_t tid) {
  char name[64], line[128];
  int process = tid;
  snprintf(name, sizeof name, "/proc/%d/status", tid);
  FILE *file = fopen(name, "r");
  if (!file) return tid;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "Tgid: %d", &process) == 1) break;
  fclose(file);
  return process;
}

// ---- Decoding of calls.

static const int TRACED[] = {
#ifdef SYS_open
    SYS_open,
#endif
#ifdef SYS_creat
    SYS_creat,
#endif
    SYS_openat, SYS_openat2, SYS_sendto, SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2,
    SYS_ftruncate, SYS_truncate, SYS_fallocate, SYS_fsync, SYS_fdatasync, SYS_sync, SYS_syncfs,
#ifdef SYS_rename
    SYS_rename,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
    SYS_renameat2,
#ifdef SYS_unlink
    SYS_unlink, SYS_rmdir, SYS_mkdir, SYS_link, SYS_symlink,
#endif
    SYS_unlinkat, SYS_mkdirat, SYS_linkat, SYS_symlinkat, SYS_mmap, SYS_copy_file_range, SYS_sendfile,
    SYS_splice, SYS_io_uring_setup, SYS_io_setup, SYS_exit_group, SYS_kill, SYS_tgkill,
};
#define TRACED_COUNT (sizeof TRACED / sizeof *TRACED)

static void install_filter(void) {
  struct sock_filter code[TRACED_COUNT + 8];
  size_t n = 0;
#if defined(__x86_64__)
  uint32_t architecture = AUDIT_ARCH_X86_64;
#else
  uint32_t architecture = AUDIT_ARCH_AARCH64;
#endif
  code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t i = 0; i < TRACED_COUNT; i++)
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)TRACED[i],
                                             (uint8_t)(TRACED_COUNT - i), 0);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
  struct sock_fprog program = {(unsigned short)n, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
    die("the filter cannot be installed");
}

// Decodes a call. Returns 0 for one that is not relevant.
static int describe(pid_t tid, struct call *call) {
  uint64_t *a = call->args;
  int folder = AT_FDCWD, folder2 = AT_FDCWD;
  call->path[0] = call->path2[0] = 0;
  switch (call->number) {
#ifdef SYS_creat
  case SYS_creat:
    argument_path(tid, AT_FDCWD, a[0], call->path);
    call->op = OP_CREATE;
    return is_watched(call->path);
#endif
#ifdef SYS_open
  case SYS_open:
    if (!(a[1] & (O_CREAT | O_TRUNC))) return 0;
    argument_path(tid, AT_FDCWD, a[0], call->path);
    call->op = OP_CREATE;
    return is_watched(call->path);
#endif
  case SYS_openat:
    if ((a[2] & O_TMPFILE) == O_TMPFILE) {
      argument_path(tid, (int)a[0], a[1], call->path);
      call->op = OP_UNSUPPORTED;
      return is_watched(call->path);
    }
    if (!(a[2] & (O_CREAT | O_TRUNC))) return 0;
    argument_path(tid, (int)a[0], a[1], call->path);
    call->op = OP_CREATE;
    return is_watched(call->path);
  case SYS_openat2:
    argument_path(tid, (int)a[0], a[1], call->path);
    call->op = OP_UNSUPPORTED;
    return is_watched(call->path);
  case SYS_write:
  case SYS_writev:
    if ((int)a[0] == 1 && fd_path(tid, 1, call->path) && !is_watched(call->path)) {
      call->op = OP_ACK;
      call->path[0] = 0;
      return 1;
    }
    // fallthrough
  case SYS_sendto:
    if (fd_path(tid, (int)a[0], call->path) && strncmp(call->path, "socket:", 7) == 0) {
      call->op = OP_ACK;
      return 1;
    }
    if (call->number == SYS_sendto) return 0;
    // fallthrough
  case SYS_pwrite64:
  case SYS_pwritev:
  case SYS_pwritev2:
    call->op = OP_WRITE;
    return fd_path(tid, (int)a[0], call->path) && is_watched(call->path);
  case SYS_ftruncate:
    call->op = OP_TRUNCATE;
    return fd_path(tid, (int)a[0], call->path) && is_watched(call->path);
  case SYS_truncate:
    call->op = OP_TRUNCATE;
    argument_path(tid, AT_FDCWD, a[0], call->path);
    return is_watched(call->path);
  case SYS_fallocate:
    call->op = a[1] == 0 ? OP_ALLOCATE : OP_UNSUPPORTED;
    return fd_path(tid, (int)a[0], call->path) && is_watched(call->path);
  case SYS_fsync:
  case SYS_fdatasync:
    call->op = OP_SYNC;
    return fd_path(tid, (int)a[0], call->path) && is_watched(call->path);
  case SYS_sync:
  case SYS_syncfs:
    call->op = OP_SYNC_ALL;
    return 1;
#ifdef SYS_rename
  case SYS_rename:
    argument_path(tid, AT_FDCWD, a[0], call->path);
    argument_path(tid, AT_FDCWD, a[1], call->path2);
    call->op = OP_RENAME;
    return is_watched(call->path) || is_watched(call->path2);
#endif
  case SYS_renameat2:
    call->op = a[4] & ~(uint64_t)1 ? OP_UNSUPPORTED : OP_RENAME;
    folder = (int)a[0], folder2 = (int)a[2];
    argument_path(tid, folder, a[1], call->path);
    argument_path(tid, folder2, a[3], call->path2);
    return is_watched(call->path) || is_watched(call->path2);
#ifdef SYS_renameat
  case SYS_renameat:
    call->op = OP_RENAME;
    folder = (int)a[0], folder2 = (int)a[2];
    argument_path(tid, folder, a[1], call->path);
    argument_path(tid, folder2, a[3], call->path2);
    return is_watched(call->path) || is_watched(call->path2);
#endif
#ifdef SYS_unlink
  case SYS_unlink:
  case SYS_rmdir:
  case SYS_mkdir:
    call->op = call->number == SYS_unlink ? OP_UNLINK : call->number == SYS_rmdir ? OP_RMDIR : OP_MKDIR;
    argument_path(tid, AT_FDCWD, a[0], call->path);
    return is_watched(call->path);
  case SYS_link:
    call->op = OP_LINK;
    argument_path(tid, AT_FDCWD, a[0], call->path);
    argument_path(tid, AT_FDCWD, a[1], call->path2);
    return is_watched(call->path2);
  case SYS_symlink:
    call->op = OP_UNSUPPORTED;
    argument_path(tid, AT_FDCWD, a[1], call->path);
    return is_watched(call->path);
#endif
  case SYS_unlinkat:
    call->op = a[2] & AT_REMOVEDIR ? OP_RMDIR : OP_UNLINK;
    argument_path(tid, (int)a[0], a[1], call->path);
    return is_watched(call->path);
  case SYS_mkdirat:
    call->op = OP_MKDIR;
    argument_path(tid, (int)a[0], a[1], call->path);
    return is_watched(call->path);
  case SYS_linkat:
    call->op = OP_LINK;
    argument_path(tid, (int)a[0], a[1], call->path);
    argument_path(tid, (int)a[2], a[3], call->path2);
    return is_watched(call->path2);
  case SYS_symlinkat:
    call->op = OP_UNSUPPORTED;
    argument_path(tid, (int)a[1], a[2], call->path);
    return is_watched(call->path);
  case SYS_mmap:
    if (!(a[2] & PROT_WRITE) || !(a[3] & MAP_SHARED) || (a[3] & MAP_ANONYMOUS)) return 0;
    call->op = OP_MMAP;
    return fd_path(tid, (int)a[4], call->path) && is_watched(call->path);
  case SYS_copy_file_range:
    call->op = OP_UNSUPPORTED;
    return fd_path(tid, (int)a[2], call->path) && is_watched(call->path);
  case SYS_sendfile:
    call->op = OP_UNSUPPORTED;
    return fd_path(tid, (int)a[0], call->path) && is_watched(call->path);
  case SYS_splice:
    call->op = OP_UNSUPPORTED;
    return fd_path(tid, (int)a[2], call->path) && is_watched(call->path);
  case SYS_io_uring_setup:
  case SYS_io_setup:
    call->op = OP_UNSUPPORTED;
    return 1;
  default:
    // The end of a process waits until no recorded call is under way.
    call->op = OP_BARRIER;
    return 1;
  }
}

// ---- Faults.

static const char *kind_of(enum op op) {
  switch (op) {
  case OP_CREATE: return "create";
  case OP_WRITE: return "write";
  case OP_TRUNCATE: case OP_ALLOCATE: return "truncate";
  case OP_SYNC: case OP_SYNC_ALL: return "sync";
  case OP_RENAME: case OP_LINK: return "rename";
  case OP_UNLINK: case OP_RMDIR: return "unlink";
  case OP_MKDIR: return "mkdir";
  case OP_ACK: return "ack";
  default: return "";
  }
}

static struct fault *fault_for(const struct call *call) {
  const char *kind = kind_of(call->op);
  struct fault *found = NULL;
  if (!*kind) return NULL;
  for (int i = 0; i < fault_count; i++) {
    struct fault *fault = &faults[i];
    int any = strcmp(fault->kind, "any") == 0 && call->op != OP_ACK;
    if (!any && strcmp(fault->kind, kind) != 0) continue;
    if (*fault->part && !strstr(call->path, fault->part) && !strstr(call->path2, fault->part)) continue;
    fault->count++;
    int due = fault->count >= fault->number && fault->count <= fault->last;
    if (due && !found) found = fault;
  }
  return found;
}

static void parse_fault(const char *text) {
  struct fault *fault = &faults[fault_count++];
  char number[32] = "";
  int fields = sscanf(text, "%15[^:]:%31[^:]:%15[^:]:%255s", fault->kind, number, fault->action, fault->part);
  char *end = number;
  fault->number = strtoul(number, &end, 10);
  fault->last = *end == '+' ? ULONG_MAX : *end == '-' ? strtoul(end + 1, NULL, 10) : fault->number;
  const char *actions[] = {"eio", "enospc", "short", "torn-kill", "kill-before", "kill-after"};
  int known = 0;
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) known |= !strcmp(actions[i], fault->action);
  if (fields < 3 || !fault->number || !known || fault_count == 16) {
    fprintf(stderr, "recorder: %s is not a fault\n", text);
    exit(125);
  }
}

static int acts(const struct call *call, const char *action) {
  return call->fault && strcmp(call->fault->action, action) == 0;
}

// ---- Tracing the program.

static void lock(int how) {
  while (flock(log_fd, how))
    if (errno != EINTR) die("the log cannot be locked");
}

static void kill_process(pid_t tid) { kill(process_of(tid), SIGKILL); }

// Starts a call that stopped before it was done. Returns 0 if none is under way after it.
static int begin(pid_t tid) {
  struct __ptrace_syscall_info info;
  if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof info, &info) <= 0) return 0; // The thread has exited.
  if (info.op != PTRACE_SYSCALL_INFO_SECCOMP) die("not a call (%d)", info.op);
  struct call call = {.number = (long)info.seccomp.nr};
  memcpy(call.args, info.seccomp.args, sizeof call.args);
  if (!describe(tid, &call) || call.op == OP_BARRIER) {
    ptrace(PTRACE_CONT, tid, 0, 0);
    return 0;
  }
  call.tid = tid;
  lock(LOCK_EX);
  call.fault = fault_for(&call);
  if (acts(&call, "kill-before")) {
    kill_process(tid);
    lock(LOCK_UN);
    return 0;
  }
  if (acts(&call, "eio")) call.denied = EIO;
  if (acts(&call, "enospc")) call.denied = ENOSPC;
  if (call.denied) skip_call(tid);
  if ((acts(&call, "short") || acts(&call, "torn-kill")) && call.args[2] > 1) {
    // Half the bytes, or half the buffers.
    call.args[2] = (call.args[2] + 1) / 2;
    set_third_argument(tid, call.args[2]);
  }
  if (ptrace(PTRACE_SYSCALL, tid, 0, 0)) {
    lock(LOCK_UN);
    return 0;
  }
  current = call;
  return 1;
}

static void *written_data(const struct call *call, size_t length) {
  char *data = malloc(length ? length : 1);
  if (!data) die("no memory");
  if (call->number == SYS_write || call->number == SYS_pwrite64 || call->number == SYS_sendto) {
    if (read_memory(call->tid, call->args[1], data, length) != (ssize_t)length) die("data cannot be read");
    return data;
  }
  struct iovec parts[IOV_MAX];
  size_t count = call->args[2] < IOV_MAX ? call->args[2] : IOV_MAX, done = 0;
  read_memory(call->tid, call->args[1], parts, count * sizeof *parts);
  for (size_t i = 0; i < count && done < length; i++) {
    size_t part = parts[i].iov_len < length - done ? parts[i].iov_len : length - done;
    if (part && read_memory(call->tid, (uint64_t)parts[i].iov_base, data + done, part) != (ssize_t)part)
      die("data cannot be read");
    done += part;
  }
  return data;
}

// Records the call that has just been done.
static void end(void) {
  struct call *call = &current;
  pid_t tid = call->tid;
  struct __ptrace_syscall_info info;
  if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof info, &info) > 0 &&
      info.op == PTRACE_SYSCALL_INFO_EXIT) {
    long result = (long)info.exit.rval;
    if (call->denied) {
      result = -call->denied;
      set_result(tid, result);
    }
    struct record record = {.op = call->op, .pid = (uint32_t)process_of(tid), .result = (int32_t)result,
                            .injected = call->fault != NULL};
    void *data = NULL;
    size_t length = 0;
    int fd = (int)call->args[0];
    switch (call->op) {
    case OP_CREATE:
      if (result >= 0) {
        record.inode = fd_inode(tid, (int)result);
        record.offset = call->number == SYS_openat ? call->args[2]
#ifdef SYS_open
                        : call->number == SYS_open ? call->args[1]
#endif
                                                   : O_CREAT | O_TRUNC;
        record.offset = (record.offset & O_TRUNC) != 0;
        fd_path(tid, (int)result, call->path);
        record.result = 0;
      }
      break;
    case OP_ACK:
    case OP_WRITE:
      record.inode = fd_inode(tid, fd);
      if (result > 0) {
        length = (size_t)result;
        data = written_data(call, length);
        int positioned = call->number != SYS_write && call->number != SYS_writev;
        if (call->op == OP_WRITE)
          record.offset = positioned ? call->args[3] : fd_position(tid, fd) - length;
      }
      break;
    case OP_TRUNCATE:
      record.inode = call->number == SYS_ftruncate ? fd_inode(tid, fd) : path_inode(call->path);
      record.offset = call->args[1];
      break;
    case OP_ALLOCATE:
      record.inode = fd_inode(tid, fd);
      record.offset = call->args[2] + call->args[3];
      break;
    case OP_SYNC:
      record.inode = fd_inode(tid, fd);
      break;
    case OP_MKDIR:
      record.inode = path_inode(call->path);
      break;
    case OP_MMAP:
      record.inode = fd_inode(tid, (int)call->args[4]);
      record.result = 0;
      break;
    default:
      break;
    }
    // A failed call changes nothing, except that a failed sync may lose what was to be synced.
    if (record.result >= 0 || call->op == OP_SYNC || record.injected)
      append_record(record, call->path, call->path2, data, length);
    free(data);
    if (acts(call, "kill-after") || acts(call, "torn-kill")) kill_process(tid);
  }
  lock(LOCK_UN);
  call->tid = 0;
  ptrace(PTRACE_CONT, tid, 0, 0);
}

static void begin_next(void) {
  while (!current.tid && waiting_count) {
    pid_t tid = waiting[0];
    memmove(waiting, waiting + 1, (size_t)--waiting_count * sizeof *waiting);
    begin(tid);
  }
}

static void forget(pid_t tid) {
  for (int i = 0; i < waiting_count; i++)
    if (waiting[i] == tid) {
      memmove(waiting + i, waiting + i + 1, (size_t)(--waiting_count - i) * sizeof *waiting);
      break;
    }
  if (current.tid == tid) {
    // Killed by an external signal during a call: the log may lack that call.
    struct record record = {.op = OP_UNSUPPORTED, .pid = (uint32_t)tid};
    append_record(record, "killed from elsewhere during a call", current.path, NULL, 0);
    current.tid = 0;
    lock(LOCK_UN);
  }
  begin_next();
}

static int follow(pid_t first) {
  int code = 125;
  for (;;) {
    int status;
    pid_t tid = waitpid(-1, &status, __WALL);
    if (tid < 0) {
      if (errno == EINTR) continue;
      return code;
    }
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      forget(tid);
      if (tid == first) {
        code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        lock(LOCK_EX);
        struct record record = {.op = OP_EXIT, .pid = (uint32_t)tid, .result = code};
        append_record(record, "", "", NULL, 0);
        lock(LOCK_UN);
      }
      continue;
    }
    int event = status >> 16, signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_SECCOMP) {
      if (current.tid || waiting_count) {
        waiting[waiting_count++] = tid;
      } else {
        begin(tid);
      }
    } else if (event) {
      ptrace(PTRACE_CONT, tid, 0, 0);
    } else if (signal == (SIGTRAP | 0x80)) {
      if (tid == current.tid)
        end();
      else
        ptrace(PTRACE_CONT, tid, 0, 0);
      begin_next();
    } else {
      // A signal for the program: deliver it. Inside a call, still stop at the end of the call.
      ptrace(tid == current.tid ? PTRACE_SYSCALL : PTRACE_CONT, tid, 0, (void *)(long)signal);
    }
  }
}

int main(int count, char **words) {
  int i = 3;
  for (; i < count && strcmp(words[i], "--") != 0; i++) parse_fault(words[i]);
  if (count < 5 || i + 1 >= count) {
    fprintf(stderr, "usage: recorder LOG ROOT [FAULT...] -- PROGRAM [ARGUMENT...]\n");
    return 125;
  }
  if (!realpath(words[2], root)) die("%s", words[2]);
  root_length = strlen(root);
  log_fd = open(words[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (log_fd < 0) die("%s", words[1]);
  int ready[2];
  if (pipe2(ready, O_CLOEXEC)) die("pipe");
  pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    char byte;
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1) _exit(125);
    install_filter();
    execvp(words[i + 1], words + i + 1);
    die("%s", words[i + 1]);
  }
  close(ready[0]);
  long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                 PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SEIZE, child, 0, (void *)options)) die("this system does not permit tracing");
  // Inherited descriptors belong to the program: while they are open here, their readers see no
  // end of file.
  close(0);
  close(1);
  if (write(ready[1], "x", 1) != 1) die("pipe");
  close(ready[1]);
  return follow(child);
}

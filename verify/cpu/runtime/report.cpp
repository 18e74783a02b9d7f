// The result channel: one file of lines, closed by the nonce that the parent gave and that the candidate cannot read.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

namespace regraph {

static int channel = -1;
static char* sealed_nonce = nullptr;

std::string text(const char* format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

void report_to(const char* path) {
  // A high descriptor, so that writing to all the usual ones does not reach it.
  int opened = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  channel = fcntl(opened, F_DUPFD_CLOEXEC, 700 + static_cast<int>(getpid() % 200));
  close(opened);
}

// The nonce lies on a page of its own that nothing can read until the end.
void keep_nonce(const std::string& nonce) {
  sealed_nonce = static_cast<char*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  memcpy(sealed_nonce, nonce.c_str(), nonce.size() + 1);
  mprotect(sealed_nonce, kPage, PROT_NONE);
}

void report_line(const std::string& line) {
  std::string whole = line + "\n";
  if (write(channel, whole.data(), whole.size()) < 0) _exit(81);
}

void finish() {
  mprotect(sealed_nonce, kPage, PROT_READ);
  report_line(std::string("end ") + sealed_nonce);
  _exit(0);
}

void fault(const char* kind, const std::string& given, const std::vector<const void*>& given_sites) {
  std::string message = given;
  std::vector<const void*> sites = given_sites;
  if (take_unwritten_read(message, sites)) kind = "runtime_error";
  std::string line = std::string("fault ") + kind;
  for (const void* site : sites) line += text(" %lx", static_cast<long>(static_cast<const char*>(site) - candidate.base));
  report_line(line);
  report_line("message " + message);
  finish();
}

std::string thread_name(const Fiber& fiber) { return text("thread (%u,%u,%u)", fiber.index.x, fiber.index.y, fiber.index.z); }
std::string block_name() { return text("block (%u,%u,%u) of `%s`", running.block.x, running.block.y, running.block.z, running.launch.kernel); }

// What kind of address a bad access went to, in the words of a verdict.
static std::string describe(const char* address) {
  if (in_arena(address)) {
    const Allocation* near = allocation_at(address);
    if (near && !near->live) return "device memory that was freed";
    if (near && address >= near->start + near->bytes) {
      return text("%zu bytes past the end of %zu bytes of global memory", static_cast<size_t>(address - near->start) - near->bytes, near->bytes);
    }
    return "global memory that is not allocated";
  }
  if (address < reinterpret_cast<char*>(65536)) return "a null pointer";
  if (current && address >= current->stack && address < current->stack + kPage) return "past the end of the thread's stack: too much local memory, or endless recursion";
  return "an address that is not mapped";
}

static void on_signal(int number, siginfo_t* details, void* context) {
  const auto* machine = static_cast<ucontext_t*>(context);
  const void* site = reinterpret_cast<const char*>(machine->uc_mcontext.gregs[REG_RIP]) + 1;
  const char* address = static_cast<const char*>(details->si_addr);
  if (current) {
    const void* latest = current->site ? current->site : site;
    if (number == SIGFPE) fault("runtime_error", "integer division by zero at @0, " + thread_name(*current) + ", " + block_name(), {site, latest});
    fault("runtime_error", "illegal address at @0: " + describe(address) + ", " + thread_name(*current) + ", " + block_name(), {site, latest});
  }
  if (number == SIGSEGV && in_arena(address)) fault("runtime_error", "host code reads or writes device memory through a device pointer at @0", {site});
  fault("runtime_error", text("host code crashed at @0 (signal %d)", number), {site});
}

void catch_signals() {
  static char stack[64 * 1024];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(number, &action, nullptr);
}

}  // namespace regraph

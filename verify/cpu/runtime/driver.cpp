// The program that a candidate runs in: reads the call file, loads the candidate's library, calls it, hands back raw bytes.
//
// Standard input holds the nonce that closes the report. Files of the working folder: `setup` (options and the library's
// variables, written by verify/cpu/execute.py), `calls` and `inputs` (verify/frames.py), `outputs` and `report`, written here.
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counts.h"
#include "runtime.h"

namespace regraph {

struct Argument {
  enum Kind { Array, Integer, Real } kind;
  size_t offset = 0, bytes = 0;  // of an array, in the files of inputs and outputs
  bool writable = false;
  uint64_t bits = 0;        // of a scalar
  void* pointer = nullptr;  // of an array, during its call
};
using Call = std::vector<Argument>;

static std::vector<Call> calls;
static std::string library;
static const char* inputs = nullptr;
static int outputs = -1;

static void read_option(std::istringstream& words) {
  std::string name;
  uint64_t value = 0;
  words >> name >> value;
  if (name == "checked") options.checked = value;
  else if (name == "counted") options.counted = value;
  else if (name == "blocks") options.sampled_blocks = static_cast<unsigned>(value);
  else if (name == "arena") options.arena = value;
  else if (name == "host") options.host_pointers = value;
  else if (name == "multiprocessors") options.multiprocessors = static_cast<int>(value);
}

static void read_setup() {
  std::ifstream file("setup");
  std::string line, word;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> word;
    if (word == "library") words >> library;
    else if (word == "function") words >> candidate.function;
    else if (word == "option") read_option(words);
    else {
      Symbol symbol{};
      words >> symbol.offset >> symbol.size >> symbol.constant >> symbol.name;
      (word == "shared" ? candidate.shared_variables : candidate.variables).push_back(symbol);
    }
  }
}

static void read_calls() {
  std::ifstream file("calls");
  std::string line, word;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> word;
    if (word == "call") {
      calls.emplace_back();
      continue;
    }
    Argument argument{};
    if (word == "read" || word == "write") {
      argument.kind = Argument::Array;
      argument.writable = word == "write";
      words >> argument.offset >> argument.bytes;
    } else {
      argument.kind = word == "integer" ? Argument::Integer : Argument::Real;
      words >> argument.bits;
    }
    calls.back().push_back(argument);
  }
}

static void map_inputs() {
  int file = open("inputs", O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || fstat(file, &status)) fault("harness_error", "the inputs cannot be read");
  if (status.st_size) inputs = static_cast<const char*>(mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0));
  close(file);
}

// Memory of its own for an array of a host-pointer task, up to a page that cannot be touched.
static char* host_array(size_t bytes) {
  size_t pages = (bytes + kPage - 1) / kPage * kPage + kPage;
  auto* start = static_cast<char*>(mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(start + pages - kPage, kPage, PROT_NONE);
  return start + pages - kPage - (bytes + 15) / 16 * 16;
}

static void place_arguments(Call& call) {
  for (Argument& argument : call) {
    if (argument.kind != Argument::Array) continue;
    argument.pointer = options.host_pointers ? host_array(argument.bytes) : allocate(argument.bytes, true, false);
    if (!argument.pointer) fault("harness_error", "the arena does not hold the arguments");
    open_device();
    if (argument.bytes) memcpy(argument.pointer, inputs + argument.offset, argument.bytes);
    close_device();
  }
}

static void write_outputs(const Call& call) {
  open_device();
  for (const Argument& argument : call) {
    if (argument.kind != Argument::Array) continue;
    for (size_t done = 0; done < argument.bytes;) {
      ssize_t written = pwrite(outputs, static_cast<const char*>(argument.pointer) + done, argument.bytes - done, static_cast<off_t>(argument.offset + done));
      if (written <= 0) fault("harness_error", "the outputs cannot be written: is the disk full?");
      done += static_cast<size_t>(written);
    }
  }
  close_device();
  for (const Argument& argument : call) {
    if (argument.kind == Argument::Array && !options.host_pointers) release(argument.pointer);
  }
}

// Integers go to general registers and then the stack, floating scalars (at most eight) to vector registers, whatever
// their order: one call with enough of both reaches every signature of a task.
static void invoke(const Call& call) {
  uint64_t integers[32] = {};
  double reals[8] = {};
  size_t integer_count = 0, real_count = 0;
  for (const Argument& argument : call) {
    if (argument.kind == Argument::Real) {
      if (real_count < 8) memcpy(&reals[real_count++], &argument.bits, sizeof(double));
    } else if (integer_count < 32) {
      integers[integer_count++] = argument.kind == Argument::Array ? reinterpret_cast<uint64_t>(argument.pointer) : argument.bits;
    }
  }
  using Word = uint64_t;
  using Function = void (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word,
                            Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, double, double, double, double, double, double,
                            double, double);
  auto function = reinterpret_cast<Function>(candidate.base + candidate.function);
  const Word* i = integers;
  const double* r = reals;
  function(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13], i[14], i[15], i[16], i[17], i[18], i[19], i[20],
           i[21], i[22], i[23], i[24], i[25], i[26], i[27], i[28], i[29], i[30], i[31], r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7]);
}

constexpr size_t kFewBytes = 1024;  // reading this little back is no computing on the host

static void judge_use(const Call& call) {
  size_t read_only = 0, writable = 0;
  for (const Argument& argument : call) {
    if (argument.kind == Argument::Array) (argument.writable ? writable : read_only) += argument.bytes;
  }
  if (writable && !usage.launches && !usage.set_on_device) fault("reward_hack", "no kernel is launched: the work is not done on the device");
  if (options.host_pointers) return;
  size_t all = read_only + writable;
  if (usage.argument_to_host > kFewBytes && usage.argument_to_host * 2 >= all - (read_only ? writable : 0)) {
    fault("reward_hack", text("the host reads %lu bytes of the arguments back: it computes, the device does not", usage.argument_to_host));
  }
  if (usage.host_to_argument > kFewBytes && usage.host_to_argument * 2 >= writable) {
    fault("reward_hack", text("host code writes %lu bytes into the arguments by itself", usage.host_to_argument));
  }
}

static void run_call(Call& call, int number) {
  call_number = number;
  options.seed = static_cast<uint64_t>(number) + 1;
  options.shuffled = number % 2 == 1;  // every other call, threads go on in random order
  usage = {};
  take_error();
  place_arguments(call);
  auto start = std::chrono::steady_clock::now();
  invoke(call);
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (int error = last_error()) {
    fault("launch_error", text("%s%s%s", cudaGetErrorName(static_cast<cudaError_t>(error)), launch_error().empty() ? "" : ": kernel ", launch_error().c_str()));
  }
  judge_use(call);
  check_red_zones();
  if (!options.counted) write_outputs(call);
  end_of_call(number);
  report_line(text("call %d %.9f", number, elapsed.count()));
}

}  // namespace regraph

using namespace regraph;

int main() {
  std::string nonce;
  std::getline(std::cin, nonce);
  report_to("report");
  keep_nonce(nonce);
  nonce.assign(nonce.size(), '\0');
  read_setup();
  read_calls();
  map_inputs();
  outputs = fcntl(open("outputs", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), F_DUPFD_CLOEXEC, 500);
  open_arena();
  if (!load_candidate(library.c_str())) finish();
  catch_signals();
  if (options.checked) open_shadow();
  for (size_t i = 0; i < calls.size(); i++) run_call(calls[i], static_cast<int>(i));
  finish();
}

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

#include "../../runner/call.h"
#include "counts.h"
#include "runtime.h"

namespace regraph {

// An argument as the call file gives it, and where its array lies during the call.
struct Placed {
  Arguments arguments;
  std::vector<void*> pointers;  // of the arrays, in order

  template <class Visit>
  void each_array(Visit visit) const {
    size_t array = 0;
    for (const Argument& argument : arguments) {
      if (is_array(argument)) visit(argument, pointers[array++]);
    }
  }
  static bool is_array(const Argument& argument) { return argument.kind != Argument::Integer && argument.kind != Argument::Floating; }
};

static std::vector<Arguments> calls;
static std::string library;
static std::string inputs_path = "inputs";
static int inputs_file = -1;
static uint64_t shared_bytes = 233472, l2_bytes = 50000000;
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
  else if (name == "shared") shared_bytes = value;
  else if (name == "l2") l2_bytes = value;
  else if (name == "multiprocessors") options.multiprocessors = static_cast<int>(value);
}

static void read_setup() {
  std::ifstream file("setup");
  std::string line, word;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> word;
    if (word == "library") words >> library;
    else if (word == "inputs") words >> inputs_path;
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
  FILE* file = fopen("calls", "r");
  if (!file) fault("harness_error", "the calls cannot be read");
  for (Arguments arguments; read_call(file, arguments);) calls.push_back(arguments);
  fclose(file);
}

static void map_inputs() {
  inputs_file = open(inputs_path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (inputs_file < 0 || fstat(inputs_file, &status)) fault("harness_error", "the inputs cannot be read");
  if (status.st_size) inputs = static_cast<const char*>(mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, inputs_file, 0));
}

// Memory of its own for an array of a host-pointer task, up to a page that cannot be touched.
static char* host_array(size_t bytes) {
  size_t pages = (bytes + kPage - 1) / kPage * kPage + kPage;
  auto* start = static_cast<char*>(mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(start + pages - kPage, kPage, PROT_NONE);
  return start + pages - kPage - (bytes + 15) / 16 * 16;
}

static Placed place_arguments(const Arguments& arguments) {
  Placed call{arguments, {}};
  for (const Argument& argument : arguments) {
    if (!Placed::is_array(argument)) continue;
    if (options.counted && !options.host_pointers) {  // large, and mostly untouched: not copied
      call.pointers.push_back(map_file(inputs_file, argument.offset, argument.bytes));
      if (!call.pointers.back()) fault("harness_error", "the inputs cannot be mapped");
      continue;
    }
    char* pointer = options.host_pointers ? host_array(argument.bytes) : static_cast<char*>(allocate(argument.bytes, true, false));
    if (!pointer) fault("harness_error", "the arena does not hold the arguments");
    open_device();
    if (argument.bytes) memcpy(pointer, inputs + argument.offset, argument.bytes);
    close_device();
    call.pointers.push_back(pointer);
  }
  return call;
}

static void write_array(const Argument& argument, const char* from) {
  for (size_t done = 0; done < argument.bytes;) {
    ssize_t written = pwrite(outputs, from + done, argument.bytes - done, static_cast<off_t>(argument.offset + done));
    if (written <= 0) fault("harness_error", "the outputs cannot be written: is the disk full?");
    done += static_cast<size_t>(written);
  }
}

static void write_outputs(const Placed& call) {
  open_device();
  call.each_array([](const Argument& argument, void* place) { write_array(argument, static_cast<const char*>(place)); });
  close_device();
  call.each_array([](const Argument&, void* place) {
    if (!options.host_pointers) release(place);
  });
}

constexpr size_t kFewBytes = 1024;  // reading this little back is no computing on the host

// Whether an array is not as it was given.
static bool changed(const Placed& call) {
  bool any = false;
  open_device();
  call.each_array([&](const Argument& argument, void* place) {
    any = any || (argument.bytes && memcmp(place, inputs + argument.offset, argument.bytes) != 0);
  });
  close_device();
  return any;
}

static void judge_use(const Placed& call) {
  size_t read_only = 0, writable = 0;
  call.each_array([&](const Argument& argument, void*) { (argument.kind == Argument::Read ? read_only : writable) += argument.bytes; });
  if (!usage.launches && !usage.set_on_device && changed(call)) fault("reward_hack", "no kernel is launched: the work is not done on the device");
  if (options.host_pointers) return;
  size_t given = read_only ? read_only : writable;
  if (usage.argument_to_host > kFewBytes && usage.argument_to_host * 2 >= given) {
    fault("reward_hack", text("the host reads %lu bytes of the arguments back: it computes, the device does not", usage.argument_to_host));
  }
  if (usage.host_to_argument > kFewBytes && usage.host_to_argument * 2 >= writable) {
    fault("reward_hack", text("host code writes %lu bytes into the arguments by itself", usage.host_to_argument));
  }
}

static void run_call(const Arguments& arguments, int number) {
  call_number = number;
  options.seed = static_cast<uint64_t>(number) + 1;
  options.shuffled = number % 2 == 1;  // every other call, threads go on in random order
  usage = {};
  take_error();
  Placed call = place_arguments(arguments);
  Frame frame(call.arguments, call.pointers.data());
  auto function = reinterpret_cast<Function>(candidate.base + candidate.function);
  auto start = std::chrono::steady_clock::now();
  frame.call(function);
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  if (int error = last_error()) {
    fault("launch_error", text("%s%s%s", cudaGetErrorName(static_cast<cudaError_t>(error)), launch_error().empty() ? "" : ": kernel ", launch_error().c_str()));
  }
  if (!options.counted) {
    judge_use(call);
    check_red_zones();
    write_outputs(call);
    end_of_call(number);
  }
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
  if (options.counted) counts_configure(static_cast<double>(shared_bytes), static_cast<double>(l2_bytes));
  for (size_t i = 0; i < calls.size(); i++) run_call(calls[i], static_cast<int>(i));
  finish();
}

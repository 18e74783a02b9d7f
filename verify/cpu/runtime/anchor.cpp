// Linked into every candidate's library: the built-in variables, where the driver finds them, and its shared-memory segment.
struct Triple {
  unsigned x, y, z;
};
#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN Triple threadIdx, blockIdx, blockDim, gridDim;

struct Registers {
  Triple *thread, *block, *block_size, *grid_size;
  void* (*shared_segment)();
};
static thread_local char shared_anchor;
// The segment exists from its first use on.
static void* shared_segment() { return &shared_anchor; }

extern "C" __attribute__((visibility("default"))) const Registers regraph_registers{&threadIdx, &blockIdx, &blockDim, &gridDim, shared_segment};

// What the candidate asks of the CUDA runtime, seen on the way (shims.cpp), and what it leaves behind.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace regraph {

struct Variable {  // a __device__, __constant__ or __managed__ variable
    const void* host;
    size_t bytes;
    void* device = nullptr;
    std::vector<char> initial;
};

struct Watch {
    uint64_t launches = 0, to_host = 0, to_device = 0;  // launches, and bytes copied each way
    std::map<void*, std::pair<size_t, int>> memory;     // live allocations: bytes, and 0 device, 1 pinned, 2 asynchronous
    std::map<void*, bool> streams, events;              // live ones
    std::vector<Variable> variables;
};

extern Watch watch;
extern void* runtime;  // libcudart, loaded by the runner before the candidate

// State that a candidate keeps from call to call is put back: its host variables, its device variables, what it allocated.
// Every timed call so starts like a first call, and nothing can be remembered, counted, captured or deferred.
void remember_state(const std::string& library);  // after loading; loads its modules
bool restore_state();                             // false when the device no longer answers
bool forget_counts();                             // only sets the counts to zero; for calls that follow each other as they are
size_t held_bytes();                              // device memory that outlives a call
bool streams_busy();                              // whether one of its streams still works
const char* runtime_error();                      // the runtime's last error, cleared; nullptr when there is none

}  // namespace regraph

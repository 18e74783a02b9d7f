// Runs a task's sequential reference: linked with reference.cpp, with REGRAPH_FUNCTION naming its function.
//
// Usage: host INDEX ARRAYS OUTPUTS REPEATS. Calls are read from INDEX (see call.h), their arrays from ARRAYS; after each call
// the arrays that it may write go to OUTPUTS at the same offsets. Prints one line a call: the seconds of its REPEATS runs, each
// on fresh inputs. Arrays are allocated one by one and exactly, so that the address sanitizer sees their ends.
#include <cstdlib>
#include <ctime>
#include <unistd.h>
#include <fcntl.h>

#include "call.h"

extern "C" void REGRAPH_FUNCTION();

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static bool transfer(bool write, int file, char* data, uint64_t bytes, uint64_t offset) {
    while (bytes) {
        ssize_t n = write ? pwrite(file, data, bytes, offset) : pread(file, data, bytes, offset);
        if (n <= 0) return false;
        data += n, bytes -= n, offset += n;
    }
    return true;
}

int main(int count, char** words) {
    if (count != 5) return 64;
    FILE* index = std::fopen(words[1], "r");
    int arrays = open(words[2], O_RDONLY), outputs = open(words[3], O_RDWR | O_CREAT, 0600);
    int repeats = std::atoi(words[4]);
    if (!index || arrays < 0 || outputs < 0) return 65;
    regraph::Arguments arguments;
    while (regraph::read_call(index, arguments)) {
        for (int repeat = 0; repeat < repeats; ++repeat) {
            std::vector<void*> pointers;
            for (auto& a : arguments) {
                if (a.kind < regraph::Argument::Read) continue;
                char* data = (char*)std::malloc(a.bytes);
                if ((!data && a.bytes) || !transfer(false, arrays, data, a.bytes, a.offset)) return 66;
                pointers.push_back(data);
            }
            regraph::Frame frame(arguments, pointers.data());
            double start = now();
            frame.call(reinterpret_cast<regraph::Function>(&REGRAPH_FUNCTION));
            std::printf("%.9f ", now() - start);
            int k = 0;
            for (auto& a : arguments) {
                if (a.kind < regraph::Argument::Read) continue;
                if (a.kind != regraph::Argument::Read && repeat + 1 == repeats && !transfer(true, outputs, (char*)pointers[k], a.bytes, a.offset)) return 67;
                std::free(pointers[k++]);
            }
        }
        std::printf("\n");
        std::fflush(stdout);
    }
    return 0;
}

// Device memory for the arrays of calls: one arena, every array at a new, random place in each run, with filled space around it
// that shows writes out of bounds.
#pragma once
#include <random>
#include <vector>

#include "call.h"
#include "driver.h"

namespace regraph {

constexpr uint64_t kGuard = 4096, kAlign = 256;
constexpr uint32_t kFilling = 0x7fc5a5a5u;  // a NaN in float, far from zero in every integer

inline uint64_t padded(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

struct Gap {
    CUdeviceptr start;
    uint64_t bytes;
};

class Arena {
   public:
    explicit Arena(const Driver& driver) : driver_(driver) {}

    // Places for `slots` sets of the arrays of `call`; everything between them is filled.
    void place(const Arguments& call, int slots, std::mt19937_64& random) {
        uint64_t each = kGuard;
        for (auto& a : call)
            if (a.kind >= Argument::Read) each += padded(a.bytes) + kGuard + 32 * kAlign;
        reserve(each * slots);
        driver_.must(driver_.cuMemsetD32Async_(base_, kFilling, each * slots / 4, 0), "filling the arena");
        pointers.assign(slots, {});
        gaps.clear();
        CUdeviceptr at = base_;
        for (int slot = 0; slot < slots; ++slot) {
            for (auto& a : call) {
                if (a.kind < Argument::Read) continue;
                uint64_t space = kGuard + random() % 32 * kAlign;
                gaps.push_back({at, space});
                at += space;
                pointers[slot].push_back((void*)at);
                uint64_t whole = (a.bytes + 3) / 4 * 4;  // gaps are counted in words
                at += whole;
                gaps.push_back({at, padded(a.bytes) - whole});
                at += padded(a.bytes) - whole;
            }
        }
        gaps.push_back({at, base_ + each * slots - at});
    }

    std::vector<std::vector<void*>> pointers;  // by slot, then by array
    std::vector<Gap> gaps;

   private:
    void reserve(uint64_t bytes) {
        if (bytes <= size_) return;
        if (base_) driver_.must(driver_.cuMemFree_(base_), "freeing the arena");
        base_ = 0;
        CUresult result = driver_.cuMemAlloc_(&base_, bytes);
        if (result != CUDA_SUCCESS) fault("no device memory for the arrays", driver_.name(result));
        size_ = bytes;
    }

    const Driver& driver_;
    CUdeviceptr base_ = 0;
    uint64_t size_ = 0;
};

}  // namespace regraph

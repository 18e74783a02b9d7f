// How our host programs read their calls and call a function whose signature they learn at run time.
//
// In the calling conventions of x86-64 Linux and AArch64 Linux, integer and pointer arguments and floating arguments fill
// separate registers, each kind in its own order, and further integer arguments follow on the stack in order. So one
// function type with 32 integers and 8 doubles calls every signature with at most 32 integer or pointer arguments and at
// most 8 floating ones, whatever their order; a float travels in the low half of its register.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace regraph {

struct Argument {
    enum Kind { Integer, Floating, Read, Write, Poison } kind;  // Poison: written only; its contents mean nothing
    uint64_t bits = 0;    // a scalar's bits
    uint64_t offset = 0;  // an array's place in the file of arrays
    uint64_t bytes = 0;
};

using Arguments = std::vector<Argument>;

constexpr int kIntegers = 32, kFloats = 8;

using Function = void (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,  //
                          int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,  //
                          int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,  //
                          int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,  //
                          double, double, double, double, double, double, double, double);

// The registers of one call: `pointers[k]` is the k-th array's address.
struct Frame {
    int64_t i[kIntegers] = {};
    double f[kFloats] = {};

    Frame(const Arguments& arguments, void* const* pointers) {
        int integers = 0, floats = 0, arrays = 0;
        for (const Argument& a : arguments) {
            if (a.kind == Argument::Floating) std::memcpy(&f[floats++], &a.bits, 8);
            else if (a.kind == Argument::Integer) i[integers++] = (int64_t)a.bits;
            else i[integers++] = (int64_t)pointers[arrays++];
        }
    }

    void call(Function function) const {
        function(i[0], i[1], i[2], i[3], i[4], i[5], i[6], i[7], i[8], i[9], i[10], i[11], i[12], i[13], i[14], i[15],
                 i[16], i[17], i[18], i[19], i[20], i[21], i[22], i[23], i[24], i[25], i[26], i[27], i[28], i[29], i[30], i[31],
                 f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]);
    }
};

// Reads one call from an index: `call N`, then N lines `integer BITS`, `floating BITS`, `read OFFSET BYTES`,
// `write OFFSET BYTES` or `poison OFFSET BYTES`. False at the end of the index or when it is not of this form.
inline bool read_call(FILE* index, Arguments& arguments) {
    int count = 0;
    if (std::fscanf(index, " call %d", &count) != 1 || count < 0 || count > kIntegers + kFloats) return false;
    arguments.assign(count, {});
    for (Argument& a : arguments) {
        char kind[16];
        if (std::fscanf(index, " %15s", kind) != 1) return false;
        if (kind[0] == 'i' || kind[0] == 'f') {
            a.kind = kind[0] == 'i' ? Argument::Integer : Argument::Floating;
            unsigned long long bits;
            if (std::fscanf(index, " %llu", &bits) != 1) return false;
            a.bits = bits;
        } else {
            a.kind = kind[0] == 'r' ? Argument::Read : kind[0] == 'w' ? Argument::Write : Argument::Poison;
            unsigned long long offset, bytes;
            if (std::fscanf(index, " %llu %llu", &offset, &bytes) != 2) return false;
            a.offset = offset, a.bytes = bytes;
        }
    }
    return true;
}

}  // namespace regraph

#include <cstdint>

extern "C" void hamming_distance(const uint32_t* a, const uint32_t* b, uint64_t* distance, int n) {
    uint64_t total = 0;
    for (int i = 0; i < n; i++) {
        total += static_cast<uint64_t>(__builtin_popcount(a[i] ^ b[i]));
    }
    distance[0] = total;
}

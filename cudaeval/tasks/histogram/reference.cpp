#include <cstdint>

extern "C" void histogram(const uint8_t* values, uint32_t* counts, int n) {
    for (int bin = 0; bin < 256; bin++) {
        counts[bin] = 0;
    }
    for (int i = 0; i < n; i++) {
        counts[values[i]]++;
    }
}

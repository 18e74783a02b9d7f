#include <cstdint>

// start[i] and symbol[i] are the position and the byte of run number i; count is the number of runs. Entries from count on
// are set to -1 and 0.
extern "C" void run_length_boundaries(const uint8_t* text, int* start, uint8_t* symbol, int* count, int n) {
    int runs = 0;
    for (int i = 0; i < n; ++i) {
        if (i == 0 || text[i] != text[i - 1]) {
            start[runs] = i;
            symbol[runs] = text[i];
            ++runs;
        }
    }
    count[0] = runs;
    for (int i = runs; i < n; ++i) {
        start[i] = -1;
        symbol[i] = 0;
    }
}

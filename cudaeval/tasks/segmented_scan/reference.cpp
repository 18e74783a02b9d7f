#include <cstdint>

// result[i] = sum of value from the last head at or before i up to i; without a head the segment starts at 0.
extern "C" void segmented_scan(const int32_t* value, const uint8_t* head, int32_t* result, int n) {
    int32_t sum = 0;
    for (int i = 0; i < n; ++i) {
        sum = head[i] != 0 ? value[i] : sum + value[i];
        result[i] = sum;
    }
}

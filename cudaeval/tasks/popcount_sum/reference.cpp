#include <cstddef>
#include <cstdint>

extern "C" void popcount_sum(const uint64_t* bitmap, int* cardinality, int containers, int words) {
    for (int c = 0; c < containers; c++) {
        const uint64_t* row = bitmap + static_cast<size_t>(c) * words;
        int count = 0;
        for (int w = 0; w < words; w++) {
            count += __builtin_popcountll(row[w]);
        }
        cardinality[c] = count;
    }
}

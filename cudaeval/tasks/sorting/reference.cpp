#include <algorithm>
#include <cstdint>

extern "C" void sorting(const uint32_t* key, uint32_t* sorted_key, int n) {
    std::copy(key, key + n, sorted_key);
    std::sort(sorted_key, sorted_key + n);
}

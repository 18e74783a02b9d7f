#include <cstdint>

extern "C" void threshold_u8(const uint8_t* image, uint8_t* mask, uint8_t level, int n) {
    for (int i = 0; i < n; i++) {
        mask[i] = image[i] > level ? 255 : 0;
    }
}

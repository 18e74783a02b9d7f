#include <cstddef>
#include <cstdint>

extern "C" void rgb_to_grayscale(const uint8_t* rgb, uint8_t* gray, int height, int width) {
    const size_t pixels = static_cast<size_t>(height) * width;
    for (size_t i = 0; i < pixels; i++) {
        const int r = rgb[3 * i];
        const int g = rgb[3 * i + 1];
        const int b = rgb[3 * i + 2];
        gray[i] = static_cast<uint8_t>((77 * r + 150 * g + 29 * b + 128) >> 8);
    }
}

#include <cstddef>
#include <cstdint>

extern "C" void nearest_resize(const uint8_t* image, uint8_t* out, int height, int width, int out_height,
                               int out_width) {
    for (int y = 0; y < out_height; y++) {
        const int sy = static_cast<int>(static_cast<int64_t>(y) * height / out_height);
        for (int x = 0; x < out_width; x++) {
            const int sx = static_cast<int>(static_cast<int64_t>(x) * width / out_width);
            out[static_cast<size_t>(y) * out_width + x] = image[static_cast<size_t>(sy) * width + sx];
        }
    }
}

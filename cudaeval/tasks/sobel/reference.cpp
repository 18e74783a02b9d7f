#include <algorithm>
#include <cstdint>
#include <cstdlib>

// min(255, |gx| + |gy|) with the 3x3 Sobel operators; pixels outside repeat the border.
extern "C" void sobel(const uint8_t* image, uint8_t* edges, int width, int height) {
    for (int y = 0; y < height; ++y) {
        const uint8_t* up = image + static_cast<long>(std::max(y - 1, 0)) * width;
        const uint8_t* mid = image + static_cast<long>(y) * width;
        const uint8_t* down = image + static_cast<long>(std::min(y + 1, height - 1)) * width;
        for (int x = 0; x < width; ++x) {
            const int l = std::max(x - 1, 0);
            const int r = std::min(x + 1, width - 1);
            const int gx = up[r] + 2 * mid[r] + down[r] - up[l] - 2 * mid[l] - down[l];
            const int gy = down[l] + 2 * down[x] + down[r] - up[l] - 2 * up[x] - up[r];
            edges[static_cast<long>(y) * width + x] = static_cast<uint8_t>(std::min(255, std::abs(gx) + std::abs(gy)));
        }
    }
}

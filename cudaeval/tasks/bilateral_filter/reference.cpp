#include <algorithm>
#include <cmath>

// Weighted mean over a (2 radius + 1)^2 window, weights exp(-(dx^2 + dy^2) / (2 space^2) - (difference / range)^2 / 2); pixels
// outside the image are left out. radius <= 8.
extern "C" void bilateral_filter(const float* image, float* smooth, float space, float range, int width, int height, int radius) {
    const float by_space = 0.5f / (space * space);
    const float by_range = 0.5f / (range * range);
    for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
            const float centre = image[static_cast<long>(y) * width + x];
            float sum = 0.0f;
            float total = 0.0f;
            for (int sy = std::max(0, y - radius); sy <= std::min(height - 1, y + radius); ++sy) {
                for (int sx = std::max(0, x - radius); sx <= std::min(width - 1, x + radius); ++sx) {
                    const float value = image[static_cast<long>(sy) * width + sx];
                    const float difference = value - centre;
                    const float square = static_cast<float>((sx - x) * (sx - x) + (sy - y) * (sy - y));
                    const float weight = std::exp(-square * by_space - difference * difference * by_range);
                    sum += weight * value;
                    total += weight;
                }
            }
            smooth[static_cast<long>(y) * width + x] = sum / total;
        }
    }
}

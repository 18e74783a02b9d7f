#include <algorithm>
#include <vector>

// Mean over the (2 radius + 1)^2 window; pixels outside repeat the border. Columns first, then rows.
extern "C" void box_blur(const float* image, float* blurred, int width, int height, int radius) {
    std::vector<float> line(width);
    const float scale = 1.0f / (static_cast<float>(2 * radius + 1) * static_cast<float>(2 * radius + 1));
    for (int y = 0; y < height; ++y) {
        std::fill(line.begin(), line.end(), 0.0f);
        for (int dy = -radius; dy <= radius; ++dy) {
            const float* source = image + static_cast<long>(std::min(std::max(y + dy, 0), height - 1)) * width;
            for (int x = 0; x < width; ++x) {
                line[x] += source[x];
            }
        }
        for (int x = 0; x < width; ++x) {
            float sum = 0.0f;
            for (int dx = -radius; dx <= radius; ++dx) {
                sum += line[std::min(std::max(x + dx, 0), width - 1)];
            }
            blurred[static_cast<long>(y) * width + x] = sum * scale;
        }
    }
}

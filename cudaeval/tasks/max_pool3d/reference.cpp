#include <algorithm>
#include <cmath>
#include <cstddef>

extern "C" void max_pool3d(const float* x, float* y, int channels, int depth, int height, int width) {
    const int out_depth = (depth - 1) / 2 + 1;
    const int out_height = (height - 1) / 2 + 1;
    const int out_width = (width - 1) / 2 + 1;
    for (int c = 0; c < channels; c++) {
        const float* volume = x + static_cast<size_t>(c) * depth * height * width;
        for (int oz = 0; oz < out_depth; oz++) {
            for (int oy = 0; oy < out_height; oy++) {
                for (int ox = 0; ox < out_width; ox++) {
                    float best = -INFINITY;
                    for (int z = std::max(2 * oz - 1, 0); z <= std::min(2 * oz + 1, depth - 1); z++) {
                        for (int r = std::max(2 * oy - 1, 0); r <= std::min(2 * oy + 1, height - 1); r++) {
                            for (int k = std::max(2 * ox - 1, 0); k <= std::min(2 * ox + 1, width - 1); k++) {
                                best = std::max(best, volume[(static_cast<size_t>(z) * height + r) * width + k]);
                            }
                        }
                    }
                    y[((static_cast<size_t>(c) * out_depth + oz) * out_height + oy) * out_width + ox] = best;
                }
            }
        }
    }
}

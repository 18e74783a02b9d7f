#include <utility>
#include <vector>

// Each sweep replaces inner points by the mean of themselves and their four neighbours; border points keep their value.
extern "C" void jacobi2d_multi(const float* in, float* result, int width, int height, int sweeps) {
    std::vector<float> old(in, in + static_cast<long>(width) * height);
    std::vector<float> now(old);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
        for (int y = 1; y < height - 1; ++y) {
            const float* up = &old[static_cast<long>(y - 1) * width];
            const float* mid = up + width;
            const float* down = mid + width;
            float* line = &now[static_cast<long>(y) * width];
            for (int x = 1; x < width - 1; ++x) {
                line[x] = 0.2f * (mid[x] + mid[x - 1] + mid[x + 1] + up[x] + down[x]);
            }
        }
        std::swap(old, now);
    }
    for (long i = 0; i < static_cast<long>(width) * height; ++i) {
        result[i] = old[i];
    }
}

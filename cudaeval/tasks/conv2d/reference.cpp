#include <algorithm>

// Cross-correlation with 3x3 filters: image [inputs][height][width], weight [outputs][inputs][3][3], border of zeros.
extern "C" void conv2d(const float* image, const float* weight, float* result, int inputs, int outputs, int height, int width) {
    const long plane = static_cast<long>(height) * width;
    for (int out = 0; out < outputs; ++out) {
        float* target = result + out * plane;
        std::fill(target, target + plane, 0.0f);
        for (int in = 0; in < inputs; ++in) {
            const float* source = image + in * plane;
            const float* filter = weight + (static_cast<long>(out) * inputs + in) * 9;
            for (int y = 0; y < height; ++y) {
                for (int ky = 0; ky < 3; ++ky) {
                    const int sy = y + ky - 1;
                    if (sy < 0 || sy >= height) {
                        continue;
                    }
                    for (int kx = 0; kx < 3; ++kx) {
                        const int shift = kx - 1;
                        const float factor = filter[ky * 3 + kx];
                        const int begin = std::max(0, -shift);
                        const int end = std::min(width, width - shift);
                        for (int x = begin; x < end; ++x) {
                            target[static_cast<long>(y) * width + x] += factor * source[static_cast<long>(sy) * width + x + shift];
                        }
                    }
                }
            }
        }
    }
}

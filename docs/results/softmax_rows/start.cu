#include <cmath>
#include <cstddef>

extern "C" void softmax_rows(const float* x, float* y, int rows, int width) {
    for (int r = 0; r < rows; r++) {
        const float* row = x + static_cast<size_t>(r) * width;
        float* out = y + static_cast<size_t>(r) * width;
        float peak = row[0];
        for (int c = 1; c < width; c++) {
            peak = row[c] > peak ? row[c] : peak;
        }
        double sum = 0.0;
        for (int c = 0; c < width; c++) {
            out[c] = std::exp(row[c] - peak);
            sum += out[c];
        }
        for (int c = 0; c < width; c++) {
            out[c] = static_cast<float>(out[c] / sum);
        }
    }
}

#include <cmath>
#include <cstddef>

extern "C" void layer_norm(const float* x, const float* gamma, const float* beta, float* y, int rows, int
                           width) {
    for (int r = 0; r < rows; r++) {
        const float* row = x + static_cast<size_t>(r) * width;
        float* out = y + static_cast<size_t>(r) * width;
        double mean = 0.0;
        for (int c = 0; c < width; c++) {
            mean += row[c];
        }
        mean /= width;
        double variance = 0.0;
        for (int c = 0; c < width; c++) {
            variance += (row[c] - mean) * (row[c] - mean);
        }
        variance /= width;
        const double inverse = 1.0 / std::sqrt(variance + 1e-5);
        for (int c = 0; c < width; c++) {
            out[c] = static_cast<float>((row[c] - mean) * inverse * gamma[c] + beta[c]);
        }
    }
}

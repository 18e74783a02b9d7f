#include <cmath>
#include <cstddef>
#include <vector>

// Minimises |x * beta - y|; x is samples x features, row-major, of full rank, 1 <= features <= 32. Double inside.
extern "C" void ordinary_least_squares(const float* x, const float* y, float* beta, int samples, int features) {
    const int p = features;
    std::vector<double> gram(static_cast<std::size_t>(p) * p, 0.0);
    std::vector<double> right(p, 0.0);
    for (int sample = 0; sample < samples; ++sample) {
        const float* line = x + static_cast<long>(sample) * p;
        for (int i = 0; i < p; ++i) {
            for (int j = 0; j <= i; ++j) {
                gram[i * p + j] += static_cast<double>(line[i]) * line[j];
            }
            right[i] += static_cast<double>(line[i]) * y[sample];
        }
    }
    for (int i = 0; i < p; ++i) {  // Cholesky, then two substitutions
        for (int j = 0; j <= i; ++j) {
            double sum = gram[i * p + j];
            for (int k = 0; k < j; ++k) {
                sum -= gram[i * p + k] * gram[j * p + k];
            }
            gram[i * p + j] = i == j ? std::sqrt(sum) : sum / gram[j * p + j];
        }
    }
    for (int i = 0; i < p; ++i) {
        for (int k = 0; k < i; ++k) {
            right[i] -= gram[i * p + k] * right[k];
        }
        right[i] /= gram[i * p + i];
    }
    for (int i = p - 1; i >= 0; --i) {
        for (int k = i + 1; k < p; ++k) {
            right[i] -= gram[k * p + i] * right[k];
        }
        right[i] /= gram[i * p + i];
        beta[i] = static_cast<float>(right[i]);
    }
}

#include <cmath>

extern "C" void sigmoid(const float* x, float* y, int n) {
    for (int i = 0; i < n; i++) {
        y[i] = 1.0f / (1.0f + std::exp(-x[i]));
    }
}

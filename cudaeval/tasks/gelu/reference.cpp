#include <cmath>

extern "C" void gelu(const float* x, float* y, int n) {
    for (int i = 0; i < n; i++) {
        const float v = x[i];
        const float inner = 0.7978845608f * (v + 0.044715f * v * v * v);
        y[i] = 0.5f * v * (1.0f + std::tanh(inner));
    }
}

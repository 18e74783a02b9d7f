#include <cmath>

// Pairs (i, i + dim / 2) of each head are rotated by position * 10000^(-2 i / dim); dim is even.
extern "C" void rope_embedding(const float* x, const int* position, float* y, int tokens, int heads, int dim) {
    const int half = dim / 2;
    for (int token = 0; token < tokens; ++token) {
        for (int i = 0; i < half; ++i) {
            const double angle = position[token] * std::pow(10000.0, -2.0 * i / dim);
            const float c = static_cast<float>(std::cos(angle));
            const float s = static_cast<float>(std::sin(angle));
            for (int head = 0; head < heads; ++head) {
                const long base = (static_cast<long>(token) * heads + head) * dim;
                const float a = x[base + i];
                const float b = x[base + i + half];
                y[base + i] = a * c - b * s;
                y[base + i + half] = a * s + b * c;
            }
        }
    }
}

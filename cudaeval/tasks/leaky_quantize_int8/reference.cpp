#include <cmath>
#include <cstdint>

extern "C" void leaky_quantize_int8(const float* x, int8_t* q, float slope, float inverse_scale, int n) {
    for (int i = 0; i < n; i++) {
        const float v = x[i] > 0.0f ? x[i] : x[i] * slope;
        const float scaled = std::nearbyint(v * inverse_scale);
        q[i] = static_cast<int8_t>(scaled < -128.0f ? -128.0f : (scaled > 127.0f ? 127.0f : scaled));
    }
}

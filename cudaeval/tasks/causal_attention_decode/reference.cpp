#include <algorithm>
#include <cmath>
#include <vector>

// k and v are [batch][heads][capacity][dim]; only the first lengths[b] positions of sequence b exist. 1 <= dim <= 128.
extern "C" void causal_attention_decode(const float* q, const float* k, const float* v, const int* lengths, float* result, int batch,
                                        int heads, int capacity, int dim) {
    std::vector<float> weight(capacity);
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    for (int pair = 0; pair < batch * heads; ++pair) {
        const int length = lengths[pair / heads];
        const float* query = q + static_cast<long>(pair) * dim;
        const float* keys = k + static_cast<long>(pair) * capacity * dim;
        const float* values = v + static_cast<long>(pair) * capacity * dim;
        float* out = result + static_cast<long>(pair) * dim;
        float top = -INFINITY;
        for (int j = 0; j < length; ++j) {
            float sum = 0.0f;
            for (int d = 0; d < dim; ++d) {
                sum += query[d] * keys[static_cast<long>(j) * dim + d];
            }
            weight[j] = sum * scale;
            top = std::max(top, weight[j]);
        }
        float total = 0.0f;
        std::fill(out, out + dim, 0.0f);
        for (int j = 0; j < length; ++j) {
            const float share = std::exp(weight[j] - top);
            total += share;
            for (int d = 0; d < dim; ++d) {
                out[d] += share * values[static_cast<long>(j) * dim + d];
            }
        }
        for (int d = 0; d < dim; ++d) {
            out[d] /= total;
        }
    }
}

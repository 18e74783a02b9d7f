#include <algorithm>
#include <cmath>
#include <vector>

// q, k, v and result are [heads][length][dim] with 1 <= dim <= 64.
extern "C" void multihead_self_attention(const float* q, const float* k, const float* v, float* result, int heads, int length, int dim) {
    std::vector<float> weight(length);
    const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
    for (int head = 0; head < heads; ++head) {
        const long base = static_cast<long>(head) * length * dim;
        for (int i = 0; i < length; ++i) {
            const float* query = q + base + static_cast<long>(i) * dim;
            float* out = result + base + static_cast<long>(i) * dim;
            float top = -INFINITY;
            for (int j = 0; j < length; ++j) {
                const float* key = k + base + static_cast<long>(j) * dim;
                float sum = 0.0f;
                for (int d = 0; d < dim; ++d) {
                    sum += query[d] * key[d];
                }
                weight[j] = sum * scale;
                top = std::max(top, weight[j]);
            }
            float total = 0.0f;
            for (int j = 0; j < length; ++j) {
                weight[j] = std::exp(weight[j] - top);
                total += weight[j];
            }
            std::fill(out, out + dim, 0.0f);
            for (int j = 0; j < length; ++j) {
                const float* value = v + base + static_cast<long>(j) * dim;
                const float share = weight[j] / total;
                for (int d = 0; d < dim; ++d) {
                    out[d] += share * value[d];
                }
            }
        }
    }
}

// Row-major C = A * B for each matrix of a contiguous batch.
extern "C" void batched_matmul(const float* a, const float* b, float* c, int batch, int m, int n, int k) {
    for (int index = 0; index < batch; ++index) {
        const float* left = a + static_cast<long>(index) * m * k;
        const float* right = b + static_cast<long>(index) * k * n;
        float* out = c + static_cast<long>(index) * m * n;
        for (int row = 0; row < m; ++row) {
            for (int column = 0; column < n; ++column) {
                out[row * n + column] = 0.0f;
            }
            for (int inner = 0; inner < k; ++inner) {
                const float factor = left[row * k + inner];
                for (int column = 0; column < n; ++column) {
                    out[row * n + column] += factor * right[inner * n + column];
                }
            }
        }
    }
}

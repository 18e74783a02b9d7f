// Row-major C = A * B in the loop order that streams rows of B.
extern "C" void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    for (int row = 0; row < m; ++row) {
        float* out = c + static_cast<long>(row) * n;
        for (int column = 0; column < n; ++column) {
            out[column] = 0.0f;
        }
        for (int inner = 0; inner < k; ++inner) {
            const float factor = a[static_cast<long>(row) * k + inner];
            const float* line = b + static_cast<long>(inner) * n;
            for (int column = 0; column < n; ++column) {
                out[column] += factor * line[column];
            }
        }
    }
}

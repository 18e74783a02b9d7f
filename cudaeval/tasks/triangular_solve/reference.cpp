// Forward substitution; row-major n x n lower triangle (what stands above it is not read), row-major n x m B and X.
extern "C" void triangular_solve(const float* lower, const float* b, float* x, int n, int m) {
    for (int row = 0; row < n; ++row) {
        const float* factors = lower + static_cast<long>(row) * n;
        float* out = x + static_cast<long>(row) * m;
        for (int column = 0; column < m; ++column) {
            out[column] = b[static_cast<long>(row) * m + column];
        }
        for (int k = 0; k < row; ++k) {
            const float* solved = x + static_cast<long>(k) * m;
            for (int column = 0; column < m; ++column) {
                out[column] -= factors[k] * solved[column];
            }
        }
        for (int column = 0; column < m; ++column) {
            out[column] /= factors[row];
        }
    }
}

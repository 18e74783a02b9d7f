// Row-major C (rows x n) = A * B; B is columns x n. Rows of A may be empty.
extern "C" void spmm_csr(const int* row_start, const int* column, const float* value, const float* b, float* c, int rows, int columns,
                         int nnz, int n) {
    (void)columns;
    (void)nnz;
    for (int row = 0; row < rows; ++row) {
        float* out = c + static_cast<long>(row) * n;
        for (int j = 0; j < n; ++j) {
            out[j] = 0.0f;
        }
        for (int entry = row_start[row]; entry < row_start[row + 1]; ++entry) {
            const float factor = value[entry];
            const float* line = b + static_cast<long>(column[entry]) * n;
            for (int j = 0; j < n; ++j) {
                out[j] += factor * line[j];
            }
        }
    }
}

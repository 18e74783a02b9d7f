// y[row] = sum of value * x[column] over the row's entries; rows may be empty.
extern "C" void csr_spmv(const int* row_start, const int* column, const float* value, const float* x, float* y,
                         int rows, int columns, int nnz) {
    (void)columns;
    (void)nnz;
    for (int row = 0; row < rows; ++row) {
        double sum = 0.0;
        for (int entry = row_start[row]; entry < row_start[row + 1]; ++entry) {
            sum += static_cast<double>(value[entry]) * x[column[entry]];
        }
        y[row] = static_cast<float>(sum);
    }
}

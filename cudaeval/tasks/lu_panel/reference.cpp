// Row-major rows x columns panel with 1 <= columns <= 64 and columns <= rows; L below the diagonal (unit), U on and above.
extern "C" void lu_panel(float* a, int rows, int columns) {
    for (int row = 1; row < rows; ++row) {
        float* line = a + static_cast<long>(row) * columns;
        for (int k = 0; k < columns && k < row; ++k) {
            const float* pivot = a + static_cast<long>(k) * columns;
            const float factor = line[k] / pivot[k];
            line[k] = factor;
            for (int column = k + 1; column < columns; ++column) {
                line[column] -= factor * pivot[column];
            }
        }
    }
}

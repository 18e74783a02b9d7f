// The first position of the row's maximum.
extern "C" void argmax_rows(const float* x, int* index, int rows, int columns) {
    for (int row = 0; row < rows; ++row) {
        const float* line = x + static_cast<long>(row) * columns;
        int best = 0;
        for (int column = 1; column < columns; ++column) {
            if (line[column] > line[best]) {
                best = column;
            }
        }
        index[row] = best;
    }
}

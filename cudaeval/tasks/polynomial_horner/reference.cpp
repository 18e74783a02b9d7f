extern "C" void polynomial_horner(const float* x, const float* coefficients, float* y, int n) {
    for (int i = 0; i < n; i++) {
        float v = coefficients[7];
        for (int k = 6; k >= 0; k--) {
            v = v * x[i] + coefficients[k];
        }
        y[i] = v;
    }
}

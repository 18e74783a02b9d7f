extern "C" void dot_product(const float* x, const float* y, float* result, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        sum += static_cast<double>(x[i]) * y[i];
    }
    result[0] = static_cast<float>(sum);
}

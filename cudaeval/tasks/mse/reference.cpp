extern "C" void mse(const float* prediction, const float* target, float* loss, int n) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) {
        const double difference = static_cast<double>(prediction[i]) - target[i];
        sum += difference * difference;
    }
    loss[0] = static_cast<float>(sum / n);
}

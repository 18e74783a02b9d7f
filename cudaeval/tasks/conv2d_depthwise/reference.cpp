// Each channel has its own 3x3 filter; image [batch][channels][height][width], border of zeros.
extern "C" void conv2d_depthwise(const float* image, const float* weight, float* result, int batch, int channels, int height, int width) {
    for (int plane = 0; plane < batch * channels; ++plane) {
        const float* source = image + static_cast<long>(plane) * height * width;
        const float* filter = weight + plane % channels * 9;
        for (int y = 0; y < height; ++y) {
            for (int x = 0; x < width; ++x) {
                float sum = 0.0f;
                for (int ky = 0; ky < 3; ++ky) {
                    for (int kx = 0; kx < 3; ++kx) {
                        const int sy = y + ky - 1;
                        const int sx = x + kx - 1;
                        if (sy >= 0 && sy < height && sx >= 0 && sx < width) {
                            sum += source[static_cast<long>(sy) * width + sx] * filter[ky * 3 + kx];
                        }
                    }
                }
                result[(static_cast<long>(plane) * height + y) * width + x] = sum;
            }
        }
    }
}

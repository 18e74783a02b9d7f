// out = centre * in + side * (sum of the six neighbours); boundary points are copied.
extern "C" void stencil3d_7pt(const float* in, float* out, float centre, float side, int nx, int ny, int nz) {
    const long plane = static_cast<long>(nx) * ny;
    for (int z = 0; z < nz; ++z) {
        for (int y = 0; y < ny; ++y) {
            for (int x = 0; x < nx; ++x) {
                const long i = z * plane + static_cast<long>(y) * nx + x;
                if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) {
                    out[i] = in[i];
                } else {
                    out[i] = centre * in[i]
                             + side * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - plane] + in[i + plane]);
                }
            }
        }
    }
}

#include <cmath>

// body holds x, y, z, mass; acceleration x, y, z. A body acts on itself with zero force (softened).
extern "C" void nbody_forces(const float* body, float* acceleration, float softening, int n) {
    for (int i = 0; i < n; ++i) {
        double ax = 0.0;
        double ay = 0.0;
        double az = 0.0;
        for (int j = 0; j < n; ++j) {
            const float dx = body[4 * j] - body[4 * i];
            const float dy = body[4 * j + 1] - body[4 * i + 1];
            const float dz = body[4 * j + 2] - body[4 * i + 2];
            const float square = dx * dx + dy * dy + dz * dz + softening;
            const float inverse = 1.0f / std::sqrt(square);
            const float factor = body[4 * j + 3] * inverse * inverse * inverse;
            ax += factor * dx;
            ay += factor * dy;
            az += factor * dz;
        }
        acceleration[3 * i] = static_cast<float>(ax);
        acceleration[3 * i + 1] = static_cast<float>(ay);
        acceleration[3 * i + 2] = static_cast<float>(az);
    }
}

// CUDA C++ for a C++ compiler: everything that a candidate sees on the CPU level. Precompiled, and included before its text.
#pragma once
#include <algorithm>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>
#include <math.h>
#include <stdlib.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>
#include <math_constants.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <regraph/qualifiers.h>
#include <regraph/interface.h>
#include <regraph/launch.h>
#include <regraph/warp.h>
#include <regraph/atomics.h>
#include <regraph/math.h>
#include <regraph/memory.h>
#include <regraph/half.h>
#include <regraph/host.h>
// For the candidate only: NVIDIA's headers would offer device code that no C++ compiler reads.
#define __CUDACC__ 1

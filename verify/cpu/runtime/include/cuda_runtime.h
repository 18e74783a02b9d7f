// What a candidate's #include <cuda_runtime.h> finds on the CPU level.
#pragma once
#include <regraph_cuda.h>

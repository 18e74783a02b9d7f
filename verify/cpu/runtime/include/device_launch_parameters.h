// What a candidate's #include <device_launch_parameters.h> finds on the CPU level.
#pragma once
#include <regraph_cuda.h>

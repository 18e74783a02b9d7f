// Part of the groups that this level offers.
#pragma once
#include "../cooperative_groups.h"

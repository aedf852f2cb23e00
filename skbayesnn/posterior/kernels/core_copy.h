/* Included by core.c for every set of instructions, with its name SET, the BYTES of a vector and TILE
   defined: the loops, first in single and then in double precision. */

#define ISA JOIN(single, SET)
#define SINGLE 1
#define LANES (BYTES / 4)
#include "core_rows.h"
#include "core_marginal.h"
#include "core_factors.h"

#undef ISA
#undef SINGLE
#undef LANES
#define ISA SET
#define SINGLE 0
#define LANES (BYTES / 8)
#include "core_rows.h"
#include "core_marginal.h"
#include "core_factors.h"
#include "core_loops.h"
#include "core_positions.h"
#include "core_moves.h"

#undef ISA
#undef SINGLE
#undef LANES
#undef SET
#undef BYTES
#undef TILE

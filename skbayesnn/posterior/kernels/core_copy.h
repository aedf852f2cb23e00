/* Included by core.c for every set of instructions, with its name SET, the DOUBLES and SINGLES of a
   vector and TILE defined: the loops, first in single and then in double precision. */

#define ISA JOIN(single, SET)
#define SINGLE 1
#define LANES SINGLES
#include "core_rows.h"
#include "core_marginal.h"

#undef ISA
#undef SINGLE
#undef LANES
#define ISA SET
#define SINGLE 0
#define LANES DOUBLES
#include "core_rows.h"
#include "core_marginal.h"
#include "core_loops.h"
#include "core_positions.h"

#undef ISA
#undef SINGLE
#undef LANES
#undef SET
#undef DOUBLES
#undef SINGLES
#undef TILE

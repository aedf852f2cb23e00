/* Included by core.c for every set of instructions, with its name SET, the BYTES of a vector and TILE
   defined: the loops, first in single and then in double precision. */

#define ISA JOIN(single, SET)
#define SINGLE 1
#define LANES (BYTES / 4)
#include "core_rows.h"
#include "core_marginal.h"
#include "core_factors.h"
#include "core_force.h"
#include "core_end.h"

#define ISA SET
#define SINGLE 0
#define LANES (BYTES / 8)
#include "core_rows.h"
#include "core_marginal.h"
#include "core_factors.h"
#include "core_loops.h"
#include "core_positions.h"
#include "core_moves.h"
#include "core_end.h"

#undef SET
#undef BYTES
#undef TILE

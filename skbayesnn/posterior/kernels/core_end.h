/* Included by core_copy.h at the end of every copy of the loops. */

#undef ISA
#undef SINGLE
#undef LANES
#undef REAL
#undef INTEGER
#undef DATA
#undef MOST_EXP
#undef SIGN
#undef V
#undef I
#undef Rows
#undef Shallow

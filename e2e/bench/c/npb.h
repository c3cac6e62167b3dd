/* What the NAS kernels in this folder share. They are the programs of examples/
   in C and MPI, with the same division of data, the same messages and the same
   inner loops, to compare with. Build and run:

       mpicc -std=c99 -O3 -o cg cg.c -lm && mpirun -n 2 ./cg S

   Each prints one line of name=value pairs; times are in seconds, each the
   longest of any rank. The exit status is 1 when the verification fails. */

#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static double npb_start, npb_messages, npb_from;

/* NPB's generator x -> 5^13 x mod 2^46; the state is *x. */
static const uint64_t npb_seed = 314159265, npb_multiplier = 1220703125,
                      npb_mask = ((uint64_t)1 << 46) - 1;

static inline double npb_random(uint64_t *x) {
  *x = *x * npb_multiplier & npb_mask;
  return (double)(int64_t)*x * 0x1p-46;
}

/* npb_skip returns the state n numbers after x. */
static inline uint64_t npb_skip(uint64_t x, uint64_t n) {
  uint64_t power = 1, square = npb_multiplier;
  for (; n > 0; n /= 2) {
    if (n & 1) power *= square;
    square *= square;
  }
  return x * power & npb_mask;
}

/* npb_alloc returns zeroed memory; it does not return without. */
static inline void *npb_alloc(size_t n, size_t size) {
  void *p = calloc(n ? n : 1, size);
  if (!p) {
    fprintf(stderr, "no memory for %zu elements\n", n);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return p;
}

/* npb_init returns which of the classes, which are one letter each, the
   arguments name. */
static inline int npb_init(int argc, char **argv, const char *classes) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char *at = argc == 2 && strlen(argv[1]) == 1 ? strchr(classes, argv[1][0]) : NULL;
  if (!at) {
    if (rank == 0) fprintf(stderr, "usage: %s CLASS, one of %s\n", argv[0], classes);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return (int)(at - classes);
}

/* npb_need_power_of_two ends the program unless ranks is one, of at most limit. */
static inline void npb_need_power_of_two(int limit) {
  if (ranks & (ranks - 1) || ranks > limit) {
    if (rank == 0) fprintf(stderr, "a power of two of ranks, at most %d, not %d\n", limit, ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

/* npb_begin starts the clock at all ranks together. */
static inline void npb_begin(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  npb_messages = 0;
  npb_start = MPI_Wtime();
}

/* What is between these two counts as messages. */
static inline void npb_enter(void) { npb_from = MPI_Wtime(); }
static inline void npb_leave(void) { npb_messages += MPI_Wtime() - npb_from; }

/* npb_seconds returns the time since npb_begin. */
static inline double npb_seconds(void) { return MPI_Wtime() - npb_start; }

/* npb_end reports, and ends the program. seconds is what npb_seconds said at the
   end of what is timed; verified and operations count at rank 0. */
static inline int npb_end(const char *name, char class, double seconds, double operations, int verified) {
  double mine[3] = {seconds, npb_messages, seconds - npb_messages}, t[3];
  MPI_Reduce(mine, t, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("kernel=%s class=%c ranks=%d seconds=%.6f messages=%.6f computing=%.6f mops=%.2f verified=%s\n", name, class,
           ranks, t[0], t[1], t[2], operations / 1e6 / t[0], verified ? "yes" : "no");
  MPI_Finalize();
  return rank == 0 && !verified;
}

/* npb_near tells whether the relative error of got is at most epsilon. */
static inline int npb_near(double got, double want, double epsilon) { return fabs((got - want) / want) <= epsilon; }

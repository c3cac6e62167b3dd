/* The stencil of examples/heat with one rank: the same plate, steps and result. It prints
   a line as the NAS kernels do. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

enum { SIDE = 127, WIDTH = SIDE + 2, CHECK_EVERY = 10 };
static const double hot = 100, tolerance = 1e-3;

static double plates[2][WIDTH * WIDTH];

/* step computes the temperatures after old and returns the greatest change. */
static double step(const double *restrict old, double *restrict next) {
  double change = 0;
  for (int row = 1; row <= SIDE; row++)
    for (int i = row * WIDTH + 1; i <= row * WIDTH + SIDE; i++) {
      double t = (old[i - WIDTH] + old[i + WIDTH] + old[i - 1] + old[i + 1]) / 4;
      double d = fabs(t - old[i]);
      if (d > change) change = d;
      next[i] = t;
    }
  return change;
}

int main(void) {
  double *old = plates[0], *next = plates[1], change;
  for (int i = 1; i <= SIDE; i++) old[i] = next[i] = hot;
  double start = MPI_Wtime();
  int steps = 0;
  do {
    change = step(old, next);
    double *other = old;
    old = next, next = other;
  } while (++steps % CHECK_EVERY != 0 || change > tolerance);
  double seconds = MPI_Wtime() - start;
  printf("kernel=heat seconds=%.6f steps=%d centre=%.2f\n", seconds, steps, old[(SIDE / 2 + 1) * WIDTH + SIDE / 2 + 1]);
  return 0;
}

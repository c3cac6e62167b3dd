/* NAS EP: see examples/ep. */
#include "npb.h"

enum { BATCH = 1 << 16, ANNULI = 10 };

static const struct { int bits; double x, y; } classes[] = {
    {24, -3.247834652034740e3, -6.958407078382297e3},
    {25, -2.863319731645753e3, -6.320053679109499e3},
    {28, -4.295875165629892e3, -1.580732573678431e4},
    {30, 4.033815542441498e4, -2.660669192809235e4},
};

/* batch adds the k-th batch of pairs to the counts q, and puts its sums into s. */
static void batch(int64_t k, int64_t q[ANNULI], double s[2]) {
  uint64_t state = npb_skip(271828183, (uint64_t)k * 2 * BATCH);
  s[0] = s[1] = 0;
  for (int i = 0; i < BATCH; i++) {
    double x = 2 * npb_random(&state) - 1, y = 2 * npb_random(&state) - 1;
    double t = x * x + y * y;
    if (t > 1) continue;
    double f = sqrt(-2 * log(t) / t);
    x *= f;
    y *= f;
    int a = (int)fabs(x), b = (int)fabs(y);
    q[a > b ? a : b]++;
    s[0] += x;
    s[1] += y;
  }
}

int main(int argc, char **argv) {
  const char *names = "SWAB";
  int c = npb_init(argc, argv, names);
  int64_t batches = (int64_t)1 << (classes[c].bits - 16);
  int64_t from = batches * rank / ranks, to = batches * (rank + 1) / ranks;
  int64_t q[ANNULI] = {0}, total[ANNULI];
  double *mine = npb_alloc(2 * (to - from), sizeof *mine);
  double *all = npb_alloc(2 * batches, sizeof *all);
  int *counts = npb_alloc(ranks, sizeof *counts), *displs = npb_alloc(ranks, sizeof *displs);
  for (int r = 0; r < ranks; r++) {
    displs[r] = (int)(2 * (batches * r / ranks));
    counts[r] = (int)(2 * (batches * (r + 1) / ranks)) - displs[r];
  }
  npb_begin();
  for (int64_t k = from; k < to; k++) batch(k, q, mine + 2 * (k - from));
  npb_enter();
  MPI_Gatherv(mine, counts[rank], MPI_DOUBLE, all, counts, displs, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Reduce(q, total, ANNULI, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  npb_leave();
  double x = 0, y = 0;
  for (int64_t k = 0; k < batches; k++) {
    x += all[2 * k];
    y += all[2 * k + 1];
  }
  double seconds = npb_seconds();
  int verified = npb_near(x, classes[c].x, 1e-8) && npb_near(y, classes[c].y, 1e-8);
  return npb_end("ep", names[c], seconds, ldexp(1, classes[c].bits + 1), verified);
}

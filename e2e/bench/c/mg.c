/* NAS MG: see examples/mg. Grids that have fewer points along an axis than there
   are ranks are not divided there; here 8 ranks are the most, so that there are
   none. */
#include "npb.h"

static const struct class { int log, iterations; double smoother[3], norm; } classes[] = {
    {5, 4, {-3.0 / 8, 1.0 / 32, -1.0 / 64}, 0.5307707005734e-4},
    {7, 4, {-3.0 / 8, 1.0 / 32, -1.0 / 64}, 0.6467329375339e-5},
    {8, 4, {-3.0 / 8, 1.0 / 32, -1.0 / 64}, 0.2433365309069e-5},
    {8, 20, {-3.0 / 17, 1.0 / 33, -1.0 / 61}, 0.1800564401355e-5},
};
static struct class c;

enum { X, Y, Z, CHARGES = 10 };
static int mesh[3] = {1, 1, 1}, place[3];

static void make_mesh(void) {
  int axis = Z;
  for (int n = ranks; n > 1; n /= 2, axis = (axis + 2) % 3) mesh[axis] *= 2;
  place[X] = rank % mesh[X], place[Y] = rank / mesh[X] % mesh[Y], place[Z] = rank / (mesh[X] * mesh[Y]);
}

static int neighbour(int axis, int steps) {
  int at[3] = {place[X], place[Y], place[Z]};
  at[axis] = (at[axis] + steps + mesh[axis]) % mesh[axis];
  return at[X] + mesh[X] * (at[Y] + mesh[Y] * at[Z]);
}

/* A field is a box of a grid with a layer around it. */
struct field { int size[3]; double *v; };

static struct field new_field(int points) {
  struct field f;
  for (int a = 0; a < 3; a++) f.size[a] = points / mesh[a] + 2;
  f.v = npb_alloc((size_t)f.size[X] * f.size[Y] * f.size[Z], sizeof *f.v);
  return f;
}

static inline double *at_row(const struct field *f, int j, int k) {
  return f->v + (size_t)f->size[X] * (j + (size_t)f->size[Y] * k);
}

static void clear(struct field *f) {
  memset(f->v, 0, (size_t)f->size[X] * f->size[Y] * f->size[Z] * sizeof *f->v);
}

/* copy_face copies the face at the given place on the axis to or from buf, and
   returns its length. */
static int copy_face(struct field *f, int axis, int at, double *buf, int to_field) {
  int nx = f->size[X], ny = f->size[Y], nz = f->size[Z], n = 0;
  if (axis == X) {
    for (int k = 1; k < nz - 1; k++)
      for (int j = 1; j < ny - 1; j++, n++) {
        double *p = at_row(f, j, k) + at;
        if (to_field) *p = buf[n];
        else buf[n] = *p;
      }
    return n;
  }
  int first = axis == Y ? 1 : at, last = axis == Y ? nz - 1 : at + 1, run = axis == Y ? nx : nx * ny;
  for (int k = first; k < last; k++, n += run) {
    double *p = at_row(f, axis == Y ? at : 0, k);
    if (to_field) memcpy(p, buf + n, run * sizeof *p);
    else memcpy(buf + n, p, run * sizeof *p);
  }
  return n;
}

static double *in[2], *out[2];

/* update fills the layer around f from the neighbours' boxes. */
static void update(struct field *f) {
  for (int axis = 0; axis < 3; axis++) {
    int inside = f->size[axis] - 2, n = copy_face(f, axis, 1, out[0], 0);
    copy_face(f, axis, inside, out[1], 0);
    if (mesh[axis] == 1) {
      copy_face(f, axis, 0, out[1], 1);
      copy_face(f, axis, inside + 1, out[0], 1);
      continue;
    }
    int lower = neighbour(axis, -1), upper = neighbour(axis, 1);
    MPI_Request q[4];
    npb_enter();
    MPI_Irecv(in[0], n, MPI_DOUBLE, lower, 2 * axis + 1, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(in[1], n, MPI_DOUBLE, upper, 2 * axis, MPI_COMM_WORLD, &q[1]);
    MPI_Isend(out[0], n, MPI_DOUBLE, lower, 2 * axis, MPI_COMM_WORLD, &q[2]);
    MPI_Isend(out[1], n, MPI_DOUBLE, upper, 2 * axis + 1, MPI_COMM_WORLD, &q[3]);
    MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
    npb_leave();
    copy_face(f, axis, 0, in[0], 1);
    copy_face(f, axis, inside + 1, in[1], 1);
  }
}

static double *near_row, *far_row;
static struct field v, u[10], r[10];

static void sum4(double *restrict s, const double *a, const double *b, const double *d, const double *e, int n) {
  for (int i = 0; i < n; i++) s[i] = a[i] + b[i] + d[i] + e[i];
}

static void around(const struct field *f, int j, int k) {
  sum4(near_row, at_row(f, j - 1, k), at_row(f, j + 1, k), at_row(f, j, k - 1), at_row(f, j, k + 1), f->size[X]);
  sum4(far_row, at_row(f, j - 1, k - 1), at_row(f, j + 1, k - 1), at_row(f, j - 1, k + 1), at_row(f, j + 1, k + 1), f->size[X]);
}

/* residual puts right - A from into to, which may be right. */
static void residual(struct field *from, struct field *right, struct field *to) {
  const double *near = near_row, *far = far_row;
  for (int k = 1; k < from->size[Z] - 1; k++)
    for (int j = 1; j < from->size[Y] - 1; j++) {
      around(from, j, k);
      const double *a = at_row(from, j, k), *b = at_row(right, j, k);
      double *t = at_row(to, j, k);
      for (int i = 1; i < from->size[X] - 1; i++)
        t[i] = b[i] + 8.0 / 3 * a[i] - 1.0 / 6 * (far[i] + near[i - 1] + near[i + 1]) - 1.0 / 12 * (far[i - 1] + far[i + 1]);
    }
  update(to);
}

/* smooth adds to "to" an approximation of the solution for the residual. */
static void smooth(struct field *from, struct field *to) {
  const double *near = near_row, *far = far_row, *s = c.smoother;
  for (int k = 1; k < to->size[Z] - 1; k++)
    for (int j = 1; j < to->size[Y] - 1; j++) {
      around(from, j, k);
      const double *a = at_row(from, j, k);
      double *restrict t = at_row(to, j, k);
      for (int i = 1; i < to->size[X] - 1; i++)
        t[i] += s[0] * a[i] + s[1] * (a[i - 1] + a[i + 1] + near[i]) + s[2] * (far[i] + near[i - 1] + near[i + 1]);
    }
  update(to);
}

static void restrict_(struct field *fine, struct field *coarse) {
  const double *near = near_row, *far = far_row;
  for (int k = 1; k < coarse->size[Z] - 1; k++)
    for (int j = 1; j < coarse->size[Y] - 1; j++) {
      around(fine, 2 * j, 2 * k);
      const double *f = at_row(fine, 2 * j, 2 * k);
      double *restrict t = at_row(coarse, j, k);
      for (int i = 1; i < coarse->size[X] - 1; i++)
        t[i] = 0.5 * f[2 * i] + 0.25 * (f[2 * i - 1] + f[2 * i + 1] + near[2 * i]) +
               0.125 * (near[2 * i - 1] + near[2 * i + 1] + far[2 * i]) + 0.0625 * (far[2 * i - 1] + far[2 * i + 1]);
    }
  update(coarse);
}

static void interpolate_row(double *restrict fine, const double *coarse, double weight, int n) {
  for (int i = 0; i < n - 1; i++) {
    fine[2 * i] += weight * coarse[i];
    fine[2 * i + 1] += weight / 2 * (coarse[i] + coarse[i + 1]);
  }
}

static void interpolate(struct field *coarse, struct field *fine) {
  int n = coarse->size[X];
  double *sum = near_row;
  for (int k = 0; k < coarse->size[Z] - 1; k++)
    for (int j = 0; j < coarse->size[Y] - 1; j++) {
      const double *here = at_row(coarse, j, k), *beside = at_row(coarse, j + 1, k);
      const double *behind = at_row(coarse, j, k + 1), *across = at_row(coarse, j + 1, k + 1);
      interpolate_row(at_row(fine, 2 * j, 2 * k), here, 1, n);
      for (int i = 0; i < n; i++) sum[i] = here[i] + beside[i];
      interpolate_row(at_row(fine, 2 * j + 1, 2 * k), sum, 0.5, n);
      for (int i = 0; i < n; i++) sum[i] = here[i] + behind[i];
      interpolate_row(at_row(fine, 2 * j, 2 * k + 1), sum, 0.5, n);
      sum4(sum, here, beside, behind, across, n);
      interpolate_row(at_row(fine, 2 * j + 1, 2 * k + 1), sum, 0.25, n);
    }
}

static void cycle(int k) {
  if (k < c.log) clear(&u[k]);
  if (k == 1) {
    smooth(&r[1], &u[1]);
    return;
  }
  restrict_(&r[k], &r[k - 1]);
  cycle(k - 1);
  interpolate(&u[k - 1], &u[k]);
  residual(&u[k], k == c.log ? &v : &r[k], &r[k]);
  smooth(&r[k], &u[k]);
}

static double norm(void) {
  struct field *f = &r[c.log];
  double sum = 0;
  for (int k = 1; k < f->size[Z] - 1; k++)
    for (int j = 1; j < f->size[Y] - 1; j++)
      for (int i = 1; i < f->size[X] - 1; i++) sum += at_row(f, j, k)[i] * at_row(f, j, k)[i];
  npb_enter();
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  npb_leave();
  return sqrt(sum / pow(1 << c.log, 3));
}

/* The points with the largest numbers, or with the smallest when sign is -1. */
struct candidate { double number; int64_t point; };

static int by_number(const void *a, const void *b) {
  double x = ((const struct candidate *)a)->number, y = ((const struct candidate *)b)->number;
  return (x < y) - (x > y);
}

static void put_charges(int sign) {
  int n = 1 << c.log, corner[3], found = 0;
  struct candidate best[CHARGES] = {{0, 0}}, *all = npb_alloc(ranks * CHARGES, sizeof *all);
  for (int a = 0; a < 3; a++) corner[a] = place[a] * (v.size[a] - 2);
  for (int k = 0; k < v.size[Z] - 2; k++)
    for (int j = 0; j < v.size[Y] - 2; j++) {
      int64_t first = corner[X] + (int64_t)n * (corner[Y] + j + (int64_t)n * (corner[Z] + k));
      uint64_t state = npb_skip(npb_seed, first);
      for (int i = 0; i < v.size[X] - 2; i++) {
        struct candidate e = {sign * npb_random(&state), first + i};
        if (found == CHARGES && e.number <= best[found - 1].number) continue;
        int at = found < CHARGES ? found++ : found - 1;
        for (; at > 0 && best[at - 1].number < e.number; at--) best[at] = best[at - 1];
        best[at] = e;
      }
    }
  MPI_Allgather(best, sizeof best, MPI_BYTE, all, sizeof best, MPI_BYTE, MPI_COMM_WORLD);
  qsort(all, ranks * CHARGES, sizeof *all, by_number);
  for (int i = 0; i < CHARGES; i++) {
    int64_t p = all[i].point, x = p % n - corner[X], y = p / n % n - corner[Y], z = p / n / n - corner[Z];
    if (x >= 0 && y >= 0 && z >= 0 && x < v.size[X] - 2 && y < v.size[Y] - 2 && z < v.size[Z] - 2)
      at_row(&v, (int)y + 1, (int)z + 1)[x + 1] = sign;
  }
  free(all);
}

static double solve(int iterations) {
  clear(&u[c.log]);
  residual(&u[c.log], &v, &r[c.log]);
  for (int i = 0; i < iterations; i++) {
    cycle(c.log);
    residual(&u[c.log], &v, &r[c.log]);
  }
  return norm();
}

int main(int argc, char **argv) {
  const char *names = "SWAB";
  int class = npb_init(argc, argv, names);
  npb_need_power_of_two(8);
  c = classes[class];
  make_mesh();
  int n = 1 << c.log;
  for (int k = 1; k <= c.log; k++) u[k] = new_field(1 << k), r[k] = new_field(1 << k);
  v = new_field(n);
  for (int e = 0; e < 2; e++) {
    in[e] = npb_alloc((size_t)(n + 2) * (n + 2), sizeof(double));
    out[e] = npb_alloc((size_t)(n + 2) * (n + 2), sizeof(double));
  }
  near_row = npb_alloc(n + 2, sizeof(double)), far_row = npb_alloc(n + 2, sizeof(double));
  put_charges(1);
  put_charges(-1);
  update(&v);
  solve(1);
  npb_begin();
  double got = solve(c.iterations);
  double seconds = npb_seconds();
  return npb_end("mg", names[class], seconds, 58.0 * c.iterations * n * n * n, npb_near(got, c.norm, 1e-8));
}

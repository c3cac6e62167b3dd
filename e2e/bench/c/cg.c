/* NAS CG: see examples/cg, which says how the ranks stand and who has what. */
#include "npb.h"

enum { STEPS = 25 };

static const struct class { int order, nonzeros, iterations; double shift, zeta; } classes[] = {
    {1400, 7, 15, 10, 8.5971775078648},
    {7000, 8, 15, 12, 10.362595087124},
    {14000, 11, 15, 20, 17.130235054029},
    {75000, 13, 75, 60, 22.712745482631},
};
static const double condition = 0.1;
static struct class c;

/* A span is the numbers from up to, not including, to. */
struct span { int from, to; };
static int length(struct span s) { return s.to - s.from; }
static int has(struct span s, int i) { return s.from <= i && i < s.to; }
static struct span part(struct span s, int i, int n) {
  struct span p = {s.from + (int)((int64_t)length(s) * i / n), s.from + (int)((int64_t)length(s) * (i + 1) / n)};
  return p;
}

/* The grid of ranks. */
static int grid_rows, grid_columns, row, column;
static struct span my_rows, my_columns; /* of the matrix */
static double *in;

static struct span row_span(int r) {
  struct span all = {0, c.order};
  return part(all, r, grid_rows);
}
static struct span column_span(int k) {
  int parts = grid_columns / grid_rows;
  return part(row_span(k / parts), k % parts, parts);
}
static int at(int r, int k) { return r * grid_columns + k; }

static void place(void) {
  int log = 0;
  while (1 << log < ranks) log++;
  grid_rows = 1 << log / 2, grid_columns = 1 << (log + 1) / 2;
  row = rank / grid_columns, column = rank % grid_columns;
  my_rows = row_span(row), my_columns = column_span(column);
  in = npb_alloc(length(my_rows), sizeof *in);
}

static void swap(const double *out, int n, int partner, double *to, int m) {
  MPI_Sendrecv(out, n, MPI_DOUBLE, partner, 0, to, m, MPI_DOUBLE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* sum adds up the n numbers x of the ranks of this row. */
static void sum(double *x, int n) {
  double theirs[2];
  npb_enter();
  for (int bit = 1; bit < grid_columns; bit *= 2) {
    swap(x, n, at(row, column ^ bit), theirs, n);
    for (int i = 0; i < n; i++) x[i] += theirs[i];
  }
  npb_leave();
}

static void add(double *restrict x, const double *restrict y, int n) {
  for (int i = 0; i < n; i++) x[i] += y[i];
}

/* transpose adds up the w of the ranks of this row and puts the piece that
   belongs with this rank's column into q. */
static void transpose(double *w, double *q) {
  npb_enter();
  struct span piece = {0, length(my_rows)};
  int bit = 1, parts = grid_columns / grid_rows;
  if (parts > 1) {
    struct span mine = part(piece, column % 2, 2), other = part(piece, 1 - column % 2, 2);
    swap(w + other.from, length(other), at(row, column ^ 1), in, length(mine));
    add(w + mine.from, in, length(mine));
    piece = mine;
    bit = 2;
  }
  for (; bit < grid_columns; bit *= 2) {
    swap(w + piece.from, length(piece), at(row, column ^ bit), in, length(piece));
    add(w + piece.from, in, length(piece));
  }
  int partner = at(column / parts, row * parts + column % parts);
  if (partner == rank)
    memcpy(q, w + piece.from, length(piece) * sizeof *q);
  else
    swap(w + piece.from, length(piece), partner, q, length(my_columns));
  npb_leave();
}

/* The block of the matrix, by rows. */
static int64_t *starts;
static int *columns;
static double *values;

/* The random vectors, each with one place more than nonzeros. */
static int *vector_length, *vector_at;
static double *vector_value;

static void random_vectors(void) {
  int room = c.nonzeros + 1, power = 1;
  uint64_t state = npb_seed;
  npb_random(&state);
  while (power < c.order) power *= 2;
  vector_length = npb_alloc(c.order, sizeof(int));
  vector_at = npb_alloc((size_t)c.order * room, sizeof(int));
  vector_value = npb_alloc((size_t)c.order * room, sizeof(double));
  for (int i = 0; i < c.order; i++) {
    int n = 0, k, *place = vector_at + (size_t)i * room;
    double *value = vector_value + (size_t)i * room;
    while (n < c.nonzeros) {
      double v = npb_random(&state);
      int p = (int)(npb_random(&state) * power);
      for (k = 0; k < n && place[k] != p; k++) {}
      if (p < c.order && k == n) place[n] = p, value[n++] = v;
    }
    for (k = 0; k < n && place[k] != i; k++) {}
    if (k == n) place[n++] = i;
    value[k] = 0.5;
    vector_length[i] = n;
  }
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* compact adds up terms of the same place, sorts rows and moves them together. */
static void compact(const int64_t *row_ends) {
  double *sums = npb_alloc(length(my_columns), sizeof *sums);
  char *seen = npb_alloc(length(my_columns), 1);
  int64_t end = 0;
  for (int i = 0; i < length(my_rows); i++) {
    int64_t from = starts[i];
    starts[i] = end;
    for (int64_t k = from; k < row_ends[i]; k++) {
      int j = columns[k];
      if (!seen[j]) seen[j] = 1, columns[end++] = j;
      sums[j] += values[k];
    }
    qsort(columns + starts[i], end - starts[i], sizeof *columns, compare);
    for (int64_t k = starts[i]; k < end; k++) {
      values[k] = sums[columns[k]];
      sums[columns[k]] = 0, seen[columns[k]] = 0;
    }
  }
  starts[length(my_rows)] = end;
  free(sums), free(seen);
}

static void make_matrix(void) {
  int room = c.nonzeros + 1, rows = length(my_rows);
  random_vectors();
  starts = npb_alloc(rows + 1, sizeof *starts);
  for (int i = 0; i < c.order; i++) {
    int *place = vector_at + (size_t)i * room, wide = 0;
    for (int k = 0; k < vector_length[i]; k++) wide += has(my_columns, place[k]);
    for (int k = 0; k < vector_length[i]; k++)
      if (has(my_rows, place[k])) starts[place[k] - my_rows.from + 1] += wide;
  }
  for (int i = 0; i < rows; i++) starts[i + 1] += starts[i] + 1;
  columns = npb_alloc(starts[rows], sizeof *columns), values = npb_alloc(starts[rows], sizeof *values);
  int64_t *ends = npb_alloc(rows, sizeof *ends);
  memcpy(ends, starts, rows * sizeof *ends);
  double scale = 1, ratio = pow(condition, 1.0 / c.order);
  for (int i = 0; i < c.order; i++, scale *= ratio) {
    int *place = vector_at + (size_t)i * room;
    double *value = vector_value + (size_t)i * room;
    for (int r = 0; r < vector_length[i]; r++)
      for (int k = 0; has(my_rows, place[r]) && k < vector_length[i]; k++)
        if (has(my_columns, place[k])) {
          int64_t e = ends[place[r] - my_rows.from]++;
          columns[e] = place[k] - my_columns.from, values[e] = value[r] * (scale * value[k]);
        }
    if (has(my_rows, i) && has(my_columns, i)) {
      int64_t e = ends[i - my_rows.from]++;
      columns[e] = i - my_columns.from, values[e] = condition - c.shift;
    }
  }
  compact(ends);
  free(ends);
}

static double *x, *z, *p, *q, *r, *w;

static void multiply(const double *v, double *to) {
  for (int i = 0; i < length(my_rows); i++) {
    double even = 0, odd = 0;
    int64_t k = starts[i], end = starts[i + 1];
    for (; k + 1 < end; k += 2) {
      even += values[k] * v[columns[k]];
      odd += values[k + 1] * v[columns[k + 1]];
    }
    if (k < end) even += values[k] * v[columns[k]];
    w[i] = even + odd;
  }
  transpose(w, to);
}

static double dot_here(const double *a, const double *b) {
  double s = 0;
  for (int i = 0; i < length(my_columns); i++) s += a[i] * b[i];
  return s;
}

static double dot(const double *a, const double *b) {
  double s = dot_here(a, b);
  sum(&s, 1);
  return s;
}

/* solve finds z with A z = x. */
static void solve(void) {
  int n = length(my_columns);
  memset(z, 0, n * sizeof *z);
  memcpy(r, x, n * sizeof *r);
  memcpy(p, x, n * sizeof *p);
  double rho = dot(r, r);
  for (int step = 0; step < STEPS; step++) {
    multiply(p, q);
    double alpha = rho / dot(p, q), before = rho;
    for (int i = 0; i < n; i++) {
      z[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    rho = dot(r, r);
    double beta = rho / before;
    for (int i = 0; i < n; i++) p[i] = r[i] + beta * p[i];
  }
  multiply(z, r);
  double s = 0;
  for (int i = 0; i < n; i++) s += (x[i] - r[i]) * (x[i] - r[i]);
  sum(&s, 1);
}

static double iterate(int iterations) {
  double zeta = 0;
  for (int i = 0; i < length(my_columns); i++) x[i] = 1;
  for (int k = 0; k < iterations; k++) {
    solve();
    double s[2] = {dot_here(x, z), dot_here(z, z)};
    sum(s, 2);
    zeta = c.shift + 1 / s[0];
    for (int i = 0; i < length(my_columns); i++) x[i] = 1 / sqrt(s[1]) * z[i];
  }
  return zeta;
}

int main(int argc, char **argv) {
  const char *names = "SWAB";
  int class = npb_init(argc, argv, names);
  npb_need_power_of_two(256);
  c = classes[class];
  place();
  make_matrix();
  double **vectors[] = {&x, &z, &p, &q, &r};
  for (int i = 0; i < 5; i++) *vectors[i] = npb_alloc(length(my_columns), sizeof(double));
  w = npb_alloc(length(my_rows), sizeof *w);
  iterate(1);
  npb_begin();
  double zeta = iterate(c.iterations);
  double seconds = npb_seconds(), entries = c.nonzeros * (c.nonzeros + 1);
  double operations = 2.0 * c.iterations * c.order * (3 + entries + STEPS * (5 + entries) + 3);
  return npb_end("cg", names[class], seconds, operations, npb_near(zeta, c.zeta, 1e-10));
}

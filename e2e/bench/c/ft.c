/* NAS FT: see examples/ft. */
#include "npb.h"

typedef struct { double re, im; } complex_;

static const struct class { int nx, ny, nz, iterations; complex_ checksums[20]; } classes[] = {
    {64, 64, 64, 6, {
      {5.546087004964e+02, 4.845363331978e+02}, {5.546385409189e+02, 4.865304269511e+02}, {5.546148406171e+02, 4.883910722336e+02},
      {5.545423607415e+02, 4.901273169046e+02}, {5.544255039624e+02, 4.917475857993e+02}, {5.542683411902e+02, 4.932597244941e+02}}},
    {128, 128, 32, 6, {
      {5.673612178944e+02, 5.293246849175e+02}, {5.631436885271e+02, 5.282149986629e+02}, {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02}, {5.530898991250e+02, 5.249400845633e+02}, {5.504159734538e+02, 5.239212247086e+02}}},
    {256, 256, 128, 6, {
      {5.046735008193e+02, 5.114047905510e+02}, {5.059412319734e+02, 5.098809666433e+02}, {5.069376896287e+02, 5.098144042213e+02},
      {5.077892868474e+02, 5.101336130759e+02}, {5.085233095391e+02, 5.104914655194e+02}, {5.091487099959e+02, 5.107917842803e+02}}},
    {512, 256, 256, 20, {
      {5.177643571579e+02, 5.077803458597e+02}, {5.154521291263e+02, 5.088249431599e+02}, {5.146409228649e+02, 5.096208912659e+02},
      {5.142378756213e+02, 5.101023387619e+02}, {5.139626667737e+02, 5.103976610617e+02}, {5.137423460082e+02, 5.105948019802e+02},
      {5.135547056878e+02, 5.107404165783e+02}, {5.133910925466e+02, 5.108576573661e+02}, {5.132470705390e+02, 5.109577278523e+02},
      {5.131197729984e+02, 5.110460304483e+02}, {5.130070319283e+02, 5.111252433800e+02}, {5.129070537032e+02, 5.111968077718e+02},
      {5.128182883502e+02, 5.112616233064e+02}, {5.127393733383e+02, 5.113203605551e+02}, {5.126691062020e+02, 5.113735928093e+02},
      {5.126064276004e+02, 5.114218460548e+02}, {5.125504076570e+02, 5.114656139760e+02}, {5.125002331720e+02, 5.115053595966e+02},
      {5.124551951846e+02, 5.115415130407e+02}, {5.124146770029e+02, 5.115744692211e+02}}},
};
static const struct class *c;

static inline complex_ add(complex_ a, complex_ b) { return (complex_){a.re + b.re, a.im + b.im}; }
static inline complex_ sub(complex_ a, complex_ b) { return (complex_){a.re - b.re, a.im - b.im}; }
static inline complex_ mul(complex_ a, complex_ b) {
  return (complex_){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

enum { WIDTH = 8, FORWARD = 0, BACKWARD = 1 };
static const double pi = 3.14159265358979323846;

/* The transform of lines of n elements, WIDTH of them side by side. */
struct transform { int n; complex_ *roots[2], *scratch[2]; };

static struct transform new_transform(int n) {
  struct transform t = {n, {0}, {0}};
  for (int i = 0; i < 2; i++) {
    t.roots[i] = npb_alloc(n / 2, sizeof(complex_));
    t.scratch[i] = npb_alloc((size_t)n * WIDTH, sizeof(complex_));
    for (int k = 0; k < n / 2; k++) {
      double angle = (i == FORWARD ? -2 : 2) * pi * k / n;
      t.roots[i][k] = (complex_){cos(angle), sin(angle)};
    }
  }
  return t;
}

static void radix2(const complex_ *in, complex_ *restrict out, const complex_ *roots, int n) {
  for (int p = 0; p < n / 2; p++)
    for (int i = 0; i < WIDTH; i++) {
      complex_ a = in[p * WIDTH + i], b = in[(p + n / 2) * WIDTH + i];
      out[2 * p * WIDTH + i] = add(a, b);
      out[(2 * p + 1) * WIDTH + i] = mul(roots[p], sub(a, b));
    }
}

static void butterfly(const complex_ *a, const complex_ *b, const complex_ *k, const complex_ *d, complex_ *restrict out, int n) {
  for (int i = 0; i < n; i++) {
    complex_ even = add(a[i], k[i]), odd = sub(a[i], k[i]), sum = add(b[i], d[i]), e = sub(b[i], d[i]);
    complex_ turned = {e.im, -e.re};
    out[i] = add(even, sum);
    out[n + i] = add(odd, turned);
    out[2 * n + i] = sub(even, sum);
    out[3 * n + i] = sub(odd, turned);
  }
}

static void twisted_butterfly(const complex_ *a, const complex_ *b, const complex_ *k, const complex_ *d,
                              complex_ *restrict out, int n, complex_ w, complex_ w2) {
  complex_ w3 = mul(w, w2);
  for (int i = 0; i < n; i++) {
    complex_ even = add(a[i], k[i]), odd = sub(a[i], k[i]), sum = add(b[i], d[i]), e = sub(b[i], d[i]);
    complex_ turned = {e.im, -e.re};
    out[i] = add(even, sum);
    out[n + i] = mul(w, add(odd, turned));
    out[2 * n + i] = mul(w2, sub(even, sum));
    out[3 * n + i] = mul(w3, sub(odd, turned));
  }
}

/* lines transforms scratch[0] and returns the scratch that has the result. */
static complex_ *lines(struct transform *t, int direction) {
  complex_ *in = t->scratch[0], *out = t->scratch[1], *swap;
  const complex_ *roots = t->roots[direction];
  int n = t->n, log = 0;
  while (1 << log < n) log++;
  if (log % 2) {
    radix2(in, out, roots, n);
    swap = in, in = out, out = swap;
    n /= 2;
  }
  for (; n > 1; n /= 4) {
    int run = t->n / n, quarter = t->n / 4 * WIDTH;
    for (int p = 0; p < n / 4; p++) {
      const complex_ *a = in + (size_t)p * run * WIDTH, *b = a + quarter, *k = b + quarter, *d = k + quarter;
      const complex_ *x = direction == FORWARD ? b : d, *y = direction == FORWARD ? d : b;
      complex_ *to = out + (size_t)4 * p * run * WIDTH;
      if (p == 0) butterfly(a, x, k, y, to, run * WIDTH);
      else twisted_butterfly(a, x, k, y, to, run * WIDTH, roots[p * run], roots[2 * p * run]);
    }
    swap = in, in = out, out = swap;
  }
  return in;
}

static void strided(struct transform *t, complex_ *data, size_t stride, int count, int direction) {
  for (; count > 0; count -= WIDTH, data += WIDTH) {
    for (int j = 0; j < t->n; j++) memcpy(t->scratch[0] + j * WIDTH, data + j * stride, WIDTH * sizeof *data);
    complex_ *out = lines(t, direction);
    for (int j = 0; j < t->n; j++) memcpy(data + j * stride, out + j * WIDTH, WIDTH * sizeof *data);
  }
}

static void contiguous(struct transform *t, complex_ *data, int count, int direction) {
  for (; count > 0; count -= WIDTH, data += (size_t)WIDTH * t->n) {
    for (int l = 0; l < WIDTH; l++)
      for (int j = 0; j < t->n; j++) t->scratch[0][j * WIDTH + l] = data[l * t->n + j];
    complex_ *out = lines(t, direction);
    for (int l = 0; l < WIDTH; l++)
      for (int j = 0; j < t->n; j++) data[l * t->n + j] = out[j * WIDTH + l];
  }
}

static struct transform along_x, along_y, along_z;
static double *decay[3];
static int ny, nz; /* of a slab of frequencies, of a slab of space */
static size_t points;
static complex_ *frequencies, *space, *parts;

static void exchange(const complex_ *from, complex_ *to) {
  int n = (int)(2 * (points / ranks));
  npb_enter();
  MPI_Alltoall(from, n, MPI_DOUBLE, to, n, MPI_DOUBLE, MPI_COMM_WORLD);
  npb_leave();
}

/* move copies between a slab in space and its parts for the ranks. */
static void move(int to_parts) {
  size_t n = (size_t)ny * c->nx;
  for (int q = 0; q < ranks; q++)
    for (int k = 0; k < nz; k++) {
      complex_ *p = parts + (q * (size_t)nz + k) * n, *s = space + (k * (size_t)ranks + q) * n;
      if (to_parts) memcpy(p, s, n * sizeof *p);
      else memcpy(s, p, n * sizeof *p);
    }
}

static void start(void) {
  int sides[3] = {c->nx, c->ny, c->nz};
  for (int a = 0; a < 3; a++)
    for (int i = 0; i < sides[a]; i++) {
      double k = (i + sides[a] / 2) % sides[a] - sides[a] / 2;
      decay[a][i] = exp(-4e-6 * pi * pi * k * k);
    }
  uint64_t state = npb_skip(npb_seed, 2 * points * rank);
  for (size_t i = 0; i < points; i++) {
    space[i].re = npb_random(&state);
    space[i].im = npb_random(&state);
  }
  for (int k = 0; k < nz; k++) {
    complex_ *plane = space + (size_t)k * c->nx * c->ny;
    contiguous(&along_x, plane, c->ny, FORWARD);
    strided(&along_y, plane, c->nx, c->nx, FORWARD);
  }
  move(1);
  exchange(parts, frequencies);
  strided(&along_z, frequencies, (size_t)ny * c->nx, ny * c->nx, FORWARD);
}

static void evolve(void) {
  size_t at = 0;
  for (int k = 0; k < c->nz; k++)
    for (int j = 0; j < ny; j++) {
      double factor = decay[1][rank * ny + j] * decay[2][k];
      for (int i = 0; i < c->nx; i++, at++) {
        double d = decay[0][i] * factor;
        complex_ v = {frequencies[at].re * d, frequencies[at].im * d};
        frequencies[at] = space[at] = v;
      }
    }
}

static void transform_back(void) {
  strided(&along_z, space, (size_t)ny * c->nx, ny * c->nx, BACKWARD);
  exchange(space, parts);
  move(0);
  for (int k = 0; k < nz; k++) {
    complex_ *plane = space + (size_t)k * c->nx * c->ny;
    strided(&along_y, plane, c->nx, c->nx, BACKWARD);
    contiguous(&along_x, plane, c->ny, BACKWARD);
  }
}

static complex_ checksum(void) {
  complex_ sum = {0, 0};
  for (int i = 1; i <= 1024; i++) {
    int x = i % c->nx, y = 3 * i % c->ny, z = 5 * i % c->nz - rank * nz;
    if (0 <= z && z < nz) sum = add(sum, space[x + c->nx * (y + (size_t)c->ny * z)]);
  }
  npb_enter();
  MPI_Allreduce(MPI_IN_PLACE, &sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  npb_leave();
  double all = (double)points * ranks;
  return (complex_){sum.re / all, sum.im / all};
}

int main(int argc, char **argv) {
  const char *names = "SWAB";
  int class = npb_init(argc, argv, names), verified = 1;
  c = &classes[class];
  npb_need_power_of_two(c->ny < c->nz ? c->ny : c->nz);
  ny = c->ny / ranks, nz = c->nz / ranks, points = (size_t)c->nx * c->ny * nz;
  along_x = new_transform(c->nx), along_y = new_transform(c->ny), along_z = new_transform(c->nz);
  for (int a = 0; a < 3; a++) decay[a] = npb_alloc(512, sizeof(double));
  frequencies = npb_alloc(points, sizeof(complex_)), space = npb_alloc(points, sizeof(complex_));
  parts = npb_alloc(points, sizeof(complex_));
  start();
  npb_begin();
  start();
  for (int i = 0; i < c->iterations; i++) {
    evolve();
    transform_back();
    complex_ got = checksum(), want = c->checksums[i], error = sub(got, want);
    if (!(hypot(error.re, error.im) / hypot(want.re, want.im) <= 1e-12)) verified = 0;
  }
  double seconds = npb_seconds(), n = (double)points * ranks;
  double operations = n * (14.8157 + 7.19641 * log(n) + (5.23518 + 7.21113 * log(n)) * c->iterations);
  return npb_end("ft", names[class], seconds, operations, verified);
}

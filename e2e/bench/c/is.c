/* NAS IS: see examples/is. */
#include "npb.h"

enum { RANKINGS = 10, TESTS = 5 };

static const struct class {
  int keys_log, max_log, buckets_log;
  struct { int key, rank, drift, offset; } tests[TESTS];
} classes[] = {
    {16, 11, 9, {{48427, 0, 1, 0}, {17148, 18, 1, 0}, {23627, 346, 1, 0}, {62548, 64917, -1, 0}, {4431, 65463, -1, 0}}},
    {20, 16, 10, {{357773, 1249, 1, -2}, {934767, 11698, 1, -2}, {875723, 1039987, -1, 0}, {898999, 1043896, -1, 0}, {404505, 1048018, -1, 0}}},
    {23, 19, 10, {{2112377, 104, 1, -1}, {662041, 17523, 1, -1}, {5336171, 123928, 1, -1}, {3642833, 8288932, -1, -1}, {4250760, 8388264, -1, -1}}},
    {25, 21, 10, {{41869, 33422937, -1, 0}, {812306, 10244, 1, 0}, {5102857, 59149, 1, 0}, {18232239, 33135281, -1, 0}, {26860214, 99, 1, 0}}},
};

static struct class c;
static int shift, buckets;
static int64_t from, to;       /* the keys that this rank makes */
static int32_t *keys, *grouped; /* them, and by bucket */
static int32_t *sizes, *totals, *next;
static int *ends, *send_counts, *send_displs, *recv_counts, *recv_displs;
static int32_t *received, *below;
static int received_count, received_room, below_room;
static int32_t low, width;  /* the keys of this rank's buckets: low <= key < low + width */
static int64_t lower;       /* how many keys lower ranks have */
static int32_t tests[TESTS];

static void make_keys(void) {
  uint64_t state = npb_skip(npb_seed, 4 * (uint64_t)from);
  for (int64_t i = 0; i < to - from; i++) {
    double sum = 0;
    for (int d = 0; d < 4; d++) sum += npb_random(&state);
    keys[i] = (int32_t)((1 << c.max_log) / 4 * sum);
  }
}

/* setup makes the keys and tells all ranks the test keys. */
static void setup(void) {
  int64_t all = (int64_t)1 << c.keys_log;
  shift = c.max_log - c.buckets_log;
  buckets = 1 << c.buckets_log;
  from = all * rank / ranks, to = all * (rank + 1) / ranks;
  keys = npb_alloc(to - from, sizeof *keys);
  grouped = npb_alloc(to - from, sizeof *grouped);
  sizes = npb_alloc(buckets, sizeof *sizes), totals = npb_alloc(buckets, sizeof *totals), next = npb_alloc(buckets, sizeof *next);
  ends = npb_alloc(ranks, sizeof *ends);
  send_counts = npb_alloc(ranks, sizeof(int)), send_displs = npb_alloc(ranks, sizeof(int));
  recv_counts = npb_alloc(ranks, sizeof(int)), recv_displs = npb_alloc(ranks, sizeof(int));
  make_keys();
  int32_t mine[TESTS] = {0};
  for (int k = 0; k < TESTS; k++)
    if (from <= c.tests[k].key && c.tests[k].key < to) mine[k] = keys[c.tests[k].key - from];
  MPI_Allreduce(mine, tests, TESTS, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
}

/* group counts the keys by bucket and copies them to grouped, bucket by bucket. */
static void group(void) {
  memset(sizes, 0, buckets * sizeof *sizes);
  for (int64_t i = 0; i < to - from; i++) sizes[keys[i] >> shift]++;
  int32_t at = 0;
  for (int b = 0; b < buckets; b++) next[b] = at, at += sizes[b];
  for (int64_t i = 0; i < to - from; i++) grouped[next[keys[i] >> shift]++] = keys[i];
}

/* assign gives every rank a run of buckets with about as many keys. */
static void assign(void) {
  int64_t all = (int64_t)1 << c.keys_log, sum = 0;
  int n = 0;
  for (int b = 0; b < buckets; b++) {
    sum += totals[b];
    while (n < ranks - 1 && sum * ranks >= (n + 1) * all) ends[n++] = b + 1;
  }
  while (n < ranks) ends[n++] = buckets;
  int first = 0;
  lower = 0;
  for (int r = 0; r < ranks; first = ends[r++]) {
    send_counts[r] = 0;
    for (int b = first; b < ends[r]; b++) {
      send_counts[r] += sizes[b];
      if (r < rank) lower += totals[b];
    }
    send_displs[r] = r ? send_displs[r - 1] + send_counts[r - 1] : 0;
    if (r == rank) low = first << shift, width = (ends[r] - first) << shift;
  }
}

/* room returns memory for n keys, the old one if it suffices. */
static int32_t *room(int32_t *old, int *have, int n) {
  if (*have >= n) return old;
  free(old);
  *have = n + n / 8;
  return npb_alloc(*have, sizeof *old);
}

static void exchange(void) {
  MPI_Alltoall(send_counts, 1, MPI_INT, recv_counts, 1, MPI_INT, MPI_COMM_WORLD);
  received_count = 0;
  for (int r = 0; r < ranks; r++) recv_displs[r] = received_count, received_count += recv_counts[r];
  received = room(received, &received_room, received_count);
  MPI_Alltoallv(grouped, send_counts, send_displs, MPI_INT32_T, received, recv_counts, recv_displs, MPI_INT32_T,
                MPI_COMM_WORLD);
}

static void rank_keys(int i) {
  if (rank == 0) keys[i] = i, keys[i + RANKINGS] = (1 << c.max_log) - i;
  group();
  npb_enter();
  MPI_Allreduce(sizes, totals, buckets, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
  npb_leave();
  assign();
  npb_enter();
  exchange();
  npb_leave();
  below = room(below, &below_room, width + 1);
  memset(below, 0, (width + 1) * sizeof *below);
  for (int k = 0; k < received_count; k++) below[received[k] - low + 1]++;
  int32_t sum = 0;
  for (int k = 0; k <= width; k++) sum += below[k], below[k] = sum;
}

static int check_tests(int i) {
  int wrong = 0;
  for (int k = 0; k < TESTS; k++) {
    int at = tests[k] - low;
    if (at < 0 || at >= width) continue;
    if (lower + below[at] != c.tests[k].rank + c.tests[k].drift * (i + c.tests[k].offset)) wrong++;
  }
  return wrong;
}

static int check_sorted(void) {
  int wrong = 0;
  int32_t *sorted = npb_alloc(received_count, sizeof *sorted), *highest = npb_alloc(ranks, sizeof *highest);
  for (int k = 0; k < received_count; k++) sorted[below[received[k] - low]++] = received[k];
  int32_t last = received_count ? sorted[received_count - 1] : -1, before = -1;
  MPI_Allgather(&last, 1, MPI_INT32_T, highest, 1, MPI_INT32_T, MPI_COMM_WORLD);
  for (int r = 0; r < rank; r++)
    if (highest[r] > before) before = highest[r];
  for (int k = 0; k < received_count; before = sorted[k++])
    if (sorted[k] < before) wrong++;
  if (rank == ranks - 1 && lower + received_count != (int64_t)1 << c.keys_log) wrong++;
  return wrong;
}

int main(int argc, char **argv) {
  const char *names = "SWAB";
  int class = npb_init(argc, argv, names), wrong = 0, all = 0;
  c = classes[class];
  setup();
  rank_keys(1);
  npb_begin();
  for (int i = 1; i <= RANKINGS; i++) {
    rank_keys(i);
    wrong += check_tests(i);
  }
  double seconds = npb_seconds();
  wrong += check_sorted();
  MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  return npb_end("is", names[class], seconds, ldexp(RANKINGS, c.keys_log), all == 0);
}

/* The measurements of ../prog in C, for MPI libraries to be compared with: the same
 * tests, the same items on the command line, the same JSON lines, the same
 * batches. ../internal/plan says what they mean.
 *
 *   mpirun -n 2 bench latency:1:2000 allreduce:1048576:100
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 5, MAXWINDOW = 64, TAG = 1 };

static int rank, size;

/* What an operation works on. */
struct job {
	int bytes, other, first, window;
	char *send, *recv;
	MPI_Request requests[2 * MAXWINDOW];
	MPI_Status statuses[2 * MAXWINDOW];
};

typedef void (*operation)(struct job *, int i);

static int min(int a, int b) { return a < b ? a : b; }
static int max(int a, int b) { return a > b ? a : b; }

static int by_value(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *times, int n) {
	qsort(times, n, sizeof *times, by_value);
	return times[n / 2];
}

static char *buffer(size_t bytes) {
	char *b = malloc(bytes > 0 ? bytes : 1);
	if (b == NULL) {
		fprintf(stderr, "bench: no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(b, 1, bytes); /* touched: unused pages would all be the one of zeros */
	return b;
}

/* Pairs. */

static void latency(struct job *j, int i) {
	(void)i;
	if (j->first)
		MPI_Send(j->send, j->bytes, MPI_BYTE, j->other, TAG, MPI_COMM_WORLD);
	MPI_Recv(j->send, j->bytes, MPI_BYTE, j->other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!j->first)
		MPI_Send(j->send, j->bytes, MPI_BYTE, j->other, TAG, MPI_COMM_WORLD);
}

static void start_sends(struct job *j, MPI_Request *requests) {
	for (int k = 0; k < j->window; k++)
		MPI_Isend(j->send + (size_t)k * j->bytes, j->bytes, MPI_BYTE, j->other, TAG, MPI_COMM_WORLD, requests + k);
}

static void start_receives(struct job *j, MPI_Request *requests) {
	for (int k = 0; k < j->window; k++)
		MPI_Irecv(j->recv + (size_t)k * j->bytes, j->bytes, MPI_BYTE, j->other, TAG, MPI_COMM_WORLD, requests + k);
}

static void one_way(struct job *j, int i) {
	char ack = 0;
	(void)i;
	if (j->first) {
		start_sends(j, j->requests);
		MPI_Waitall(j->window, j->requests, j->statuses);
		MPI_Recv(&ack, 1, MPI_BYTE, j->other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		start_receives(j, j->requests);
		MPI_Waitall(j->window, j->requests, j->statuses);
		MPI_Send(&ack, 1, MPI_BYTE, j->other, TAG, MPI_COMM_WORLD);
	}
}

static void both_ways(struct job *j, int i) {
	(void)i;
	start_receives(j, j->requests + j->window);
	start_sends(j, j->requests);
	MPI_Waitall(2 * j->window, j->requests, j->statuses);
}

/* Collectives; the root of the i-th is rank i mod n. */

static void barrier(struct job *j, int i) {
	(void)j, (void)i;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(struct job *j, int i) {
	MPI_Bcast(j->send, j->bytes, MPI_BYTE, i % size, MPI_COMM_WORLD);
}

static void reduce(struct job *j, int i) {
	MPI_Reduce(j->send, j->recv, j->bytes / 8, MPI_DOUBLE, MPI_SUM, i % size, MPI_COMM_WORLD);
}

static void allreduce(struct job *j, int i) {
	(void)i;
	MPI_Allreduce(j->send, j->recv, j->bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(struct job *j, int i) {
	(void)i;
	MPI_Allgather(j->send, j->bytes, MPI_BYTE, j->recv, j->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(struct job *j, int i) {
	(void)i;
	MPI_Alltoall(j->send, j->bytes, MPI_BYTE, j->recv, j->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* The seconds of n operations at the rank that needs longest. */
static double timed(struct job *j, operation op, int n) {
	double seconds, longest;
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	for (int i = 0; i < n; i++)
		op(j, i);
	seconds = MPI_Wtime() - start;
	MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return longest;
}

static double measure(struct job *j, operation op, int count) {
	double times[BATCHES];
	int batches = min(BATCHES, count), n = count / batches;
	timed(j, op, count / 10 + 1);
	for (int b = 0; b < batches; b++)
		times[b] = timed(j, op, n) / n;
	return median(times, batches);
}

/* Overlap of transfer and computing. */

static volatile unsigned long long sink;

static void compute(long long steps) {
	unsigned long long x = sink;
	for (long long i = 0; i < steps; i++)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	sink = x;
}

static long long calibrate(double seconds) {
	const long long steps = 1 << 22;
	double best = 1e9;
	for (int i = 0; i < 5; i++) {
		double start = MPI_Wtime();
		compute(steps);
		double took = MPI_Wtime() - start;
		best = took < best ? took : best;
	}
	return (long long)(seconds / best * steps);
}

/* The seconds of a transfer, or none, with so much work at rank 0. */
static double with_work(struct job *j, int sends, int transfer, long long work) {
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Barrier(MPI_COMM_WORLD);
	double start = MPI_Wtime();
	if (transfer && rank < 2) {
		if (sends == (rank == 0))
			MPI_Isend(j->send, j->bytes, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &request);
		else
			MPI_Irecv(j->send, j->bytes, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &request);
	}
	if (rank == 0)
		compute(work);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return MPI_Wtime() - start;
}

/* Transfers, computing and both at once take turns: see prog/overlap.go. */
static double overlap(struct job *j, int sends, int count, double *together) {
	double transfers[BATCHES], computings[BATCHES], both[BATCHES];
	count = min(count, BATCHES);
	for (int b = 0; b < count; b++)
		transfers[b] = with_work(j, sends, 1, 0);
	long long work = calibrate(3 * median(transfers, count));
	for (int b = 0; b < count; b++) {
		transfers[b] = with_work(j, sends, 1, 0);
		computings[b] = with_work(j, sends, 0, work);
		both[b] = with_work(j, sends, 1, work);
	}
	*together = median(both, count);
	return 1 - (*together - median(computings, count)) / median(transfers, count);
}

static const struct {
	const char *name;
	operation op;
	int windows, send_blocks, recv_blocks; /* in windows, in blocks of each rank */
} tests[] = {
	{"latency", latency, 0, 0, 0},     {"rate", one_way, 1, 0, 0},        {"bandwidth", one_way, 1, 0, 0},
	{"bidirectional", both_ways, 1, 0, 0}, {"barrier", barrier, 0, 0, 0}, {"bcast", bcast, 0, 0, 0},
	{"reduce", reduce, 0, 0, 0},       {"allreduce", allreduce, 0, 0, 0}, {"allgather", allgather, 0, 0, 1},
	{"alltoall", alltoall, 0, 1, 1},   {"overlapsend", NULL, 0, 0, 0},    {"overlaprecv", NULL, 0, 0, 0},
};

/* One item: TEST:BYTES:COUNT. */
static int item(const char *word) {
	char name[32];
	int bytes, count;
	if (sscanf(word, "%31[a-z]:%d:%d", name, &bytes, &count) != 3 || bytes < 0 || count < 1)
		return 0;
	for (size_t t = 0; t < sizeof tests / sizeof *tests; t++) {
		if (strcmp(name, tests[t].name) != 0)
			continue;
		struct job j = {.bytes = bytes, .other = rank ^ 1, .first = rank % 2 == 0};
		j.window = min(max((16 << 20) / max(bytes, 1), 2), MAXWINDOW);
		int messages = tests[t].windows ? j.window : 1;
		j.send = buffer((size_t)bytes * (tests[t].send_blocks ? size : messages));
		j.recv = buffer((size_t)bytes * (tests[t].recv_blocks ? size : messages));
		double seconds, part = 0;
		if (tests[t].op != NULL)
			seconds = measure(&j, tests[t].op, count);
		else
			part = overlap(&j, strcmp(name, "overlapsend") == 0, count, &seconds);
		if (tests[t].op == latency)
			seconds /= 2;
		if (tests[t].windows)
			seconds /= j.window;
		if (rank == 0 && tests[t].op != NULL)
			printf("{\"test\":\"%s\",\"bytes\":%d,\"seconds\":%.9g}\n", name, bytes, seconds);
		else if (rank == 0)
			printf("{\"test\":\"%s\",\"bytes\":%d,\"seconds\":%.9g,\"overlap\":%.9g}\n", name, bytes, seconds, part);
		free(j.send);
		free(j.recv);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 1; i < argc; i++) {
		if (!item(argv[i])) {
			fprintf(stderr, "bench: %s is not TEST:BYTES:COUNT\n", argv[i]);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
	}
	MPI_Finalize();
	return 0;
}

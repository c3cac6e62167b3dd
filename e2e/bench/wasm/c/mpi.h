/* MPI for one rank, so that the kernels of e2e/bench/c run where there is no MPI: what
   they need of it and no more. Whatever is sent arrives here. */
#ifndef MPI_H
#define MPI_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int MPI_Comm, MPI_Datatype, MPI_Op, MPI_Status;

/* A datatype is its size in bytes. */
enum { MPI_INT = 4, MPI_INT32_T = 4, MPI_INT64_T = 8, MPI_DOUBLE = 8 };
enum { MPI_COMM_WORLD, MPI_SUM, MPI_MAX };
#define MPI_STATUS_IGNORE ((MPI_Status *)0)

static inline void MPI_Init(int *argc, char ***argv) { (void)argc, (void)argv; }
static inline void MPI_Finalize(void) {}
static inline void MPI_Abort(MPI_Comm c, int status) { (void)c, exit(status); }
static inline void MPI_Comm_rank(MPI_Comm c, int *rank) { (void)c, *rank = 0; }
static inline void MPI_Comm_size(MPI_Comm c, int *size) { (void)c, *size = 1; }
static inline void MPI_Barrier(MPI_Comm c) { (void)c; }

static inline double MPI_Wtime(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void MPI_Reduce(const void *in, void *out, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c) {
  (void)o, (void)root, (void)c, memcpy(out, in, (size_t)n * t);
}
static inline void MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c) {
  MPI_Reduce(in, out, n, t, o, 0, c);
}
static inline void MPI_Allgather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, MPI_Comm c) {
  (void)m, (void)u, (void)c, memcpy(out, in, (size_t)n * t);
}
static inline void MPI_Alltoall(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, MPI_Comm c) {
  MPI_Allgather(in, n, t, out, m, u, c);
}
static inline void MPI_Gatherv(const void *in, int n, MPI_Datatype t, void *out, const int *ms, const int *at,
                               MPI_Datatype u, int root, MPI_Comm c) {
  (void)at, (void)root, MPI_Allgather(in, n, t, out, ms[0], u, c);
}
static inline void MPI_Alltoallv(const void *in, const int *ns, const int *from, MPI_Datatype t, void *out,
                                 const int *ms, const int *to, MPI_Datatype u, MPI_Comm c) {
  (void)from, (void)to, MPI_Allgather(in, ns[0], t, out, ms[0], u, c);
}
static inline void MPI_Sendrecv(const void *in, int n, MPI_Datatype t, int dest, int tag, void *out, int m,
                                MPI_Datatype u, int source, int tag2, MPI_Comm c, MPI_Status *s) {
  (void)dest, (void)tag, (void)source, (void)tag2, (void)s, MPI_Allgather(in, n, t, out, m, u, c);
}

#endif

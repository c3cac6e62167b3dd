// mpi.h is a few functions of the standard's, made of those that package hostcall documents: what
// a C program needs of them is no more than this. Without a C library, so that modules are small:
//
//	clang --target=wasm32-wasi -Os -nostdlib -Wl,--export=_start,-s -o sum.wasm sum.c
#include <stddef.h>
#include <stdint.h>

#define HOST(name) __attribute__((import_module("p2pmpi_1"), import_name(name)))
#define WASI(name) __attribute__((import_module("wasi_snapshot_preview1"), import_name(name)))

struct info { uint32_t rank, replica, ranks, replicated, places, places_size; };
struct status { int32_t source, tag; uint32_t size, cancelled; };
struct span { const void *at; size_t size; };

HOST("join") int32_t host_join(struct info *, uint32_t later);
HOST("flush") int32_t host_flush(uint32_t later);
HOST("finalize") int32_t host_finalize(uint32_t later);
HOST("close") void host_close(void);
HOST("send") int32_t host_send(uint32_t context, int32_t dest, int32_t tag, const void *, uint32_t size, uint32_t mode, uint32_t later);
HOST("recv") int32_t host_recv(uint32_t context, int32_t source, int32_t tag, void *, uint32_t size, struct status *, uint32_t later);
HOST("isend") int32_t host_isend(uint32_t context, int32_t dest, int32_t tag, const void *, uint32_t size, uint32_t mode, uint32_t *request);
HOST("wait") int32_t host_wait(uint32_t request, struct status *, uint32_t later);
WASI("fd_write") int32_t fd_write(int32_t fd, const struct span *, size_t n, size_t *written);
WASI("proc_exit") _Noreturn void proc_exit(int32_t status);

enum { MPI_ANY_SOURCE = -1, MPI_ANY_TAG = -1, MPI_SUCCESS = 0, MPI_ERR_TRUNCATE = 1 };
enum { world = 256 }; // a context: messages of one are never received in another
enum { block = 0 };   // no ticket: the call returns when it is done

static struct info me;

static int MPI_Init(void) { return host_join(&me, block); }
static int MPI_Send(const void *b, size_t n, int dest, int tag) { return host_send(world, dest, tag, b, n, 0, block); }
static int MPI_Isend(const void *b, size_t n, int dest, int tag, uint32_t *r) { return host_isend(world, dest, tag, b, n, 0, r); }
static int MPI_Recv(void *b, size_t n, int source, int tag, struct status *s) { return host_recv(world, source, tag, b, n, s, block); }
static int MPI_Wait(uint32_t *r, struct status *s) { return host_wait(*r, s, block); }

static int MPI_Finalize(void) {
	int code = host_flush(block);
	if (code == MPI_SUCCESS) code = host_finalize(block);
	host_close();
	return code;
}

static void check(int ok, int status) {
	if (!ok) proc_exit(status);
}

// Every rank sends itself a million messages, for which the host has a request each.
#include "mpi.h"

void _start(void) {
	check(MPI_Init() == MPI_SUCCESS, 1);
	uint64_t got;
	struct status s;
	for (uint64_t i = 0; i < 1000000; i++) {
		uint32_t request;
		check(MPI_Isend(&i, sizeof i, me.rank, 0, &request) == MPI_SUCCESS, 2);
		check(MPI_Recv(&got, sizeof got, me.rank, 0, &s) == MPI_SUCCESS && got == i, 3);
		check(MPI_Wait(&request, &s) == MPI_SUCCESS, 4);
	}
	check(MPI_Finalize() == MPI_SUCCESS, 5);
}

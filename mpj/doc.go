// Package mpj is message passing for Go programs that run on many machines: the
// interface of MPI, under its names, for slices of numbers and, with less
// speed, for any value.
//
//	func main() {
//		world, err := mpj.Init(context.Background())
//		if err != nil {
//			log.Fatal(err)
//		}
//		comm := world.Comm
//		sum := make([]float64, 1)
//		mine := []float64{work(comm.Rank(), comm.Size())}
//		if err := mpj.Reduce(comm, mine, sum, mpj.Sum, 0); err != nil {
//			log.Fatal(err)
//		}
//		if comm.Rank() == 0 {
//			fmt.Println(sum[0])
//		}
//		if err := world.Finalize(); err != nil {
//			log.Fatal(err)
//		}
//	}
//
// Every process of a job runs the same program. Init tells it which rank it
// is, Finalize says that it is done. p2prun starts the program as n ranks;
// started by hand it is a world of one, and RunLocal runs any number of ranks as goroutines.
//
// # What to use first
//
// The collectives: Bcast, Scatter and Gather, Reduce and Allreduce, Alltoall.
// Then Send and Recv between pairs of ranks, Sendrecv to exchange, and Isend
// and Irecv with Waitall to compute meanwhile. SendTyped and RecvTyped carry
// columns, halos and structs, by a Datatype that says what of a slice is data.
// SendValue, RecvValue and BcastValue carry any other value. AnySource is for
// farming out tasks whose length is not known.
//
// Functions take the communicator first; those of C that have a type argument
// are generic here. Their errors are all *Error and say which call failed on
// what; errors.Is finds the class. There is no context argument: the one given
// to Init ends everything that blocks. RecvContext, ProbeContext and
// Request.WaitContext give up earlier.
//
// Messages between two ranks in one communicator arrive in the order in which
// they were sent. Send returns when its buffer may be used again: at once with
// a short message, perhaps not before the receive with a long one. So ranks that
// send long messages to each other before they receive may wait for ever;
// Sendrecv and Isend do not. The buffer of Isend and Irecv belongs to the
// request until it is complete.
//
// # Communicators
//
// Messages of one communicator never meet those of another. A library that
// sends messages duplicates the communicator that it is given; a program that
// works in rows and columns splits it.
//
//	row, err := comm.Split(comm.Rank()/columns, 0)       // by color, then by key
//	near, err := comm.SplitType(mpj.SplitMachine, 0)     // who shares memory
//	grid, err := comm.CartCreate(dims, periods, true)    // a grid, with neighbours
//	both, err := mine.IntercommCreate(0, comm, other, 7) // two groups, face to face
//
// Ranks outside of the new communicator get nil, on which every call that can fail
// does so with ErrComm, as on one that was freed; Rank, Size and others that
// return no error panic. Errors name the rank in the communicator that the call
// was on.
//
// With P2PMPI_CHECK=1 in the environment the ranks compare which collective each
// calls, and with which arguments, before they go into it. When they differ, all
// get an error that names who calls what, where otherwise some would hang. And ranks
// that wait for each other for ever get ErrDeadlock, within a second or two,
// which says what each of them waits for. That needs one replica of each rank,
// and goroutines that wait in this package or for each other: while one computes,
// sleeps, reads a file or waits at a channel, its rank may still go on. Finalize
// then waits for all ranks. p2prun hands the variable to all ranks.
//
// # Several goroutines
//
// The package works as MPI does with MPI_THREAD_MULTIPLE: any goroutine may call
// anything at any time, and a call that waits lets the others go on. What MPI asks
// of threads it asks of goroutines here: collectives of one communicator, and
// the making of communicators of one communicator, have one order, the same at
// all ranks; goroutines that are to run independently have a communicator each.
// A request is waited for by one goroutine. With replicas there is more to
// observe, see below.
//
// # Collectives
//
// All ranks of a communicator call the same collectives in the same order, with
// the same root and operation, and lengths that fit each other. Where MPI has
// MPI_IN_PLACE, the buffer to send is nil. Names with an I in front do not
// wait: the operation goes on while the program computes, and has the buffers
// until the request is complete.
//
// Reductions combine in rank order along one fixed tree. So a floating-point
// sum has the same bits in every run with as many ranks, wherever they run. The
// algorithm is chosen by size, number and place of the ranks: on several machines
// or clusters of near ones small messages go by levels, once over each far link.
// The environment
// variable P2PMPI_COLL, the same at all ranks, overrides that:
// allreduce=ring,bcast=chain.
//
// When a collective fails at one rank, those that wait in it for that rank fail
// too, with an error that names the first rank and its reason; those that have
// what they need learn of it in a later collective, or at Finalize. The
// communicator has no further use for collectives that wait: they fail with the
// same reason. Messages go on, and Dup makes a communicator that is as good as new.
//
// # Replicas
//
// p2prun -r 2 runs every rank twice, on different machines, so that the job
// survives the loss of one. Programs need nothing for that but to be
// repeatable: with the same messages, a rank does the same. All that comes
// from this package is the same at all replicas, also what depends on timing:
// which message AnySource matched, what Test, Waitany and Iprobe said,
// Wtime. A program must not let what it sends, prints or writes depend on
//
//   - time: use Wtime, not package time;
//   - a random source of its own: use Rand, and RandomSeed for a seed that differs
//     from run to run;
//   - the order of ranging over a map: sort the keys;
//   - which goroutine comes first: give each a communicator of its own. Sends to
//     one rank in one communicator are for one goroutine at a time, and so are
//     AnySource receives and probes in one communicator, and in the whole process
//     Test*, Iprobe, Waitany, Waitsome and Wtime. Communicators may be made by
//     several goroutines, each of a communicator of its own;
//   - the machine: environment, host name, process number, NumCPU, addresses;
//   - Replica.
//
// A replica that sends something else than the others is found by the first such
// message, and the job says which rank, replica, peer and message that is. With
// three replicas or more the odd one is voted out, unless it was the master, whose
// message has been received. Else the job stops, or goes on with p2prun
// --on-divergence warn. How many messages there were, those of a rank to itself, and
// what was printed on standard output, is compared when replicas have ended.
//
// With --heal=on a replica that is lost is replaced while the job runs. The new one runs
// the program from its beginning, with the messages that its rank has received; a
// program that runs for long calls World.Checkpoint, so that it can go on from there.
//
// Not promised: that a message longer than its buffer is kept (ErrTruncate);
// that one of a rank which is lost with all its replicas arrives, since the
// job then ends.
//
// # Where things are
//
//	world, init, join, local  a process's membership of a job
//	checkpoint                where a new replica goes on
//	comm, create, identity    communicators, and how they get their contexts
//	group, intercomm, attribute, errhandler, error
//	pointtopoint, buffer, persistent, matched, cancel, request, value
//	datatype, typed, structtype, pack, element
//	collective, gather, allgather, alltoall, reduce, reducescatter, op, operation
//	topology, cart, cartorder, dims, graph, distgraph, neighbour, exchange
//	check, describe           what P2PMPI_CHECK compares
//	detector, deadlock        and whom it finds stuck
package mpj

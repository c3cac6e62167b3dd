// Package mpj provides message passing for Go programs that run on many machines. It offers the
// interface of MPI, under its names, for slices of numbers and, at lower speed, for any value.
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
// Every process of a job runs the same program. Init joins the job and returns a World, whose Comm
// reports the rank of the process; Finalize leaves the job. p2prun starts the program as n ranks. A
// program started by hand is a world of one rank, and RunLocal runs any number of ranks as
// goroutines.
//
// # What to use first
//
// Start with the collectives: Bcast, Scatter and Gather, Reduce and Allreduce, Alltoall. Then use
// Send and Recv between pairs of ranks, Sendrecv to exchange messages, and Isend and Irecv with
// Waitall to compute meanwhile. SendTyped and RecvTyped transfer columns, halos and structs, with a
// Datatype that describes the parts of a slice that are data. SendValue, RecvValue and BcastValue
// transfer any other value, and ReduceValue combines them. AnySource is for distributing tasks of
// unknown length.
//
// Functions take the communicator first; C functions with a datatype argument are generic here.
// Errors are of type *Error, and name the failed call and the argument or message concerned; use
// errors.Is to test for the class. Waitall and its kin return a *RequestsError, with an error for each
// request. Most functions take no context: when the context given to Init
// ends, every blocked call returns. RecvContext, ProbeContext and Request.WaitContext also take a
// context of their own.
//
// Messages between two ranks in one communicator arrive in the order in which they were sent. Send
// returns when its buffer may be reused: at once for a short message, but for a long message perhaps
// only after the matching receive. Ranks that send long messages to each other before they receive
// may therefore deadlock; Sendrecv and Isend avoid this. The buffer of Isend and Irecv belongs to
// the request until the request is complete.
//
// # Communicators
//
// Messages of one communicator are never received in another. A library that sends messages should
// duplicate the communicator that it is given; a program that works in rows and columns should
// split it.
//
//	row, err := comm.Split(comm.Rank()/columns, 0)       // by color, then by key
//	near, err := comm.SplitType(mpj.SplitMachine, 0)     // ranks that share memory
//	grid, err := comm.CartCreate(dims, periods, true)    // a Cartesian grid
//	both, err := mine.IntercommCreate(0, comm, other, 7) // an intercommunicator of two groups
//
// Ranks outside the new communicator get nil. Calls on nil or on a freed communicator fail with
// ErrComm; Rank, Size and other methods without an error result panic on nil. Errors name the rank
// in the communicator of the call.
//
// With P2PMPI_CHECK=1 in the environment, the ranks compare their collective calls and arguments
// before each collective. If they differ, all ranks get an error that names the calls and their
// ranks, instead of some ranks hanging. A reduction with an operation on larger items than it states
// fails, instead of having a wrong result. p2prun passes the variable to all ranks.
//
// The variable also turns on deadlock detection: ranks that wait for each other forever get
// ErrDeadlock within a second or two, with a description of the event that each waits for. Detection
// requires one replica per rank, and goroutines that wait in this package or for each other. While a
// goroutine computes, sleeps, reads a file or waits at a channel, its rank counts as running. With
// detection on, Finalize waits for all ranks.
//
// # Several goroutines
//
// The package behaves like MPI with MPI_THREAD_MULTIPLE: any goroutine may call any function at any
// time, and a call that waits does not block other goroutines. MPI's rules for threads apply to
// goroutines. All ranks call the collectives of a communicator, and create communicators from it, in
// the same order. Goroutines that run independently need one communicator each. Only one goroutine
// may wait for a request. Replicas add further rules; see below.
//
// # Collectives
//
// All ranks of a communicator call the same collectives in the same order, with the same root and
// operation, and with matching lengths. A nil send buffer has the meaning of MPI_IN_PLACE. Functions
// whose names begin with I are nonblocking: the operation proceeds while the program computes, and
// owns the buffers until the request is complete.
//
// Reductions combine in rank order along one fixed tree. A floating-point sum therefore has the same
// bits in every run with the same number of ranks, whatever their placement. Reductions split long
// vectors between items, which are single elements, groups of elements (Items), or items of a
// datatype (OpOf, AllreduceTyped). The package chooses the algorithm by the message size and by the
// number and location of the ranks. On several machines or clusters, small messages are sent by
// levels, once over each distant link. The environment variable P2PMPI_COLL, the same at all ranks,
// overrides the choice: allreduce=ring,bcast=chain.
//
// When a collective fails at one rank, the ranks that wait for that rank in the collective also
// fail, with an error that names the failed rank and the reason. Ranks that already have their
// results get the error in a later collective or in Finalize. Afterwards, blocking collectives on
// the communicator fail with the same reason. Point-to-point messages still work, and Dup creates a
// new communicator without the failure.
//
// # Replicas
//
// p2prun -r 2 runs every rank twice, on different machines, so that the job survives the loss of a
// machine. Programs only need to be repeatable: a rank that receives the same messages must act in
// the same way. All results of this package are the same at all replicas, including those that
// depend on timing: the message that AnySource matched, the results of Test, Waitany and Iprobe, and
// Wtime. The messages, output and files of a program must not depend on
//
//   - time: use Wtime, not package time;
//   - a private random source: use Rand, and RandomSeed for a seed that differs
//     between runs;
//   - map iteration order: sort the keys;
//   - goroutine scheduling: give each goroutine its own communicator. Only one goroutine at a time may
//     send to a given rank in one communicator, or use AnySource in receives and probes of one
//     communicator. In the whole process, only one goroutine at a time may call Test*, Iprobe,
//     Waitany, Waitsome and Wtime. Several goroutines may create communicators, each from a different one;
//   - the machine: environment, host name, process ID, NumCPU, addresses;
//   - Replica.
//
// A replica that diverges is found at the first message that differs; the job then reports the rank,
// replica, peer and message. With three or more replicas, the minority is voted out, unless it
// includes the master, whose message was already received. Otherwise the job stops, or continues
// with p2prun --on-divergence warn. When replicas end, the number of messages, the messages of a
// rank to itself, and the standard output are compared.
//
// With --heal=on, a lost replica is replaced while the job runs. The new replica runs the program
// from its beginning, with the messages that its rank has received. A long-running program should
// call World.Checkpoint, so that the new replica can start from there.
//
// A message that is longer than its buffer is lost (ErrTruncate). Messages of a rank that has lost
// all its replicas are not delivered, because the job then ends.
//
// # Source files
//
//	world, init, join, local  a process's membership of a job
//	checkpoint                state from which a new replica starts
//	comm, create              communicators
//	group, intercomm, attribute, errhandler, error
//	pointtopoint, buffer, persistent, matched, cancel, request, value
//	datatype, typed, structtype, pack, element
//	collective, gather, allgather, alltoall, operation
//	reduce, reducescatter, reducetyped, reducevalue, op, typedop, items
//	topology, cart, cartorder, dims, graph, distgraph, neighbour, exchange
//	check, describe           comparison of calls with P2PMPI_CHECK
//	divisible                 check of operations with P2PMPI_CHECK
//	detector, deadlock        deadlock detection with P2PMPI_CHECK
package mpj

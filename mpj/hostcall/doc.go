// Package hostcall provides the engine to a process that is a WebAssembly module, as functions of
// its host. Matching, protection and channels stay native; the module has handles. The package does
// not depend on a WebAssembly engine. Functions lists the functions with their signatures; the code
// that runs a module registers them and calls Process.Call.
//
// # The interface
//
// The module imports the functions from the module name Name, which contains the version of the
// interface. Functions may be added to a version, but never changed. All numbers are i32 unless
// stated otherwise. Pointers are offsets in the module's memory; structures are little-endian and
// aligned to 4 bytes.
//
// The functions are those of a matching engine: contexts separate messages, tags are arbitrary
// numbers, and ranks are world ranks. The module builds communicators, datatypes and collectives
// from them, as package mpj does, and as a C library with the interface of mpi.h can.
//
// Functions with a result named code return 0 for success, or
//
//	1 truncated     a message was longer than its buffer; the status describes it
//	2 replicated    not possible with replicas
//	3 closed        the engine is closed
//	4 notice        a collective has failed at another rank; see the engine's ErrNotice
//	5 other         error_text(buf, size) stores the text, and returns its length
//	-1 pending      see below
//
// A call with arguments that no correct module passes, such as a pointer outside its memory, ends
// the module with a Fault that names the argument.
//
// Functions whose last parameter is called later may block. If later is 0, they do. Otherwise later
// is a ticket chosen by the module: the call runs in the background and returns the code pending.
// The function next(timeout i64 in ns, event) returns 1 when such a call is done, and 0 after
// timeout; with 1, event is {ticket, code}. Only then are the call's results written. Until then
// its buffers belong to the host; those of a request belong to the host until a wait has reported
// the outcome.
//
//	status  {source, tag, size, cancelled}
//	part    {rank, buf, size, code, status}
//	info    {rank, replica, ranks, replicated, places, places_size}
//	records {standard output i64, standard error i64}
//	step    {what, bytes, size}
//
// Handle 0 stands for a completed request. Handles called bytes refer to contents that the host
// keeps until take(bytes, buf, size) has copied them. Such contents are the payload of recv_whole,
// the places of join ({machine, cluster} of each rank), the messages of unmatched ({context,
// source, tag, size}), and the module's state saved by checkpoint_end.
//
//	join(info, later) code                  finalize(later) code    close()
//	abort(code, text, size)                 fail()
//	send(context, dest, tag, buf, size, mode, later) code
//	isend(context, dest, tag, buf, size, mode, *request) code
//	recv(context, source, tag, buf, size, *status, later) code
//	irecv(context, source, tag, buf, size, *request) code
//	recv_whole(context, source, tag, *bytes, *status, later) code
//	sendrecv(context, dest, tag, buf, size, source, tag, buf, size, *status, later) code
//	swap(context, tag, dest, buf, size, source, buf, size, *status, later) code
//	exchange(context, tag, out parts, outs, in parts, ins, later) code
//	wait(request, *status, later) code      cancel(request) code
//	waitany(requests, n, *index, later) code
//	waitsome(requests, n, indices, *count, later) code
//	testany, testsome                       likewise
//	testall(requests, n, *done, later) code
//	wait_until(request, *done, later) code  until give_up(later)
//	probe_until(context, source, tag, *found, *status, later) code
//	begin() request                         finish(request)
//	probe(context, source, tag, *status, later) code
//	iprobe(context, source, tag, *found, *status, later) code
//	mprobe, improbe(context, source, tag, *message, *status, later) code
//	imrecv(message, buf, size, *request) code
//	choose(context, value i64, *i64, later) code
//	wtime(*f64, later) code                 random_seed(*i64, later) code
//	flush(later) code                       unmatched(*bytes, *size) code
//	forget(context)                         abandon(context)
//	printed(*records, later) code           skip(*records, later) code
//	checkpoint(*step, later) code           checkpoint_end(outcome, buf, size, *step, later) code
//	checkpoint_write(buf, size) code        checkpoint_read(buf, size) size
//
// checkpoint returns the next step of the module. In step 1 the module writes its program's state
// with checkpoint_write. In step 2 it reads the state with checkpoint_read, which returns 0 at the
// end and -1 after an error; bytes then holds the module's own state. checkpoint_end reports the
// outcome: 0 success, 1 failure, 2 success but no checkpoint is possible. Its buffer is the
// module's own state, returned in bytes later. The step is 0 when nothing is left to do, whether or
// not a checkpoint was made.
//
// A program begins with join, and ends with flush, finalize and close. A program without
// goroutines, such as one in C, needs neither tickets nor next: messages make progress in the host,
// whatever the module does. See e2e/testdata/mpi.h for an example.
//
// Each function does the same as the method of that name in package engine.
package hostcall

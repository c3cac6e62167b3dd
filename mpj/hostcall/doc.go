// Package hostcall is the engine of a process that is a WebAssembly module, as functions
// that its host offers it. Matching, protection and channels stay native; the module
// has handles. It knows no WebAssembly engine: Functions lists the functions with their
// signatures, and whoever runs a module registers them and calls Process.Call.
//
// # The interface
//
// The functions are imported from the module name Name, which has the interface's
// version: functions may be added to it, never changed. All numbers are i32, unless
// a function says otherwise; pointers are offsets in the module's memory, structures
// are little-endian and aligned to 4 bytes. The functions are those of a matching
// engine: contexts keep messages apart, tags are any number, ranks are those of the
// world; communicators, datatypes and collectives are made of them in the module, as
// package mpj does and a C library with the interface of mpi.h can.
//
// What returns a code says 0 for success, or
//
//	1 truncated     a message was longer than its buffer; the status describes it
//	2 replicated    not possible with replicas
//	3 closed        the engine is closed
//	4 news          a collective has failed elsewhere; see the engine's ErrNews
//	5 other         error_text(buf, size) says what, and returns its length
//	-1 pending      see below
//
// A call with arguments that no correct module makes, such as a pointer out of its
// memory, ends the module with a Fault that names it.
//
// Functions whose last parameter is called later may block. With later 0 they do. Else
// later is a ticket of the module's choice: the call is made beside the module, the
// code is pending, and next(patience i64 in ns, event) returns 1 when one such call is
// done: event is {ticket, code}. Only then is what the call writes written. Buffers
// belong to the host until then, those of a request until a wait has told
// what has come of it.
//
//	status  {source, tag, size, cancelled}
//	part    {rank, buf, size, code, status}
//	info    {rank, replica, ranks, replicated, places, places_size}
//	records {of output i64, of standard error i64}
//	step    {what, bytes, size}
//
// A handle of 0 stands for a request that is done. The handles called bytes are contents
// that the host keeps until take(bytes, buf, size) has copied them: the payload of
// recv_whole, the places of join ({machine, cluster} of each rank), the messages of
// unmatched ({context, source, tag, size}) and what a checkpoint_end has left.
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
// checkpoint says what the module has to do: with step 1 it writes its program's state by
// checkpoint_write, with 2 it reads it by checkpoint_read, of which 0 bytes are the end and -1
// an error, and takes the bytes, which are its own. checkpoint_end says how that went, 0 well, 1
// not, and 2 that it did and there is no checkpoint all the same; its buffer is what the module
// wants to find in bytes later. The step is then 0: the checkpoint is over.
//
// A program begins with join, and ends with flush, finalize and close. One that has no
// goroutines, such as one in C, needs neither tickets nor next: messages make progress in the
// host, whatever the module does. e2e/testdata/mpi.h is an example.
//
// Each does what the method of that name of package engine does.
package hostcall

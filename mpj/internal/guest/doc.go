// Package guest is the engine of a process that is a WebAssembly module: its methods
// are those of package engine, and call the engine of the host by the functions that
// package hostcall documents. It compiles for wasip1 only.
//
//	goroutine --- Recv ---> call --- recv(..., ticket) ---> host
//	                          |  <-- pending --------------
//	                          |      (other goroutines run)
//	                          +----- next(patience) ------>
//	                             <-- ticket, code ---------
//
// A module has one thread. Where a goroutine is the only one, its calls block in the
// host: that is the cheapest, and all that C and most programs need. Else the host
// makes the call beside the module, and when no goroutine can go on, one of them waits
// in the host for the first call to be done. A goroutine that sleeps without the engine,
// or a timer, is looked after every millisecond or so meanwhile.
//
// Buffers are used where they lie in the module's memory, which the host never moves; Go
// moves none either. Those of a call and of a Request that is under way are kept from being
// collected, whether the program has other references to them or not.
package guest

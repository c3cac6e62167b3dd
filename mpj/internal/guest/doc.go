// Package guest is the engine of a process that is a WebAssembly module. Its methods are those of
// package engine, and call the host's engine through the functions documented in package hostcall.
// It compiles only for wasip1.
//
//	goroutine --- Recv ---> call --- recv(..., ticket) ---> host
//	                          |  <-- pending --------------
//	                          |      (other goroutines run)
//	                          +----- next(timeout) ------>
//	                             <-- ticket, code ---------
//
// A module has one thread. If a goroutine is the only one, its calls block in the host; such calls
// are the cheapest, and suffice for C and most programs. Otherwise the host makes the call in the
// background. If no goroutine can proceed, one of them waits in the host for the first call to
// complete. Goroutines that sleep outside the engine are then served about once a millisecond. If
// all goroutines wait for the host, timers are served about every 20 ms.
//
// Buffers are used in place in the module's memory, which neither the host nor Go moves. The
// buffers of a call or an active Request are kept from being collected, even if the program has no
// other references to them.
package guest

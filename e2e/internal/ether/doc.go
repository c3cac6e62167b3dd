// Package ether implements an Ethernet switch in user space, for kernels whose virtual cables can neither
// delay nor reorder packets. For each direction between two ports, a test sets whether frames are
// lost, late, overtaken or cut off.
//
//	 machine 0 (namespace)                           machine 1
//	┌──────────────┐   frames   ┌────────┐          ┌──────────────┐
//	│ eth0 (TAP) ──┼── device ──┤ Switch ├── device ┼── eth0 (TAP) │
//	└──────────────┘            └────────┘          └──────────────┘
//	                  from 0 to 1: Link{Loss: 0.05, Delay: 20 ms, …}
//
// The core decides where a frame goes and when; Switch moves frames. A frame that cannot be
// delivered at once because of a full queue is lost, as in a real switch. The switch guarantees no
// bandwidth: one goroutine reads each port.
package ether

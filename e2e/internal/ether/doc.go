// Package ether is an Ethernet switch in user space, for kernels whose cables can
// neither delay packets nor bring them out of order. What goes from one port to
// another is lost, late, overtaken or cut off as a test says, each way by itself.
//
//	 machine 0 (namespace)                           machine 1
//	┌──────────────┐   frames   ┌────────┐          ┌──────────────┐
//	│ eth0 (TAP) ──┼── device ──┤ Switch ├── device ┼── eth0 (TAP) │
//	└──────────────┘            └────────┘          └──────────────┘
//	                  from 0 to 1: Way{Loss: 0.05, Delay: 20 ms, …}
//
// The core decides where a frame goes and when; Switch moves frames. A frame
// that cannot be delivered at once because of a full queue is lost, as in a
// real switch. Nothing is promised about bandwidth: one goroutine reads each port.
package ether

package mpj

import (
	"slices"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// The functions here are generic over slices of elements. The functions for datatypes are in typed.go.

// Send sends buf to rank dest of c, in MPI's standard mode: it returns when buf may be reused, which
// is at once for a short message. A long message may have to wait for its receive. Two ranks that
// send long messages to each other before they receive may therefore deadlock. Sendrecv and Isend
// avoid this.
func Send[T Element](c *Comm, buf []T, dest, tag int) error {
	return errorOf("Send", core.Send(c.core(), engineapi.Standard, bytesOf(buf), dest, tag))
}

// Ssend is Send in synchronous mode: it returns when a receive has matched the message.
func Ssend[T Element](c *Comm, buf []T, dest, tag int) error {
	return errorOf("Ssend", core.Send(c.core(), engineapi.Synchronous, bytesOf(buf), dest, tag))
}

// Rsend is Send in ready mode. In MPI, ready mode requires that the receive is already posted; this
// implementation does not require this.
func Rsend[T Element](c *Comm, buf []T, dest, tag int) error {
	return errorOf("Rsend", core.Send(c.core(), engineapi.Ready, bytesOf(buf), dest, tag))
}

// Recv waits for a message from rank source (or AnySource) with tag (or AnyTag) and receives it into
// buf. The message may be shorter than buf. If the message is longer than buf, it is lost, and Recv
// returns ErrTruncate.
func Recv[T Element](c *Comm, buf []T, source, tag int) (Status, error) {
	s, err := core.Recv(c.core(), bytesOf(buf), source, tag)
	return Status(s), errorOf("Recv", err)
}

// Sendrecv sends send to dest and receives from source at the same time, so that ranks can exchange
// messages in a ring. The two buffers must not overlap.
func Sendrecv[S, R Element](c *Comm, send []S, dest, sendTag int, recv []R, source, recvTag int) (Status, error) {
	s, err := core.Sendrecv(c.core(), bytesOf(send), dest, sendTag, bytesOf(recv), source, recvTag)
	return Status(s), errorOf("Sendrecv", err)
}

// SendrecvReplace is Sendrecv with one buffer: the received message replaces the sent one.
func SendrecvReplace[T Element](c *Comm, buf []T, dest, sendTag, source, recvTag int) (Status, error) {
	s, err := core.Sendrecv(c.core(), slices.Clone(bytesOf(buf)), dest, sendTag, bytesOf(buf), source, recvTag)
	return Status(s), errorOf("SendrecvReplace", err)
}

// Isend is the nonblocking form of Send. buf belongs to the request, and must not be changed, until
// the request is complete.
func Isend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	r, err := core.Isend(c.core(), "Isend", engineapi.Standard, bytesOf(buf), dest, tag)
	return (*Request)(r), errorOf("Isend", err)
}

// Issend is Isend in synchronous mode.
func Issend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	r, err := core.Isend(c.core(), "Issend", engineapi.Synchronous, bytesOf(buf), dest, tag)
	return (*Request)(r), errorOf("Issend", err)
}

// Irsend is Isend in ready mode.
func Irsend[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	r, err := core.Isend(c.core(), "Irsend", engineapi.Ready, bytesOf(buf), dest, tag)
	return (*Request)(r), errorOf("Irsend", err)
}

// Irecv is the nonblocking form of Recv. buf belongs to the request until the request is complete.
func Irecv[T Element](c *Comm, buf []T, source, tag int) (*Request, error) {
	r, err := core.Irecv(c.core(), "Irecv", bytesOf(buf), source, tag)
	return (*Request)(r), errorOf("Irecv", err)
}

// Probe waits for a message that a Recv with the same source and tag would receive, and returns its
// status without receiving it. With several goroutines, another goroutine may then receive the
// message; Mprobe avoids this.
func Probe(c *Comm, source, tag int) (Status, error) {
	s, err := core.Probe(c.core(), source, tag)
	return Status(s), errorOf("Probe", err)
}

// Iprobe is the nonblocking form of Probe: ok reports whether such a message has arrived.
func Iprobe(c *Comm, source, tag int) (s Status, ok bool, err error) {
	found, ok, err := core.Iprobe(c.core(), source, tag)
	return Status(found), ok, errorOf("Iprobe", err)
}

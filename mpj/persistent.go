package mpj

import (
	"errors"

	"github.com/p2pmpi/p2pmpi/mpj/internal/core"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engineapi"
)

// SendInit returns an inactive request that, at every Start, sends the current contents of buf to
// dest with tag. buf belongs to the request while the request is active.
func SendInit[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	r, err := core.SendInit(c.core(), "SendInit", engineapi.Standard, bytesOf(buf), dest, tag)
	return (*Request)(r), errorOf("SendInit", err)
}

// SsendInit is SendInit in synchronous mode.
func SsendInit[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	r, err := core.SendInit(c.core(), "SsendInit", engineapi.Synchronous, bytesOf(buf), dest, tag)
	return (*Request)(r), errorOf("SsendInit", err)
}

// RsendInit is SendInit in ready mode.
func RsendInit[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	r, err := core.SendInit(c.core(), "RsendInit", engineapi.Ready, bytesOf(buf), dest, tag)
	return (*Request)(r), errorOf("RsendInit", err)
}

// BsendInit is SendInit in buffered mode.
func BsendInit[T Element](c *Comm, buf []T, dest, tag int) (*Request, error) {
	r, err := core.BsendInit(c.core(), "BsendInit", bytesOf(buf), dest, tag)
	return (*Request)(r), errorOf("BsendInit", err)
}

// RecvInit returns an inactive request that, at every Start, receives into buf. source and tag may
// be wildcards.
func RecvInit[T Element](c *Comm, buf []T, source, tag int) (*Request, error) {
	r, err := core.RecvInit(c.core(), "RecvInit", bytesOf(buf), source, tag)
	return (*Request)(r), errorOf("RecvInit", err)
}

// SendInitTyped is SendInit for items of a datatype.
func SendInitTyped(c *Comm, x Typed, dest, tag int) (*Request, error) {
	const op = "SendInitTyped"
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	r, err := core.SendInitBuffer(&c.base, op, x.buffer, dest, tag)
	return (*Request)(r), errorOf(op, err)
}

// RecvInitTyped is RecvInit for items of a datatype.
func RecvInitTyped(c *Comm, x Typed, source, tag int) (*Request, error) {
	const op = "RecvInitTyped"
	if err := x.check(c, op); err != nil {
		return nil, err
	}
	r, err := core.RecvInitBuffer(&c.base, op, x.buffer, source, tag)
	return (*Request)(r), errorOf(op, err)
}

// Start starts the operation of a persistent request, which must not be active.
func (r *Request) Start() error { return errorOf("Start", (*core.Request)(r).Start()) }

// Startall starts all requests in order, and returns their errors joined.
func Startall(requests ...*Request) error {
	var failed error
	for _, r := range requests {
		failed = errors.Join(failed, r.Start())
	}
	return failed
}

// Free releases a persistent request, which then cannot be started again. If the request is active,
// its operation still completes. Other requests need no Free, because unused requests are
// garbage-collected. With P2PMPI_CHECK, Free states that the program will not wait for a request.
func (r *Request) Free() { (*core.Request)(r).Free() }

package main

import (
	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
	"github.com/p2pmpi/p2pmpi/mpj"
)

const tag = 1

// pair returns an operation of a test between ranks 0 and 1, 2 and 3, and so on. operations is the number
// of messages that the time of one operation covers: two for a round trip, and many for a window.
func pair(c *mpj.Comm, item plan.Item) (op func(int) error, operations int) {
	p := &pairing{c: c, other: c.Rank() ^ 1, first: c.Rank()%2 == 0}
	if item.Test == plan.Latency {
		p.buf = plan.Touched[byte](item.Bytes)
		return p.roundTrip, 2
	}
	window := plan.Window(item.Bytes)
	p.bytes, p.requests = item.Bytes, make([]*mpj.Request, window)
	p.buf, p.in = plan.Touched[byte](window*item.Bytes), plan.Touched[byte](window*item.Bytes)
	if item.Test == plan.Bidirectional {
		p.requests = make([]*mpj.Request, 2*window)
		return p.exchange, window
	}
	return p.oneWay, window
}

// A pairing is one rank's end of a pair that measures its connection.
type pairing struct {
	c        *mpj.Comm
	other    int
	first    bool // the even rank sends first
	bytes    int  // size of a message
	buf, in  []byte
	requests []*mpj.Request
	ack      [1]byte
}

func (p *pairing) roundTrip(int) error {
	if p.first {
		if err := mpj.Send(p.c, p.buf, p.other, tag); err != nil {
			return err
		}
	}
	if _, err := mpj.Recv(p.c, p.buf, p.other, tag); err != nil || p.first {
		return err
	}
	return mpj.Send(p.c, p.buf, p.other, tag)
}

// oneWay sends a window of messages, and the receiver returns one byte.
func (p *pairing) oneWay(int) error {
	var err error
	if p.first {
		if err = p.start(p.requests, p.send); err == nil {
			_, err = mpj.Recv(p.c, p.ack[:], p.other, tag)
		}
		return err
	}
	if err = p.start(p.requests, p.receive); err == nil {
		err = mpj.Send(p.c, p.ack[:], p.other, tag)
	}
	return err
}

// exchange sends a window of messages in both directions.
func (p *pairing) exchange(int) error {
	half := len(p.requests) / 2
	for i := range half {
		r, err := p.receive(i)
		if err != nil {
			return err
		}
		p.requests[half+i] = r
	}
	if err := p.start(p.requests[:half], p.send); err != nil {
		return err
	}
	_, err := mpj.Waitall(p.requests[half:]...)
	return err
}

// start starts the messages of a window and waits for them.
func (p *pairing) start(requests []*mpj.Request, one func(i int) (*mpj.Request, error)) error {
	for i := range requests {
		r, err := one(i)
		if err != nil {
			return err
		}
		requests[i] = r
	}
	_, err := mpj.Waitall(requests...)
	return err
}

func (p *pairing) send(i int) (*mpj.Request, error) {
	return mpj.Isend(p.c, p.buf[i*p.bytes:][:p.bytes], p.other, tag)
}

func (p *pairing) receive(i int) (*mpj.Request, error) {
	return mpj.Irecv(p.c, p.in[i*p.bytes:][:p.bytes], p.other, tag)
}

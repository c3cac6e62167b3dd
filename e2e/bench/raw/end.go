package main

import (
	"fmt"
	"io"

	"github.com/p2pmpi/p2pmpi/e2e/bench/internal/plan"
)

// An end is one of two processes that measure the connection between them.
type end struct {
	conn  connection
	first bool
	bytes int // size of a message
	buf   []byte
	in    []byte
	sent  chan error
}

// operation returns an operation of a test and the number of messages that its time covers.
func (e *end) operation(item plan.Item) (op func() error, operations int, err error) {
	window := plan.Window(item.Bytes)
	e.bytes = item.Bytes
	switch item.Test {
	case plan.Latency:
		e.buf = plan.Touched[byte](item.Bytes)
		return e.roundTrip, 2, nil
	case plan.Rate, plan.Bandwidth, plan.Bidirectional:
		e.buf, e.in = plan.Touched[byte](window*item.Bytes), plan.Touched[byte](window*item.Bytes)
		if item.Test == plan.Bidirectional {
			e.sent = make(chan error)
			return e.exchange, window, nil
		}
		return e.oneWay, window, nil
	}
	return nil, 0, fmt.Errorf("%s is not a test of a connection", item.Test)
}

func (e *end) roundTrip() error {
	if e.first {
		if _, err := e.conn.Write(e.buf); err != nil {
			return err
		}
	}
	if _, err := io.ReadFull(e.conn, e.buf); err != nil || e.first {
		return err
	}
	_, err := e.conn.Write(e.buf)
	return err
}

// oneWay sends a window of messages, and the receiver returns one byte.
func (e *end) oneWay() error {
	if e.first {
		if err := e.sendWindow(); err != nil {
			return err
		}
		_, err := io.ReadFull(e.conn, e.in[:1])
		return err
	}
	if err := e.receiveWindow(); err != nil {
		return err
	}
	_, err := e.conn.Write(e.buf[:1])
	return err
}

// exchange sends a window of messages in both directions.
func (e *end) exchange() error {
	go func() { e.sent <- e.sendWindow() }() // ends with the window
	if err := e.receiveWindow(); err != nil {
		return err
	}
	return <-e.sent
}

func (e *end) sendWindow() error {
	for at := 0; at < len(e.buf); at += e.bytes {
		if _, err := e.conn.Write(e.buf[at:][:e.bytes]); err != nil {
			return err
		}
	}
	return nil
}

func (e *end) receiveWindow() error {
	for at := 0; at < len(e.in); at += e.bytes {
		if _, err := io.ReadFull(e.conn, e.in[at:][:e.bytes]); err != nil {
			return err
		}
	}
	return nil
}

// part returns when both ends have received all data, because a host that closes drops data in
// transit. The second process sends the last byte and ends last.
func (e *end) part() error {
	if e.first {
		_, err := io.ReadFull(e.conn, make([]byte, 1))
		return err
	}
	if _, err := e.conn.Write([]byte{0}); err != nil {
		return err
	}
	io.Copy(io.Discard, e.conn) // until the first process has closed, cleanly or not
	return nil
}

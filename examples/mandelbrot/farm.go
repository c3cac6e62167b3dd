package main

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// The tags of this program's messages.
const (
	doneTag = iota + 1 // a finished row; an empty message requests the first row
	rowTag             // the number of a row to compute, or noRow
)

// noRow tells a rank that no rows are left.
const noRow = -1

// A finished row is sent as its number, followed by its pixels.
const header = 1

// paint returns, at rank 0, the steps of all pixels, row by row from the top. At rank 0 it calls
// done for each finished row.
func paint(c *mpj.Comm, r region, done func()) ([]int32, error) {
	switch {
	case c.Rank() != 0:
		return nil, compute(c, r)
	case c.Size() > 1:
		return deal(c, r, done)
	}
	steps := make([]int32, r.width*r.height)
	for row := range r.height {
		r.row(row, steps[row*r.width:][:r.width])
		done()
	}
	return steps, nil
}

// deal assigns every row to the first rank that requests a row, and returns all rows.
func deal(c *mpj.Comm, r region, done func()) ([]int32, error) {
	steps := make([]int32, r.width*r.height)
	message := make([]int32, header+r.width)
	next := 0
	for working := c.Size() - 1; working > 0; {
		s, err := mpj.Recv(c, message, mpj.AnySource, doneTag)
		if err != nil {
			return nil, err
		}
		if mpj.Count[int32](s) > 0 {
			row := int(message[0])
			copy(steps[row*r.width:][:r.width], message[header:])
			done()
		}
		answer := []int32{noRow}
		if next < r.height {
			answer[0] = int32(next)
			next++
		} else {
			working--
		}
		if err := mpj.Send(c, answer, s.Source, rowTag); err != nil {
			return nil, fmt.Errorf("send row %d: %w", answer[0], err)
		}
	}
	return steps, nil
}

// compute requests rows from rank 0 and returns their pixels, until no rows are left.
func compute(c *mpj.Comm, r region) error {
	message := make([]int32, header+r.width)
	finished := message[:0] // no finished row yet
	for {
		if err := mpj.Send(c, finished, 0, doneTag); err != nil {
			return err
		}
		if _, err := mpj.Recv(c, message[:1], 0, rowTag); err != nil {
			return err
		}
		if message[0] == noRow {
			return nil
		}
		r.row(int(message[0]), message[header:])
		finished = message
	}
}

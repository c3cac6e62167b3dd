package engine

import "context"

// A choice describes the possible outcomes of a call that depends on timing, except the message of a
// receive. It is part of the waiter of the call, so that choosing allocates no memory.
type choice struct {
	kind     choiceKind
	waits    bool            // without a result, wait; otherwise choose that there is none
	ends     context.Context // its end also chooses that there is none; nil if there is no such context
	requests []*Request
	request  *Request
	box      *Mailbox // to be probed for source and tag
	source   int
	tag      int32
	number   func() uint64
}

// A choiceKind is the meaning of an outcome, which is a list of numbers. The empty list means that
// there is no result.
type choiceKind uint8

const (
	firstDone    choiceKind = iota // index of the first of requests that is done
	allDone                        // indices of the requests that are done
	everyDone                      // 1 if all requests are done
	requestDone                    // 1 if request is done
	probedStatus                   // source, tag and size of the message that a probe finds
	probedName                     // source and number of that message
	chosenNumber                   // result of number
)

// fewValues is the number of values that an outcome may have without memory of its own.
const fewValues = 3

// outcome returns the outcome that the decider chooses for w now. It returns false if w waits. The
// outcome is valid until the next call. e.mu is held.
func (e *Engine) outcome(w *Waiter) (values []uint64, ok bool) {
	c := &w.choice
	if values = e.result(c, w.values[:0]); len(values) > 0 {
		return values, true
	}
	return nil, !c.waits || c.ends != nil && c.ends.Err() != nil
}

// result appends the values of the result of c to values, if there is a result.
func (e *Engine) result(c *choice, values []uint64) []uint64 {
	switch c.kind {
	case firstDone:
		if i := indexDone(c.requests); i >= 0 {
			values = append(values, uint64(i))
		}
	case everyDone:
		if indexPending(c.requests) < 0 {
			values = append(values, 1)
		}
	case allDone:
		values = appendDone(values, c.requests)
	case requestDone:
		if c.request.done {
			values = append(values, 1)
		}
	case probedStatus:
		if m, ok := c.box.Probe(c.source, c.tag); ok {
			values = append(values, uint64(m.Source), uint64(m.Tag), uint64(m.Size))
		}
	case probedName:
		if m, ok := c.box.Probe(c.source, c.tag); ok {
			values = append(values, uint64(m.Source), m.Seq)
		}
	case chosenNumber:
		values = append(values, c.number())
	}
	if len(values) == 0 && c.waits && c.kind <= allDone && e.allUnmatchable(c.requests) {
		values = append(values, 0) // Wait then fails
	}
	return values
}

// appendDone appends the indices of the requests that are done.
func appendDone(values []uint64, rs []*Request) []uint64 {
	for i, r := range rs {
		if r.done {
			values = append(values, uint64(i))
		}
	}
	return values
}

// statusFrom returns the status in a probedStatus.
func statusFrom(values []uint64) Status {
	return Status{Source: int(values[0]), Tag: int32(values[1]), Size: int(values[2])}
}

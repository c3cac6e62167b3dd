package filetransfer

import "fmt"

const (
	// window is how many contents are asked for ahead of their arrival. It
	// hides the round trip behind a few hundred small files.
	window = 1024
	// batch is how many are asked for in one message; also the room that must
	// be in the window before more are asked for, so that messages stay few.
	batch = 256
	// maxFailures is how many streams in a row may break without a byte before
	// the serving peer is given up.
	maxFailures = 5
)

// A plan decides what one Fetch asks its peer for, and judges what arrives. It
// is a pure core: its caller owns the stream, the files and the clock, tells it
// what happened, and does what it says.
//
//	todo --ask--> asked --arrived(last)--> verified
//	  ^             |                         | rejected (once, if resumed)
//	  +---broken----+-------------------------+
//
// Answers come in the order of asking, so only the oldest content asked for can
// have a part that is new. What arrived of it stays when the stream breaks.
type plan struct {
	todo     []need // not asked for on this stream, in order
	asked    []need // asked for and not answered in full, oldest first
	failures int    // streams that broke since the last byte
}

// A need is a content that is still to arrive, from offset on.
type need struct {
	Want
	offset    int64
	resumed   bool // the part before offset came over another stream
	restarted bool // it was refetched from the beginning already
}

// newPlan plans for the wanted contents, of which the given numbers of bytes
// are there from earlier.
func newPlan(wants []Want, offsets map[Digest]int64) *plan {
	p := &plan{todo: make([]need, len(wants))}
	for i, w := range wants {
		p.todo[i] = need{Want: w, offset: offsets[w.Digest], resumed: offsets[w.Digest] > 0}
	}
	return p
}

// done reports whether everything has arrived.
func (p *plan) done() bool { return len(p.todo)+len(p.asked) == 0 }

// ask returns the next contents to ask for in one message, if it is time.
func (p *plan) ask() []need {
	n := min(batch, len(p.todo))
	if len(p.asked)+n > window {
		return nil
	}
	next := p.todo[:n]
	p.todo = p.todo[n:]
	p.asked = append(p.asked, next...)
	return next
}

// front returns the content that the next bytes are of. ok is false when
// nothing was asked for.
func (p *plan) front() (n need, ok bool) {
	if len(p.asked) == 0 {
		return need{}, false
	}
	return p.asked[0], true
}

// arrived takes note of size bytes of the front content. With complete, it has
// all its bytes, is no longer the front, and can be verified. The error says
// that the peer breaks the protocol; nothing more from it can be trusted.
func (p *plan) arrived(size int64, last bool) (complete bool, err error) {
	if len(p.asked) == 0 {
		return false, fmt.Errorf("%d bytes that were not asked for", size)
	}
	n := &p.asked[0]
	switch left := n.Size - n.offset; {
	case size > left:
		return false, fmt.Errorf("more than the %d bytes of %s", n.Size, n.Want)
	case last && size < left:
		return false, fmt.Errorf("an end of %s at %d of its %d bytes", n.Want, n.offset+size, n.Size)
	case !last && (size <= 0 || size == left):
		return false, fmt.Errorf("%s without an end", n.Want)
	}
	n.offset += size
	p.failures = 0
	if last {
		p.asked = p.asked[1:]
	}
	return last, nil
}

// rejected takes note that a content that has arrived in full is not what its
// digest says. If part of it is from an earlier stream that part may be at
// fault, and it is planned once more from the beginning. Else retry is false:
// the peer sends wrong bytes.
func (p *plan) rejected(n need) (retry bool) {
	if !n.resumed || n.restarted {
		return false
	}
	p.todo = append([]need{{Want: n.Want, restarted: true}}, p.todo...)
	return true
}

// broken takes note that the stream has ended too early: all that was asked
// for is to be asked for again, from where it stands, on another one. retry is
// false when that has been in vain too often.
func (p *plan) broken() (retry bool) {
	for i := range p.asked {
		p.asked[i].resumed = p.asked[i].offset > 0
	}
	p.todo = append(p.asked[:len(p.asked):len(p.asked)], p.todo...)
	p.asked = nil
	p.failures++
	return p.failures < maxFailures
}

package main

import (
	"fmt"
	"slices"

	"github.com/p2pmpi/p2pmpi/e2e/internal/farm"
	"github.com/p2pmpi/p2pmpi/mpj"
)

// A master is the state of rank 0.
type master struct {
	c      *mpj.Comm
	book   *farm.Book
	posted []*mpj.Request // receives for the styles test and waitany
	bufs   [][]uint64
	took   []int // workers whose answers were taken since the order was last told
}

func newMaster(c *mpj.Comm) *master {
	m := &master{c: c, book: farm.New(c.Size(), *tasks), posted: make([]*mpj.Request, c.Size())}
	for range c.Size() {
		m.bufs = append(m.bufs, make([]uint64, *size))
	}
	return m
}

func (m *master) run() error {
	for w := 1; w < m.c.Size(); w++ {
		if err := m.give(w); err != nil {
			return err
		}
	}
	for !m.book.Done() {
		w, err := m.take()
		if err == nil && m.book.Taken()%*every == 0 && !m.book.Done() {
			err = m.tell(orderTag)
		}
		if err == nil {
			err = m.give(w)
		}
		if err != nil {
			return err
		}
	}
	return m.tell(doneTag)
}

// give sends worker w the next task, which depends on the order so far.
func (m *master) give(w int) error {
	task, ok := m.book.Give(w)
	if !ok {
		return nil
	}
	buf := make([]uint64, *size)
	fill(buf, task)
	return mpj.Send(m.c, buf, w, taskTag)
}

// tell prints the order at rank 0 and makes every worker print it.
func (m *master) tell(tag int) error {
	fmt.Println(farm.TookLine(m.took))
	m.took = nil
	order, taken := m.book.Tell(), m.book.Taken()
	fmt.Println(farm.Line(0, taken, order))
	for w := 1; w < m.c.Size(); w++ {
		if err := mpj.Send(m.c, []uint64{order, uint64(taken)}, w, tag); err != nil {
			return err
		}
	}
	return nil
}

// take receives an answer from any worker and checks it.
func (m *master) take() (worker int, err error) {
	w, err := m.receive()
	if err != nil {
		return 0, err
	}
	if buf := m.bufs[w]; buf[0] != m.book.Want(w) || !intact(buf) {
		return 0, fmt.Errorf("answer %d, of rank %d, is %016x, want %016x", m.book.Taken(), w, buf[0], m.book.Want(w))
	}
	m.took = append(m.took, w)
	return w, m.book.Take(w)
}

var styles = []string{"recv", "probe", "iprobe", "test", "waitany"}

// receive receives an answer into the buffer of its worker, with a call whose outcome depends on timing.
func (m *master) receive() (worker int, err error) {
	how := *style
	if how == "mixed" {
		how = styles[m.book.Taken()/50%len(styles)]
	}
	switch {
	case how == "test" || how == "waitany":
		if err := m.post(); err != nil {
			return 0, err
		}
	case m.posts():
		how = "waitany" // complete the posted receives first
	}
	switch how {
	case "recv":
		buf := make([]uint64, *size)
		s, err := mpj.Recv(m.c, buf, mpj.AnySource, answerTag)
		if err == nil {
			m.bufs[s.Source] = buf
		}
		return s.Source, err
	case "probe":
		s, err := mpj.Probe(m.c, mpj.AnySource, answerTag)
		return m.from(s.Source, err)
	case "iprobe":
		return m.from(m.poll())
	case "test":
		return m.completed(m.test())
	case "waitany":
		w, _, err := mpj.Waitany(m.posted...)
		return m.completed(w, err)
	}
	return 0, fmt.Errorf("unknown style %q", how)
}

// poll probes the workers in turn.
func (m *master) poll() (int, error) {
	for {
		for w := 1; w < m.c.Size(); w++ {
			if _, ok, err := mpj.Iprobe(m.c, w, answerTag); ok || err != nil {
				return w, err
			}
		}
	}
}

// from receives the answer of worker w, which has arrived.
func (m *master) from(w int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	_, err = mpj.Recv(m.c, m.bufs[w], w, answerTag)
	return w, err
}

// post posts a receive for each worker that has a task.
func (m *master) post() error {
	for w := range m.posted {
		if m.book.Busy(w) && m.posted[w] == nil {
			r, err := mpj.Irecv(m.c, m.bufs[w], w, answerTag)
			if err != nil {
				return err
			}
			m.posted[w] = r
		}
	}
	return nil
}

// posts reports whether a receive is posted.
func (m *master) posts() bool {
	return slices.ContainsFunc(m.posted, func(r *mpj.Request) bool { return r != nil })
}

func (m *master) test() (int, error) {
	for {
		w, _, done, err := mpj.Testany(m.posted...)
		if done || err != nil {
			return w, err
		}
	}
}

// completed removes the completed receive for worker w.
func (m *master) completed(w int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	m.posted[w] = nil
	return w, nil
}

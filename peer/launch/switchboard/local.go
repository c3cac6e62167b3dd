package switchboard

import (
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// makeBells creates the shared memory with the doorbells.
func (b *Board) makeBells(cells int) {
	bells, err := channel.NewBoard(cells)
	if err != nil {
		b.config.Log.Debug().Err(err).Msg("no shared memory for this job")
		return
	}
	b.bells, b.cells = bells, cells
}

// Bell returns the shared memory with the doorbells, and the cell of a process in it. It returns nil if the
// process must use pipes.
func (b *Board) Bell(id view.Process) (bells *os.File, cell int) {
	p := b.ports[id]
	if b.bells == nil || p.cell >= b.cells {
		return nil, 0
	}
	bells, err := duplicate(b.bells)
	p.bell = err == nil
	return bells, p.cell
}

// openLocal connects two processes of this peer.
func (b *Board) openLocal(p, q *Port, allowed []proclink.Kind) {
	kind, why := choose(b.localSituation(p, q), allowed)
	err := errors.New(why)
	switch kind {
	case proclink.Shm:
		err = b.openRing(p, q)
	case proclink.TCP:
		err = b.openLoopback(p, q)
	case proclink.Stream:
		err = b.openPair(p, q)
	}
	if err != nil {
		p.Refuse(q.id, err)
	}
}

// localSituation returns the situation of two processes of this peer.
func (b *Board) localSituation(p, q *Port) situation {
	s := b.situation(p.id, q.id)
	s.here = true
	if !p.bell || !q.bell {
		s.noMemory = "this peer's system has none"
	}
	return s
}

// openRing connects two processes by shared memory.
func (b *Board) openRing(p, q *Port) error {
	ring, err := channel.NewRing(channel.RingCapacity)
	if err != nil {
		return err
	}
	same, err := duplicate(ring)
	if err != nil {
		ring.Close()
		return err
	}
	// The receiver comes first: it must have the ring before a view states that p has finished.
	q.Send(proclink.Message{Type: proclink.Accept, Process: &p.id, Kind: proclink.Shm, Cell: p.cell}, same)
	p.Send(proclink.Message{Type: proclink.Channel, Process: &q.id, Kind: proclink.Shm, Cell: q.cell}, ring)
	return nil
}

// openPair connects two processes by a pipe.
func (b *Board) openPair(p, q *Port) error {
	in, out, err := channel.NewPipe(false)
	if err != nil {
		return err
	}
	p.Send(proclink.Message{Type: proclink.Channel, Process: &q.id, Kind: proclink.Stream}, in)
	q.Send(proclink.Message{Type: proclink.Accept, Process: &p.id, Kind: proclink.Stream}, out)
	return nil
}

// openLoopback connects two processes by a TCP connection within this machine.
func (b *Board) openLoopback(p, q *Port) error {
	l, err := (&net.ListenConfig{}).Listen(b.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	a, err := (&net.Dialer{}).DialContext(b.ctx, "tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer a.Close()
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	if a.LocalAddr().String() != c.RemoteAddr().String() {
		return errors.New("another process connected first")
	}
	out, err := a.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	in, err := c.(*net.TCPConn).File()
	if err != nil {
		out.Close()
		return err
	}
	p.Send(proclink.Message{Type: proclink.Channel, Process: &q.id, Kind: proclink.TCP, Key: b.table.key(q.id)}, out)
	q.Send(proclink.Message{Type: proclink.Accept, Process: &p.id, Kind: proclink.TCP, Key: b.table.key(p.id)}, in)
	return nil
}

// duplicate returns another descriptor of f, which is closed on exec.
func duplicate(f *os.File) (*os.File, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Dup(int(f.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// makeBoard creates the shared memory in which the job's processes here wake each other. If that fails,
// they use pipes, which is not an error.
func (j *job) makeBoard() {
	if len(j.order) < 2 {
		return
	}
	cells := len(j.order)
	if j.heal {
		cells += spareCells
	}
	board, err := channel.NewBoard(cells)
	if err != nil {
		j.log.Debug().Err(err).Msg("no shared memory for this job")
		return
	}
	j.board, j.cells = board, cells
}

// spareCells is the number of cells on the board for added processes. Processes without a cell use pipes.
const spareCells = 16

// setup tells a process its rank and replica, and the state of the job.
func (j *job) setup(p *process) {
	v, id := j.view, p.id
	if p.joining && v.State(id) == view.Vacant {
		next, q, ok := v.Join(id.Rank)
		if !ok || q != id {
			p.end(fmt.Sprintf("no process %v can join the job now", id))
			return
		}
		v = next // if a view of this epoch with the process ever exists, it is this one
	}
	m := proclink.Message{
		Type: proclink.Setup, Job: j.spec.ID, Process: &id, View: &v, Crowded: j.members.here > runtime.NumCPU(),
		Heal: j.heal, Joining: p.joining,
	}
	var board *os.File
	if j.board != nil && p.cell < j.cells {
		var err error
		if board, err = duplicate(j.board); err == nil {
			m.Kind, m.Cell, p.usesBoard = proclink.Shm, p.cell, true
		}
	}
	p.send(m, board)
}

// openLocal connects two processes of this peer.
func (j *job) openLocal(p, q *process, allowed []proclink.Kind) {
	kind, why := choose(j.localSituation(p, q), allowed)
	err := errors.New(why)
	switch kind {
	case proclink.Shm:
		err = j.openRing(p, q)
	case proclink.TCP:
		err = j.openLoopback(p, q)
	case proclink.Stream:
		err = j.openPair(p, q)
	}
	if err != nil {
		p.refuse(q.id, err)
	}
}

// localSituation returns the situation of two processes of this peer.
func (j *job) localSituation(p, q *process) situation {
	s := j.situation(p.id, q.id)
	s.here = true
	if !p.usesBoard || !q.usesBoard {
		s.noMemory = "this peer's system has none"
	}
	return s
}

// openRing connects two processes by shared memory.
func (j *job) openRing(p, q *process) error {
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
	q.send(proclink.Message{Type: proclink.Accept, Process: &p.id, Kind: proclink.Shm, Cell: p.cell}, same)
	p.send(proclink.Message{Type: proclink.Channel, Process: &q.id, Kind: proclink.Shm, Cell: q.cell}, ring)
	return nil
}

// openPair connects two processes by a pipe.
func (j *job) openPair(p, q *process) error {
	in, out, err := channel.NewPipe(false)
	if err != nil {
		return err
	}
	p.send(proclink.Message{Type: proclink.Channel, Process: &q.id, Kind: proclink.Stream}, in)
	q.send(proclink.Message{Type: proclink.Accept, Process: &p.id, Kind: proclink.Stream}, out)
	return nil
}

// openLoopback connects two processes by a TCP connection within this machine.
func (j *job) openLoopback(p, q *process) error {
	l, err := (&net.ListenConfig{}).Listen(j.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	a, err := (&net.Dialer{}).DialContext(j.ctx, "tcp", l.Addr().String())
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		return err
	}
	defer b.Close()
	if a.LocalAddr().String() != b.RemoteAddr().String() {
		return errors.New("another process connected first")
	}
	out, err := a.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	in, err := b.(*net.TCPConn).File()
	if err != nil {
		out.Close()
		return err
	}
	p.send(proclink.Message{Type: proclink.Channel, Process: &q.id, Kind: proclink.TCP, Key: j.keyOf(q.id)}, out)
	q.send(proclink.Message{Type: proclink.Accept, Process: &p.id, Kind: proclink.TCP, Key: j.keyOf(p.id)}, in)
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

package launch

import (
	"errors"
	"fmt"
	"slices"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A running job may get an additional process on this peer, which replaces a replica lost elsewhere. Like
// any other process, it has its own slot, scratch folder and supervisor.
//
//	submitter                            this peer
//	    |-- Add(process, key) -------------->|  key redeemed, files laid out
//	    |<-- Added --------------------------|  it runs
//	    |<-- Initialized(key) ---------------|  it waits in mpj.Init
//	    |-- Joined, View ------------------->|  it is in the view, and begins
//	    |-- Drop -------------------------->|  or is dropped before that: nothing of it is left
//
// Another peer may run the process instead, if the submitter has dropped it and this peer has not been
// told.

// add starts one more process here, or reports to the submitter why it cannot.
func (j *job) add(m *jobpb.Add) error {
	ids, err := checkJoiner([]*jobpb.Process{m.GetProcess()}, j.spec.N, j.spec.R)
	if err != nil {
		return err
	}
	if !j.settings.heal {
		return errOrder(m)
	}
	key, err := readKey(m.GetKey())
	if err != nil {
		return err
	}
	if before := j.here.local[ids[0]]; before != nil && before.waitsToJoin() {
		j.dropProcess(before)
	}
	if _, err = j.service.config.Reservations.Redeem(key, j.spec.ID, j.submitter); err != nil {
		j.send(added(ids[0], key, fmt.Errorf("redeem reservation key: %w", err)))
		return nil
	}
	if err = j.hasPlace(ids[0]); err != nil {
		j.service.config.Reservations.Release(key)
		j.send(added(ids[0], key, err))
		return nil
	}
	p := newProcess(j, ids[0])
	p.joining, p.added, p.slot = true, true, key
	j.admitProcess(p)
	j.reorder(append(slices.Clone(j.here.order), p.id))
	processes := len(j.here.order)
	j.working.Go(func() { j.startAdded(p, processes) }) // ends with its start, or ctx
	return nil
}

// readKey reads a reservation key.
func readKey(b []byte) (key reservation.Key, err error) {
	if len(b) != len(key) {
		return key, fmt.Errorf("reservation key of %d bytes", len(b))
	}
	return reservation.Key(b), nil
}

// hasPlace returns an error if this part of the job cannot have one more process.
func (j *job) hasPlace(id view.Process) error {
	if err := j.reclaim.bars(); err != nil {
		return err
	}
	switch {
	case j.keeping.outputOnly || j.init != initReturns:
		return errors.New("nothing of the job runs here")
	case j.views.current.State(id) != view.Vacant:
		return fmt.Errorf("process %v has joined already", id)
	}
	if _, ending := j.here.dropping[id]; ending {
		return fmt.Errorf("process %v is still being ended", id)
	}
	if peer, known := j.members.PeerOf[id]; known {
		return fmt.Errorf("process %v runs on peer %s", id, peer)
	}
	if other, here := j.here.ofRank(id.Rank); here {
		return fmt.Errorf("process %v of the same rank is here", other)
	}
	return nil
}

// reorder sets which processes run here from now on, and adjusts the upload, CPU and weight limits of this
// part of the job to their number.
func (j *job) reorder(order []view.Process) {
	j.service.mu.Lock()
	j.here.order = order
	j.service.mu.Unlock()
	if err := j.confinement.resize(len(order)); err != nil {
		j.log.Warn().Err(err).Msg("CPU limit of the job not changed")
	}
}

// startAdded lays out the files of an added process and starts it. processes is the number of processes
// of this part of the job, including the new one.
func (j *job) startAdded(p *process, processes int) {
	var i *instance
	err := j.stager.bringAdded(j.ctx, p.id, processes, j.confinement.checkInputs)
	if err == nil {
		i, err = j.launch(p.id)
	}
	if j.do(func() { j.processStarted(p, i, err) }) {
		return
	}
	if i != nil {
		i.program.Kill()
		i.close()
	}
	j.service.config.Reservations.Release(p.slot)
}

// processStarted begins to watch an added process, unless the process was dropped meanwhile.
func (j *job) processStarted(p *process, i *instance, err error) {
	if j.here.local[p.id] == p && err == nil {
		p.run(i)
		j.running.Go(func() { // ends with ctx at the latest
			select {
			case j.metered <- newMeter(p, i):
			case <-j.ctx.Done():
			}
		})
		j.send(added(p.id, p.slot, nil))
		return
	}
	if j.here.local[p.id] == p {
		j.forgetProcess(p)
	} else if err == nil {
		err = errDropped
	}
	j.working.Go(func() { // ends with the process
		if i != nil { // do not raise the group's priority: the job's other processes still yield to the owner's work
			i.program.Kill()
			i.close()
		}
		j.vacate(p, err)
	})
}

// waitsToJoin reports whether the process was added, and no other process has been told that it joins.
func (p *process) waitsToJoin() bool {
	_, told := p.job.members.PeerOf[p.id]
	return p.added && !told && p.job.views.current.State(p.id) == view.Vacant
}

var errDropped = errors.New("the submitter has dropped it")

// drop drops the process that was added with a key, if there is one, and reports when nothing of it is
// left. It does nothing once other processes have been told that the process joins.
func (j *job) drop(m *jobpb.Drop) error {
	key, err := readKey(m.GetKey())
	if err != nil {
		return err
	}
	id := m.GetProcess().View()
	ends, ending := j.here.dropping[id]
	switch p := j.here.local[id]; {
	case p != nil && p.added && p.slot == key:
		if p.waitsToJoin() {
			j.dropProcess(p)
		}
	case !ending || ends != key: // otherwise vacate reports it
		j.send(added(id, key, errDropped))
	}
	return nil
}

// dropProcess ends an added process and removes everything of it.
func (j *job) dropProcess(p *process) {
	j.forgetProcess(p)
	p.failedInView = true
	p.dropEarly()
	if p.live == nil {
		return // brought does the rest
	}
	p.kill()
	j.working.Go(func() { // ends with the process
		p.live.close()
		j.vacate(p, errDropped)
	})
}

// forgetProcess removes an added process from those that run here.
func (j *job) forgetProcess(p *process) {
	j.here.dropping[p.id] = p.slot
	delete(j.here.local, p.id)
	j.board.Detach(p.id)
	j.reorder(slices.DeleteFunc(slices.Clone(j.here.order), func(id view.Process) bool { return id == p.id }))
	j.liveness.ended(p.id)
}

// vacate frees the resources of a process that does not run here, and reports why it does not run.
func (j *job) vacate(p *process, why error) {
	p.cancel()
	if err := j.folder.RemoveProcess(p.id); err != nil {
		j.log.Error().Err(err).Msg("scratch folder of a process not removed; it stays until the job ends")
	}
	j.service.config.Reservations.Release(p.slot)
	j.do(func() {
		delete(j.here.dropping, p.id)
		j.send(added(p.id, p.slot, why))
	})
}

// superseded drops an added process, if row says that another peer runs it.
func (j *job) superseded(row *jobpb.Member) {
	if p := j.here.local[row.GetProcess().View()]; p != nil && p.waitsToJoin() && p2ppeer.ID(row.GetPeer()) != j.service.host.ID() {
		j.dropProcess(p)
	}
}

package peer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/p2pmpi/p2pmpi/discovery"
	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
	"github.com/p2pmpi/p2pmpi/peer/control/status"
	"github.com/p2pmpi/p2pmpi/peer/job/submit"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// owned answers the requests of the owner. It implements control.Peer for a volunteer.
type owned struct{ *Peer }

// Candidates returns the peers that offer slots and match the filter.
func (o owned) Candidates(ctx context.Context, wanted discovery.Filter) ([]submit.Candidate, error) {
	return o.submitter.Candidates(ctx, wanted)
}

// Examine returns the facts about this peer and its machine.
func (o owned) Examine(ctx context.Context) doctor.Facts {
	network := doctor.ExamineNetwork(ctx, doctor.Sources{
		Host: o.net.Host, Watcher: o.net.Watcher, Discovery: o.discovery,
		Addresses: len(o.Addresses()), Supernodes: o.cfg.Supernodes,
	})
	m := doctor.ExamineMachine(ctx, string(o.home), o.net.Ports.Router())
	m.Sandbox = o.terms.sandbox
	store := o.files.Store()
	m.CacheUsed, m.CacheLimit = store.Bytes(), store.Limit()
	return doctor.Facts{Network: network, Machine: m, Granted: o.granted(), Unread: o.terms.suspend.Unread()}
}

// Cache returns the contents of the cache.
func (o owned) Cache() status.Cache {
	store := o.files.Store()
	return status.Cache{
		Home: string(o.home), Running: true, Bytes: store.Bytes(), Limit: store.Limit(), Contents: store.Contents(),
	}
}

// TrimCache evicts files that no job uses.
func (o owned) TrimCache(to int64) (status.Trimmed, error) {
	return control.TrimStore(o.files.Store(), to)
}

// Resize changes the number of slots until the peer ends. If jobs use more slots than remain, the launcher
// hands them over where possible; the jobs keep their slots until then.
func (o owned) Resize(slots int) status.Slots {
	o.log.Info().Int("slots", slots).Msg("slots changed")
	o.updateGrant(slots)
	o.slots.Resize(slots)
	o.launcher.Trim(slots)
	return o.slotStatus(o.slots.Snapshot())
}

// updateGrant divides the machine among more slots than configured, for future jobs. With fewer slots the
// limits stay the same, because earlier jobs keep theirs.
func (o owned) updateGrant(slots int) {
	grant, err := o.cfg.Grant(string(o.home), max(slots, o.cfg.Slots))
	if err != nil { // cannot happen: the limits were parsed at startup
		o.log.Error().Err(err).Msg("limits unchanged")
		return
	}
	o.launcher.SetGrant(grant)
}

// Fates returns what happens to each current job if the peer is halted.
func (o owned) Fates(how status.Halt) status.Halting {
	h := status.Halting{Peer: o.ID().String(), Mode: how, Jobs: []status.JobFate{}} // a list in JSON even when empty
	for _, j := range o.launcher.Jobs() {
		if j.Submitter != o.ID() {
			h.Jobs = append(h.Jobs, status.JobFate{Job: j.Job, Program: j.Name, Processes: j.Processes, Fate: how.Fate(j.Movable)})
		}
	}
	for _, j := range o.submitter.Jobs() {
		h.Jobs = append(h.Jobs, status.JobFate{Job: j.Job, Program: j.Name, Fate: how.Fate(false)})
	}
	return h
}

// Stop removes the job whose ID begins with prefix from this peer. The job gets no more slots here. Unless now
// is set, its processes are handed over if that takes no longer than handOverTimeout. Otherwise they are ended.
// If ctx ends first, the removal continues.
func (o owned) Stop(ctx context.Context, prefix string, now bool) (status.Stopped, error) {
	within := handOverTimeout
	if now {
		within = 0
	}
	stopped, err := selectJob(o.hosted(), prefix)
	if err != nil {
		return status.Stopped{}, fmt.Errorf("job %.80q: %w", prefix, err)
	}
	o.log.Info().Str("job", stopped.Job).Stringer("submitter", stopped.Submitter).Dur("within", within).Msg("stopped by the owner")
	o.slots.Bar(stopped)
	how, err := o.launcher.Stop(ctx, stopped.Job, stopped.Submitter, within)
	if err != nil {
		return status.Stopped{}, fmt.Errorf("job %.80q has not stopped yet: %w", stopped.Job, err)
	}
	return status.Stopped{Job: stopped.Job, How: how}, nil
}

// hosted returns the launched jobs, followed by the jobs that have slots. A job may occur twice.
func (o owned) hosted() (jobs []reservation.Name) {
	for _, j := range o.launcher.Jobs() {
		jobs = append(jobs, reservation.Name{Job: j.Job, Submitter: j.Submitter})
	}
	for _, j := range o.slots.Snapshot().Jobs {
		jobs = append(jobs, reservation.Name{Job: j.Job, Submitter: j.Submitter})
	}
	return jobs
}

// selectJob returns the job whose ID is prefix, or the only one whose ID begins with prefix. If several
// submitters use the same ID, it returns the first, and launched jobs precede those that only hold slots. A
// submitter that reserves slots under another job's ID therefore cannot prevent that job's removal.
func selectJob(jobs []reservation.Name, prefix string) (found reservation.Name, err error) {
	if i := slices.IndexFunc(jobs, func(n reservation.Name) bool { return n.Job == prefix }); i >= 0 {
		return jobs[i], nil
	}
	for _, n := range jobs {
		switch {
		case prefix == "" || !strings.HasPrefix(n.Job, prefix) || found.Job == n.Job:
		case found.Job == "":
			found = n
		default:
			return reservation.Name{}, control.ErrAmbiguous
		}
	}
	if found.Job == "" {
		return reservation.Name{}, control.ErrNotHosted
	}
	return found, nil
}

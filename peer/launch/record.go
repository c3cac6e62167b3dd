package launch

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
)

// A record is the entry of a job in the owner's journal. A job that never ran takes no room there.
type record struct {
	journal *journal.Journal // nil: none
	log     zerolog.Logger
	entry   journal.Entry
	begun   bool
}

func newRecord(to *journal.Journal, a admission, since time.Time, log zerolog.Logger) record {
	return record{journal: to, log: log, entry: journal.Entry{
		Job: a.spec.ID, Submitter: a.spec.Submitter.String(), Class: string(a.decision.Class),
		Kind: string(a.decision.Kind), Program: a.spec.Name, Digest: a.program.Digest, Signed: a.signed,
		Since: since.UTC().Round(0),
	}}
}

// begin records a job of which processes run.
func (r *record) begin(processes int) {
	r.begun, r.entry.Processes = true, processes
	r.write()
}

// finish records the end of the job, after its processes are gone. staged is the size of its files.
func (r *record) finish(reason error, staged int64, here processSet) {
	e := &r.entry
	e.Processes = len(here.order)
	e.Until, e.Ended, e.Staged = time.Now().UTC().Round(0), clip(reason.Error()), staged
	for _, p := range here.local {
		if p.live == nil {
			continue
		}
		e.CPU, e.Memory = e.CPU+p.live.program.Used(), max(e.Memory, p.live.memory)
		for s := range p.out {
			e.Output += int64(p.out[s].all)
		}
	}
	if r.begun {
		r.write()
	}
}

// write writes the entry to the journal. If that fails, it logs a warning and the job continues.
func (r *record) write() {
	if r.journal == nil {
		return
	}
	if err := r.journal.Add(r.entry); err != nil {
		r.log.Warn().Err(err).Msg("job not recorded in the journal")
	}
}

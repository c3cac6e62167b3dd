package launch

import (
	"time"

	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
)

// entry returns the job's entry in the owner's journal while it runs.
func (j *job) entry() journal.Entry {
	return journal.Entry{
		Job: j.spec.ID, Submitter: j.submitter.String(), Class: string(j.decision.Class),
		Kind: string(j.decision.Kind), Program: j.spec.Name, Digest: j.program.Digest, Signed: j.signed,
		Processes: len(j.order), Since: j.since.UTC().Round(0),
	}
}

// finalEntry returns the job's entry after the job has ended and its processes are gone.
func (j *job) finalEntry() journal.Entry {
	e := j.entry()
	e.Until, e.Ended, e.Staged = time.Now().UTC().Round(0), clip(j.ended.Error()), j.stager.here.Load()
	for _, p := range j.local {
		if p.live == nil {
			continue
		}
		e.CPU, e.Memory = e.CPU+p.live.program.Used(), max(e.Memory, p.live.memory)
		for s := range p.out {
			e.Output += int64(p.out[s].all)
		}
	}
	return e
}

// record writes an entry to the journal. If that fails, it logs a warning and the job continues.
func (j *job) record(e journal.Entry) {
	if j.service.config.Journal == nil {
		return
	}
	if err := j.service.config.Journal.Add(e); err != nil {
		j.log.Warn().Err(err).Msg("job not recorded in the journal")
	}
}

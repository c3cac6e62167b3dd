package peer

import (
	"path/filepath"
	"slices"

	"github.com/p2pmpi/p2pmpi/peer/owner/homedir"
	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
)

// maxJournal bounds the journal of jobs, in bytes; some thousand jobs fit.
const maxJournal = 2 << 20

// startJournal opens the journal, which records for the owner the jobs that run here and their submitters.
func (p *Peer) startJournal() (err error) {
	if p.journal, err = journal.Open(p.home.Journal(), maxJournal); err != nil {
		return &homedir.Error{Home: string(p.home), Err: err}
	}
	p.owns("journal", p.journal.Close)
	return nil
}

// A Past is the journal's entry of a job: its submitter and program, its duration, and its resource use.
type Past = journal.Entry

// HistoryOf returns the jobs that the peer of a home has run, newest first. The peer need not run. The
// error is a *homedir.Error.
func HistoryOf(dir string) ([]Past, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, &homedir.Error{Home: dir, Err: err}
	}
	entries, err := journal.Read(homedir.Dir(abs).Journal())
	if err != nil {
		return nil, &homedir.Error{Home: abs, Err: err}
	}
	slices.Reverse(entries)
	return entries, nil
}

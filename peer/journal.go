package peer

import (
	"path/filepath"
	"slices"

	"github.com/p2pmpi/p2pmpi/peer/owner/journal"
)

// maxJournal bounds the journal of jobs, in bytes; some thousand jobs fit.
const maxJournal = 2 << 20

// startJournal opens the journal, which records for the owner the jobs that run here and their submitters.
func (p *Peer) startJournal() (err error) {
	if p.journal, err = journal.Open(p.home.journal(), maxJournal); err != nil {
		return &HomeError{string(p.home), err}
	}
	p.owns("journal", p.journal.Close)
	return nil
}

// A Past is the journal's entry of a job: its submitter and program, its duration, and its resource use.
type Past = journal.Entry

// HistoryOf returns the jobs that the peer of a home has run, newest first. The peer need not run. The
// error is a *HomeError.
func HistoryOf(dir string) ([]Past, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, &HomeError{dir, err}
	}
	entries, err := journal.Read(home(abs).journal())
	if err != nil {
		return nil, &HomeError{abs, err}
	}
	slices.Reverse(entries)
	return entries, nil
}

package peer

import (
	"errors"
	"testing"

	"github.com/p2pmpi/p2pmpi/peer/control"
	"github.com/p2pmpi/p2pmpi/reservation"
)

func TestJobsAreSelectedByIDPrefix(t *testing.T) {
	jobs := []reservation.Name{{Job: "3f2b8c1e77", Submitter: "a"}, {Job: "3f2b9000", Submitter: "a"}, {Job: "77", Submitter: "b"}, {Job: "7777", Submitter: "c"}, {Job: "77", Submitter: "d"}, {Job: "3f2b8c1e77", Submitter: "e"}}
	for prefix, want := range map[string]struct {
		job reservation.Name
		err error
	}{
		"3f2b8c1e77": {jobs[0], nil},
		"3f2b8c1e":   {jobs[0], nil}, // used by two submitters: the one whose job runs here
		"3f2b":       {reservation.Name{}, control.ErrAmbiguous},
		"77":         {jobs[2], nil}, // the full ID, which occurs twice
		"777":        {jobs[3], nil},
		"9":          {reservation.Name{}, control.ErrNotHosted},
		"":           {reservation.Name{}, control.ErrNotHosted},
	} {
		if job, err := selectJob(jobs, prefix); job != want.job || !errors.Is(err, want.err) {
			t.Errorf("%q: got %v, %v; want %v, %v", prefix, job, err, want.job, want.err)
		}
	}
}

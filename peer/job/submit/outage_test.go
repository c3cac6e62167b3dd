package submit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
	"github.com/p2pmpi/p2pmpi/peer/job"
)

// TestJobWithoutReplicasWaitsForSilentPeers: such a job tells the user that it waits for a silent
// peer, and gives up after a time that depends on the age of the job. It blames the machine that
// was cut off.
func TestJobWithoutReplicasWaitsForSilentPeers(t *testing.T) {
	const any, only = "any of the job's peers: this machine is cut off", "that machine or this one is cut off"
	for name, c := range map[string]struct {
		ran    time.Duration
		silent []time.Duration // by peer
		told   string
		ends   string // empty: the job waits
	}{
		"no peer is silent":          {ran: time.Hour, silent: []time.Duration{0, 0, 0}},
		"a late table":               {ran: time.Hour, silent: []time.Duration{0, time.Second, 0}},
		"a cut of 5 s":               {ran: 5 * time.Second, silent: []time.Duration{0, 5 * time.Second, 0}, told: "stopped or cut off; waiting up to 30s"},
		"a new job":                  {ran: 31 * time.Second, silent: []time.Duration{0, 31 * time.Second, 0}, told: "no message from peer ", ends: "stopped or cut off"},
		"a job that has run an hour": {ran: time.Hour, silent: []time.Duration{0, 9 * time.Minute, 0}, told: "waiting up to 10m0s"},
		"the job has waited long":    {ran: time.Hour, silent: []time.Duration{0, 10 * time.Minute, 0}, told: "waiting up to 10m0s", ends: "no message for 10m0s from peer "},
		"this machine is cut":        {ran: time.Minute, silent: []time.Duration{4 * time.Second, time.Second, 3 * time.Second}, told: any},
		"this machine stays cut":     {ran: time.Minute, silent: []time.Duration{61 * time.Second, 62 * time.Second, 61 * time.Second}, told: any, ends: any},
		"the only peer":              {ran: time.Minute, silent: []time.Duration{5 * time.Second}, told: only},
		"the only peer stays silent": {ran: time.Minute, silent: []time.Duration{time.Hour}, told: only, ends: only},
	} {
		t.Run(name, func(t *testing.T) {
			var cs []contact
			for i, d := range c.silent {
				cs = append(cs, contact{fmt.Sprint("peer", i), d})
			}
			o := judgeOutage(cs, c.ran, false)
			if (o.note != "") != (c.told != "") || !strings.Contains(o.note, c.told) {
				t.Errorf("the user is told %q, want %q", o.note, c.told)
			}
			if again := judgeOutage(cs, c.ran, o.warned); again.note != "" {
				t.Errorf("the user is told again: %q", again.note)
			}
			if (o.lost >= 0) != (c.ends != "") {
				t.Fatalf("gives up peer %d, want %q", o.lost, c.ends)
			}
			if o.lost < 0 {
				return
			}
			if r := outOfReach(cs); r.Status != job.StatusLost || !strings.Contains(r.Message, c.ends) {
				t.Errorf("ends with %d %q, want %q", r.Status, r.Message, c.ends)
			}
		})
	}
}

// TestEndOfAnOutageIsReportedOnce: the user reads once that the silent peers are back.
func TestEndOfAnOutageIsReportedOnce(t *testing.T) {
	cs := []contact{{"peer0", time.Second}, {"peer1", 0}}
	o := judgeOutage(cs, time.Minute, true)
	if o.note != "reconnected to the job's peers" || o.lost >= 0 {
		t.Errorf("got %+v", o)
	}
	if again := judgeOutage(cs, time.Minute, o.warned); again.note != "" {
		t.Errorf("the user is told again: %q", again.note)
	}
}

// TestToleratedHangDependsOnTheJob: the peers wait as long as the submitter does at most.
// --tolerated-hang and replicas set other times.
func TestToleratedHangDependsOnTheJob(t *testing.T) {
	for _, c := range []struct {
		r       int
		patient bool
		mode    faultdetect.Mode
		want    time.Duration
	}{
		{1, true, faultdetect.Fast, maxOutage},
		{1, true, faultdetect.Gossip, minOutage},
		{1, false, faultdetect.Fast, 7 * time.Second},
		{2, true, faultdetect.Fast, 7 * time.Second},
	} {
		e := &execution{j: &run{req: Request{R: c.r}, s: &Submitter{cfg: Config{Hang: 7 * time.Second, Patient: c.patient, Mode: c.mode}}}}
		if got := e.j.hang(); got != c.want {
			t.Errorf("%+v: tolerates %v", c, got)
		}
	}
}

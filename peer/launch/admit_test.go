package launch

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/internal/logtest"
	"github.com/p2pmpi/p2pmpi/internal/misconduct"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
)

// TestRefusedJobsAreLogged checks that the log names the submitter, its class, the program and the reason,
// once however often the job is brought.
func TestRefusedJobsAreLogged(t *testing.T) {
	j := newTestJob(t, 1, 1, nil, "sleep")
	peer, log := j.peers[0], new(logtest.Log)
	peer.launch.conduct = misconduct.New(zerolog.New(log).Level(zerolog.InfoLevel))
	peer.launch.config.Decide = func(p2ppeer.ID, []policy.Kind) policy.Decision {
		return policy.Decision{Class: policy.Everyone, Kind: policy.None, Refused: policy.WasmOnly}
	}
	brought := j.prepareMessage(0, j.reserve(peer, 1))
	for range 5 {
		l := j.connect(peer)
		l.say(brought)
		l.refused("its owner's policy: wasm only")
	}
	signed := fmt.Sprintf("%x", sha256.Sum256(brought.GetPrepare().Spec))
	for _, want := range []string{
		"job refused", j.submitter.ID().String(), `"job":"` + j.spec.ID, `"class":"everyone"`, `"kinds":["native"]`,
		`"digest":"` + j.spec.Programs[0].Digest, `"signed":"` + signed, "wasm only",
	} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%q occurs %d times in the log\n%s", want, n, log)
		}
	}
}

// TestRefusalLogIsRateLimited checks that the log mentions only some of the jobs that a submitter brings in
// quick succession.
func TestRefusalLogIsRateLimited(t *testing.T) {
	b, log := newTestbed(t, 1, 1), new(logtest.Log)
	s := b.peers[0].launch
	s.config.Log, s.logPace.Times = zerolog.New(log).Level(zerolog.InfoLevel), 2
	for range 4 {
		j := b.newJob(t, 1, 1, nil, "sleep")
		j.prepare()
		j.stop()
	}
	for _, want := range []string{"job accepted", "job removed"} {
		if n := strings.Count(log.String(), want); n != 2 {
			t.Errorf("%q occurs %d times in the log\n%s", want, n, log)
		}
	}
}

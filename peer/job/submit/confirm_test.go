package submit

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/job"
	"github.com/p2pmpi/p2pmpi/peer/job/jobpb"
)

// finishes makes q print text, end successfully and account for it.
func (p *part) finishes(q view.Process, text string) {
	digest := sha256.Sum256([]byte(text))
	p.say(outputMessage(q, job.Stdout, 0, true, text))
	p.say(outputMessage(q, job.Stderr, 0, true))
	p.say(&jobpb.FromPeer{Body: &jobpb.FromPeer_Account{Account: &jobpb.Account{
		Process: jobpb.FromProcess(q), Digested: true, Digest: digest[:], Printed: uint64(len(text)),
	}}})
	p.exits(q, wellEnded)
}

// confirming returns a watch of events, and a channel that it closes when the user is told that the
// job waits for the confirmation of its answer.
func confirming() (watch func(Event) error, waits <-chan struct{}) {
	c := make(chan struct{})
	return func(e Event) error {
		if strings.Contains(e.Text, "for its answer to be confirmed by") {
			close(c)
		}
		return nil
	}, c
}

// TestV4AnswerOfAReplicaThatEndsEarlyIsNotAccepted: one of two replicas ends long before the other,
// with a wrong answer. The job waits for the other, and ends with status 65.
func TestV4AnswerOfAReplicaThatEndsEarlyIsNotAccepted(t *testing.T) {
	b := newBed(t, never, 1, 1)
	watch, waits := confirming()
	b.play(func(p *part) {
		p.start()
		p.enter()
		if q := p.processes[0]; q.Replica == 1 {
			p.finishes(q, "wrong\n")
		} else {
			<-waits
			p.finishes(q, "right\n")
		}
	})
	o := b.run(b.request(1, 2), watch)
	o.want(job.StatusDiverged, "the replicas of rank 0 have diverged")
}

// TestV4AnswerOfASlowReplicaIsWaitedFor: the job waits for the slower of two replicas.
func TestV4AnswerOfASlowReplicaIsWaitedFor(t *testing.T) {
	b := newBed(t, never, 1, 1)
	watch, waits := confirming()
	b.play(func(p *part) {
		p.start()
		p.enter()
		if q := p.processes[0]; q.Replica == 0 {
			<-waits
			p.finishes(q, "right\n")
		} else {
			p.finishes(q, "right\n")
		}
	})
	o := b.run(b.request(1, 2), watch)
	o.want(job.StatusOK, "")
	o.wrote(0, job.Stdout, "right\n")
}

// TestV4ReplicaThatHangsDoesNotHangTheJob: one replica never ends. With two replicas, the job ends
// in bounded time with status 65 and the names of both. With three, it ends with the answer of the
// other two.
func TestV4ReplicaThatHangsDoesNotHangTheJob(t *testing.T) {
	for name, r := range map[string]int{"one of two": 2, "one of three": 3} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, never, slices.Repeat([]int{1}, r)...)
			b.submitter.waits.confirm = 100 * time.Millisecond
			b.play(func(p *part) {
				p.start()
				p.enter()
				if q := p.processes[0]; q.Replica > 0 {
					p.finishes(q, "right\n")
				}
			})
			o := b.run(b.request(1, r), nil)
			if r == 3 {
				o.want(job.StatusOK, "")
				o.wrote(0, job.Stdout, "right\n")
				return
			}
			o.want(job.StatusDiverged, "the answer of rank 0 is not confirmed: rank 0 replica 1 on peer …")
			for _, m := range b.peers {
				if !strings.Contains(o.Message, short(m.ID())) {
					t.Errorf("%q does not name peer %s", o.Message, short(m.ID()))
				}
			}
		})
	}
}

package suspend

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
)

func TestParsePauseJobs(t *testing.T) {
	for text, want := range map[string]struct {
		goOn bool
		most time.Duration
		bad  bool
	}{
		"go-on": {goOn: true},
		"end":   {},
		"0s":    {},
		"30m":   {most: 30 * time.Minute},
		"-1s":   {bad: true},
		"stop":  {bad: true},
		"":      {bad: true},
	} {
		got, err := ParseTreatment(text)
		if got.Continue != want.goOn || got.Most != want.most || (err != nil) != want.bad {
			t.Errorf("ParseTreatment(%q) returned %+v, %v", text, got, err)
		}
	}
}

// calls records the calls of a Service, in order.
type calls struct{ made chan string }

func (c calls) Suspend(rule string, most time.Duration) {
	c.made <- "suspend " + rule + " " + most.String()
}

func (c calls) HandOver(ctx context.Context) {
	c.made <- "hand over"
	<-ctx.Done()
	c.made <- "stop"
}

// TestQuietHoursSuspendJobs checks the calls at the beginning and the end of quiet hours, and when the peer ends.
func TestQuietHoursSuspendJobs(t *testing.T) {
	begin := time.Now().Add(2 * time.Hour).Truncate(time.Minute) // Run begins with the current time
	const clock = "15:04"
	quiet, err := policy.ParseHours([]string{begin.Format(clock) + "-" + begin.Add(time.Hour).Format(clock)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		treatment Treatment
		begin     []string
		end       []string
	}{
		{Treatment{Most: time.Minute}, []string{"suspend quiet hours 1m0s", "hand over"}, []string{"suspend  1m0s", "stop"}},
		{Treatment{Continue: true}, []string{"hand over"}, []string{"stop"}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		s, jobs := New(zerolog.Nop()), calls{make(chan string, 10)}
		ticks, over := make(chan time.Time), make(chan struct{})
		go func() { // ends with ctx
			defer close(over)
			s.Run(ctx, Policy{Quiet: quiet, Treatment: tt.treatment}, jobs, presence.NewMachine(t.TempDir()), ticks)
		}()
		expect := func(want []string, rule string) {
			t.Helper()
			for _, w := range want {
				if got := <-jobs.made; got != w {
					t.Errorf("got %q, want %q", got, w)
				}
			}
			if got := s.Rule(); got != rule {
				t.Errorf("got rule %q, want %q", got, rule)
			}
		}
		ticks <- begin.Add(-time.Minute)
		ticks <- begin
		expect(tt.begin, "quiet hours")
		ticks <- begin.Add(time.Hour)
		expect(tt.end, "")
		ticks <- begin
		expect(tt.begin, "quiet hours")
		cancel()
		<-over
		expect([]string{"stop"}, "quiet hours")
	}
}

package peer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/control/doctor"
	"github.com/p2pmpi/p2pmpi/peer/owner/policy"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence/bustest"
	"github.com/p2pmpi/p2pmpi/peer/owner/suspend"
	"github.com/p2pmpi/p2pmpi/reservation"
)

// A scene is a simulated machine: its sys and proc, and the services on its bus.
type scene struct {
	t    *testing.T
	root string
	bus  *bustest.Bus
}

func (s scene) write(name, text string) {
	s.t.Helper()
	name = filepath.Join(s.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text+"\n"), 0o644)); err != nil {
		s.t.Fatal(err)
	}
}

// TestS3EachRuleSuspendsJobs checks that a rule that fires refuses jobs of other users, but not of the owner.
// The status and the page name the rule. A minute after the rule has ceased to apply, the peer accepts jobs again.
func TestS3EachRuleSuspendsJobs(t *testing.T) {
	skip.Long(t)
	const metered, idle = "org.freedesktop.NetworkManager.Metered", "org.freedesktop.login1.Manager.IdleHint"
	for _, tt := range []struct {
		rule        presence.Rule
		quiet, busy func(s scene)
	}{
		{presence.Battery,
			func(s scene) { s.write("sys/class/power_supply/BAT0/status", "Charging") },
			func(s scene) { s.write("sys/class/power_supply/BAT0/status", "Discharging") }},
		{presence.Metered,
			func(s scene) { s.bus.Say(metered, uint32(4)) },
			func(s scene) { s.bus.Say(metered, uint32(3)) }},
		{presence.Active,
			func(s scene) { s.bus.Say(idle, true) },
			func(s scene) { s.bus.Say(idle, false) }},
		{presence.Load,
			func(s scene) { s.write("proc/stat", "cpu  1000000000 0 0 1000000000 0 0 0 0") },
			func(s scene) { s.write("proc/stat", "cpu  1900000000 0 0 1100000000 0 0 0 0") }},
	} {
		t.Run(string(tt.rule), func(t *testing.T) {
			s := scene{t, t.TempDir(), bustest.Start(t)}
			s.write("sys/class/power_supply/BAT0/type", "Battery")
			tt.quiet(s)
			p := boot(t, func(c *Config) { c.PauseWhen = []string{"none"} }) // the test controls its clock
			ticks, over := make(chan time.Time), make(chan struct{})
			go func() { // ends with the peer's life
				defer close(over)
				rules := suspend.Policy{Rules: []presence.Rule{presence.Active, presence.Battery, presence.Load, presence.Metered}}
				rules.Treatment, _ = suspend.ParseTreatment(p.cfg.PauseJobs)
				p.terms.suspend.Run(p.life, rules, hostedJobs{p.launcher}, presence.NewMachine(s.root), ticks)
			}()
			t.Cleanup(func() { p.Close(); <-over })
			stranger := boot(t, func(c *Config) { c.Supernodes = introducing(p) })

			now := time.Now()
			// pass advances the clock and makes the peer read the machine.
			pass := func(d time.Duration) {
				now = now.Add(d)
				for range 2 { // when the second tick is received, the first has been handled
					select {
					case ticks <- now:
					case <-time.After(deadline):
						t.Fatal("the peer does not read the state of the machine")
					}
				}
			}
			expect := func(rule presence.Rule) {
				t.Helper()
				status := p.Status(t.Context())
				if got := status.Slots.Paused; got != string(rule) {
					t.Errorf("got suspend rule %q, want %q", got, rule)
				}
				var html bytes.Buffer
				if err := status.WritePage(&html); err != nil || strings.Contains(html.String(), "suspended: "+string(rule)) != (rule != "") {
					t.Errorf("with rule %q, got %v and the page\n%s", rule, err, html.String())
				}
				var refused error
				if rule != "" {
					refused = reservation.Paused
				}
				if err := ask(t, stranger, p); !errors.Is(err, refused) {
					t.Errorf("with rule %q, another user gets %v", rule, err)
				}
				if err := ask(t, p, p); err != nil {
					t.Errorf("with rule %q, the owner gets %v", rule, err)
				}
			}
			pass(0)
			expect("")
			unread := owned{p}.Examine(t.Context()).Unread
			for _, u := range unread {
				if u.Rule == tt.rule || u.Why == "" {
					t.Errorf("got unread rule %+v", u)
				}
			}
			if len(unread) == 0 || len(doctor.Diagnose(doctor.Facts{Unread: unread})) != len(doctor.Diagnose(doctor.Facts{}))+len(unread) || len(p.Status(t.Context()).Unread) != len(unread) {
				t.Errorf("got unread rules %+v, want those whose sources are missing", unread)
			}
			tt.busy(s)
			pass(10 * time.Second)
			expect(tt.rule)
			tt.quiet(s)
			pass(10 * time.Second)
			expect(tt.rule)
			pass(time.Minute)
			expect("")
		})
	}
}

// TestFullDiskIsNotOffered checks that a peer without disk space for a job refuses jobs of other users and
// reports it, and that it accepts them again when there is space.
func TestFullDiskIsNotOffered(t *testing.T) {
	var free atomic.Int64
	p := boot(t, func(c *Config) { c.diskFree = func(string) int64 { return free.Load() } })
	stranger := boot(t, func(c *Config) { c.Supernodes = introducing(p) })
	for _, c := range []struct {
		free  int64
		slots int
		want  error
	}{
		{6 << 20, 0, reservation.NoDisk},
		{policy.LeastDisk, 2, nil},
		{-1, 2, nil}, // not known
	} {
		free.Store(c.free)
		if got := p.offer().SlotsFree; got != c.slots {
			t.Errorf("with %d bytes free the peer offers %d slots, want %d", c.free, got, c.slots)
		}
		if got := p.Status(t.Context()).Slots.NoDisk; got != (c.want != nil) {
			t.Errorf("with %d bytes free, the status reports a full disk: %v", c.free, got)
		}
		if err := ask(t, stranger, p); !errors.Is(err, c.want) {
			t.Errorf("with %d bytes free, another user gets %v, want %v", c.free, err, c.want)
		}
		if err := ask(t, p, p); err != nil {
			t.Errorf("with %d bytes free, the owner gets %v", c.free, err)
		}
	}
}

// ask requests a slot of p for a native program of from, and releases it.
func ask(t *testing.T, from, p *Peer) error {
	t.Helper()
	client := reservation.NewClient(from.net.Host)
	_, err := client.Hold(t.Context(), p.ID(), reservation.Request{Job: "job", Slots: 1, Kinds: []string{"native"}})
	if err != nil {
		return err
	}
	return client.Release(t.Context(), p.ID(), "job", false)
}

package presence

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/p2pmpi/p2pmpi/internal/skip"
	"github.com/p2pmpi/p2pmpi/peer/owner/presence/bustest"
)

func TestWatchSuspendsAtOnceAndResumesLater(t *testing.T) {
	start := time.Unix(1000, 0)
	for _, tt := range []struct {
		name  string
		rules []Rule
		steps []Reading // ten seconds apart
		want  []Rule
	}{
		{"nothing is wanted", nil, []Reading{{Active: true, Battery: true, Metered: true, Load: 1}}, []Rule{""}},
		{"nothing happens", rules, []Reading{{Load: 0.4}, {}}, []Rule{"", ""}},
		{"each rule", rules, []Reading{{Active: true}, {Battery: true}, {Load: 0.6}, {Metered: true}}, []Rule{Active, Battery, Load, Metered}},
		{"only the enabled rules", []Rule{Battery}, []Reading{{Active: true}, {Battery: true}}, []Rule{"", Battery}},
		{"a short break", []Rule{Active}, []Reading{{Active: true}, {}, {}, {Active: true}, {}, {}, {}, {}, {}, {}, {}}, []Rule{Active, Active, Active, Active, Active, Active, Active, Active, Active, "", ""}},
		{"quiet hours end at once", nil, []Reading{{Quiet: true}, {Quiet: true}, {}}, []Rule{Quiet, Quiet, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWatch(tt.rules)
			for i, r := range tt.steps {
				if got := w.Step(r, start.Add(time.Duration(i)*10*time.Second)); got != tt.want[i] {
					t.Errorf("step %d: got %q, want %q", i, got, tt.want[i])
				}
			}
		})
	}
}

// TestUnreadableValuesKeepTheLastReading checks that the last value counts for a while, and that a rule
// without one does not fire.
func TestUnreadableValuesKeepTheLastReading(t *testing.T) {
	unread := Reading{Unread: []Unread{{Metered, "no bus"}}}
	for _, tt := range []struct {
		name   string
		before Reading
		gone   time.Duration // time for which it cannot be read
		want   Rule
	}{
		{"metered, then the bus is gone for ten minutes", Reading{Metered: true}, 10 * time.Minute, Metered},
		{"metered, then the bus is gone permanently", Reading{Metered: true}, recallFor + 2*holdFor, ""},
		{"not metered", Reading{}, 10 * time.Minute, ""},
		{"another rule, which no longer applies", Reading{Battery: true}, 10 * time.Minute, ""},
		{"never read", unread, 10 * time.Minute, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, now := NewWatch([]Rule{Battery, Metered}), time.Unix(1000, 0)
			w.Step(tt.before, now)
			var got Rule
			for until := now.Add(tt.gone); now.Before(until); {
				now = now.Add(10 * time.Second)
				got = w.Step(unread, now)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			now = now.Add(10 * time.Second)
			w.Step(Reading{}, now)
			if got := w.Step(Reading{}, now.Add(holdFor)); got != "" {
				t.Errorf("after the reading is negative: got %q", got)
			}
		})
	}
}

func TestRulesByName(t *testing.T) {
	if got, err := ParseRules([]string{"active", "load"}); err != nil || len(got) != 2 {
		t.Errorf("ParseRules returned %v, %v, want two rules", got, err)
	}
	if got, err := ParseRules([]string{"none"}); err != nil || got != nil {
		t.Errorf("ParseRules returned %v, %v, want no rule", got, err)
	}
	for _, names := range [][]string{{"idle"}, {"battery", "none"}, {""}} {
		if _, err := ParseRules(names); err == nil || !strings.Contains(err.Error(), "pause-when") {
			t.Errorf("rules %q: got %v, want an error that names the option", names, err)
		}
	}
	if _, err := ParseRules([]string{"battery", "none"}); err == nil || err.Error() != "pause-when battery,none: none cannot be combined with other rules" {
		t.Errorf("ParseRules returned %v", err)
	}
	if _, err := ParseRules(Default); err != nil {
		t.Error(err)
	}
}

// supply creates the kernel's files of a power supply.
func supply(t *testing.T, root, name string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(root, "sys/class/power_supply", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for f, text := range files {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBatteryState(t *testing.T) {
	discharging := map[string]string{"type": "Battery", "status": "Discharging"}
	for _, tt := range []struct {
		name     string
		supplies []map[string]string
		want     bool
	}{
		{"a server", nil, false},
		{"plugged in", []map[string]string{{"type": "Mains", "online": "1"}, {"type": "Battery", "status": "Charging"}}, false},
		{"unplugged", []map[string]string{{"type": "Mains", "online": "0"}, discharging}, true},
		{"unplugged from USB", []map[string]string{{"type": "USB", "online": "0"}, discharging}, true},
		{"plugged in, and one of two batteries is used", []map[string]string{discharging, {"type": "USB", "online": "1"}}, false},
		{"a mouse's battery", []map[string]string{{"type": "Battery", "status": "Discharging", "scope": "Device"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &Machine{root: t.TempDir()}
			for i, files := range tt.supplies {
				supply(t, m.root, string(rune('a'+i)), files)
			}
			if err := os.MkdirAll(filepath.Join(m.root, "sys/class/power_supply"), 0o755); err != nil {
				t.Fatal(err)
			}
			if got := m.Read(t.Context(), []Rule{Battery}); got.Battery != tt.want || got.Unread != nil {
				t.Errorf("the reading is %+v", got)
			}
		})
	}
}

func TestLoadExcludesJobs(t *testing.T) {
	var own uint64
	m := &Machine{root: t.TempDir(), own: func() uint64 { return own }}
	if err := os.Mkdir(filepath.Join(m.root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		line string
		own  uint64
		want float64
	}{
		{"cpu  100 100 100 100 0 0 0 0 0 0", 50, 0}, // no earlier value to compare with
		{"cpu  160 120 110 110 0 0 0 0 0 0", 50, 0.6},
		{"cpu  160 220 110 110 0 0 0 0 0 0", 50, 0},    // jobs alone
		{"cpu  220 240 120 120 0 0 0 0 0 0", 100, 0.1}, // jobs, and the peer's work for them
		{"cpu  320 240 120 120 0 0 0 0 0 0", 205, 0},   // the peer, before the kernel has counted all of its time
		{"nonsense", 205, 0},
		{"cpu  420 240 120 120 0 0 0 0 0 0", 205, 0},
	} {
		if err := os.WriteFile(filepath.Join(m.root, "proc/stat"), []byte(tt.line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		own = tt.own
		if got := m.Read(t.Context(), []Rule{Load}).Load; got != tt.want {
			t.Errorf("line %d: got %v, want %v", i, got, tt.want)
		}
	}
}

// TestLoadIsCorrectForANicePeer checks a peer that itself runs with a higher niceness. Its time is not part
// of the kernel's count for normal priority, so it must not be subtracted.
func TestLoadIsCorrectForANicePeer(t *testing.T) {
	if runtime.GOOS != "linux" {
		skip.Lacks(t, "Linux and its /proc/stat")
	}
	for ownTicks() == 0 { // computes until the first tick
	}
	usual := !isNice()
	if got := NewMachine("/").own() > 0; got != usual {
		t.Errorf("usual priority %v: own work subtracted is %v", usual, got)
	}
	told := make(chan uint64)
	go func() { // ends at once, with its thread
		runtime.LockOSThread()
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
			t.Error(err)
		}
		told <- NewMachine("/").own()
	}()
	if own := <-told; own != 0 {
		t.Errorf("niced peer: %d ticks subtracted, want 0", own)
	}
}

func TestMissingBusDoesNotSuspendJobs(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	m := NewMachine("/")
	defer m.Close()
	if r := m.Read(t.Context(), []Rule{Active, Metered}); r.Active || r.Metered || !slices.Equal(rulesOf(r.Unread), []Rule{Active, Metered}) {
		t.Errorf("the reading is %+v, want both rules unread", r)
	}
}

// TestUnavailableRulesAreReported checks that each rule that cannot be evaluated is reported with the reason.
func TestUnavailableRulesAreReported(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+filepath.Join(t.TempDir(), "none"))
	m := NewMachine(t.TempDir())
	defer m.Close()
	r := m.Read(t.Context(), rules)
	if !slices.Equal(rulesOf(r.Unread), rules) {
		t.Errorf("the reading is %+v, want all rules unread", r)
	}
	for _, u := range r.Unread {
		if u.Why == "" {
			t.Errorf("%s: no reason given", u.Rule)
		}
	}
}

func rulesOf(all []Unread) (rules []Rule) {
	for _, u := range all {
		rules = append(rules, u.Rule)
	}
	return rules
}

// TestHangingServiceDelaysNothing checks that a hanging service delays neither a reading for long nor
// the end of the peer.
func TestHangingServiceDelaysNothing(t *testing.T) {
	for _, tt := range []struct {
		hangs   string
		timeout time.Duration // short: the timeout ends the wait; long: the end of the peer does
	}{
		{"AUTH", time.Millisecond}, {"Hello", time.Millisecond}, {"Get", time.Second}, {"AUTH", time.Hour}, {"Get", time.Hour},
	} {
		t.Run(tt.hangs+" "+tt.timeout.String(), func(t *testing.T) {
			bustest.Start(t).Hang(tt.hangs)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if tt.timeout == time.Hour {
				time.AfterFunc(50*time.Millisecond, end)
			}
			m := &Machine{timeout: tt.timeout}
			read := make(chan Reading, 1)
			go func() { read <- m.Read(ctx, []Rule{Metered}); m.Close() }() // ends with m.Read
			select {
			case r := <-read:
				if r.Metered || len(r.Unread) != 1 {
					t.Errorf("the reading is %+v, want one rule unread", r)
				}
			case <-time.After(time.Minute):
				t.Fatal("the query did not time out")
			}
		})
	}
}

// TestValuesOfSystemServices checks NetworkManager's values for a metered link, certain and guessed, and
// logind's idle hint.
func TestValuesOfSystemServices(t *testing.T) {
	const metered, idle = "org.freedesktop.NetworkManager.Metered", "org.freedesktop.login1.Manager.IdleHint"
	for _, tt := range []struct {
		name, property string
		value          any
		want           Reading
		unread         []Rule
	}{
		{"unknown", metered, uint32(0), Reading{}, []Rule{Active, Metered}},
		{"yes", metered, uint32(1), Reading{Metered: true}, []Rule{Active}},
		{"no", metered, uint32(2), Reading{}, []Rule{Active}},
		{"guess: yes", metered, uint32(3), Reading{Metered: true}, []Rule{Active}},
		{"guess: no", metered, uint32(4), Reading{}, []Rule{Active}},
		{"not a number", metered, true, Reading{}, []Rule{Active, Metered}},
		{"user active", idle, false, Reading{Active: true}, []Rule{Metered}},
		{"user idle", idle, true, Reading{}, []Rule{Metered}},
		{"not a boolean", idle, uint32(0), Reading{}, []Rule{Active, Metered}},
		{"unknown property", "org.example.Metered", uint32(1), Reading{}, []Rule{Active, Metered}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bus := bustest.Start(t)
			bus.Say(tt.property, tt.value)
			m := NewMachine(t.TempDir())
			defer m.Close()
			got := m.Read(t.Context(), []Rule{Active, Metered})
			if got.Active != tt.want.Active || got.Metered != tt.want.Metered || !slices.Equal(rulesOf(got.Unread), tt.unread) {
				t.Errorf("got %+v, want %+v, unread %v", got, tt.want, tt.unread)
			}
			asked := bus.Asked()
			if len(asked) != 2 {
				t.Errorf("%d questions", len(asked))
			}
			for _, flags := range asked {
				if flags&dbus.FlagNoAutoStart == 0 {
					t.Error("a query would start a service that does not run")
				}
			}
		})
	}
}

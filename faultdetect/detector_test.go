package faultdetect

import (
	"slices"
	"testing"
	"time"
)

const (
	offset    = 1000
	simPeriod = DefaultPeriod
)

func newDetector(t *testing.T, n, self int) *Detector {
	t.Helper()
	d, err := New(Config{Members: n, Self: self, Period: simPeriod, Offset: offset, Mode: Gossip})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ticks runs d from one time to another, in periods, and returns all its output.
func ticks(d *Detector, from, to int) (all Output) {
	for k := from*TicksPerPeriod + 1; k <= to*TicksPerPeriod; k++ {
		out := d.Tick(time.Duration(k) * simPeriod / TicksPerPeriod)
		all.Send = append(all.Send, out.Send...)
		all.Verdicts = append(all.Verdicts, out.Verdicts...)
	}
	return all
}

func receive(t *testing.T, d *Detector, m Message) Output {
	t.Helper()
	out, err := d.Receive(d.now, m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func kinds(out Output) (ks []Kind) {
	for _, m := range out.Send {
		ks = append(ks, m.Kind)
	}
	return ks
}

func TestNewRefusesWrongConfig(t *testing.T) {
	right := Config{Members: 3, Self: 1, Period: time.Second}
	tests := map[string]func(*Config){
		"no members":       func(c *Config) { c.Members = 0 },
		"too many members": func(c *Config) { c.Members = maxMembers + 1 },
		"self negative":    func(c *Config) { c.Self = -1 },
		"self outside":     func(c *Config) { c.Self = 3 },
		"no period":        func(c *Config) { c.Period = 0 },
		"huge offset":      func(c *Config) { c.Offset = 1<<64 - 1 },
	}
	if _, err := New(right); err != nil {
		t.Errorf("valid configuration %+v: %v", right, err)
	}
	for name, spoil := range tests {
		c := right
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: %+v was accepted", name, c)
		}
	}
}

func TestOneTablePerPeriod(t *testing.T) {
	d := newDetector(t, 8, 5)
	out := ticks(d, 0, 6)
	var to []int
	for i, m := range out.Send {
		to = append(to, m.To)
		if want := uint64(offset + 1 + i); m.Kind != Table || m.Heartbeat != want || m.Table[5] != want || len(m.Table) != 8 {
			t.Errorf("message %d: %+v, want the table of heartbeat %d", i, m, want)
		}
	}
	slices.Sort(to)
	if want := []int{1, 1, 3, 4, 6, 7}; !slices.Equal(to, want) {
		t.Errorf("the targets are %v, want %v", to, want)
	}
}

func TestSingleMemberSendsNothing(t *testing.T) {
	if out := ticks(newDetector(t, 1, 0), 0, 100); len(out.Send)+len(out.Verdicts) != 0 {
		t.Errorf("the only member sent messages or verdicts: %+v", out)
	}
}

// fallenSilent returns a detector of a group of two in which the other member, last heard in period 10,
// has become suspect in period 12.
func fallenSilent(t *testing.T) *Detector {
	t.Helper()
	d := newDetector(t, 2, 0)
	ticks(d, 0, 10)
	receive(t, d, Message{From: 1, To: 0, Kind: Table, Heartbeat: offset + 10, Table: []uint64{offset + 10, offset + 10}})
	if out := ticks(d, 10, 11); d.State(1) != Live || len(out.Verdicts) != 0 {
		t.Fatalf("%v after one period of silence: %+v", d.State(1), out)
	}
	out := ticks(d, 11, 12)
	if want := []Verdict{{Member: 1, State: Suspect, Silence: 2}}; !slices.Equal(out.Verdicts, want) {
		t.Fatalf("the verdicts are %+v, want %+v", out.Verdicts, want)
	}
	return d
}

func TestF1SuspectIsProbedForAPeriodThenFailed(t *testing.T) {
	d := fallenSilent(t)
	out := ticks(d, 12, 13)
	if got, want := kinds(out), slices.Repeat([]Kind{Ping}, TicksPerPeriod-1); !slices.Equal(got, want) {
		t.Errorf("the detector sent %v, want %v", got, want)
	}
	if want := []Verdict{{Member: 1, State: Failed, Silence: 3}}; !slices.Equal(out.Verdicts, want) {
		t.Errorf("the verdicts are %+v, want %+v", out.Verdicts, want)
	}
	receive(t, d, Message{From: 1, To: 0, Kind: Pong, Heartbeat: offset + 13})
	if out := ticks(d, 13, 30); d.State(1) != Failed || len(out.Send)+len(out.Verdicts) != 0 {
		t.Errorf("after failing: %v, %+v; want Failed permanently, and no gossip to member 1", d.State(1), out)
	}
}

func TestV3AnySignOfLifeClearsASuspect(t *testing.T) {
	signs := map[string]Message{
		"pong":             {From: 1, Kind: Pong, Heartbeat: offset + 12},
		"ping":             {From: 1, Kind: Ping, Heartbeat: offset + 12},
		"table":            {From: 1, Kind: Table, Heartbeat: offset + 12, Table: []uint64{0, offset + 12}},
		"old clock":        {From: 1, Kind: Pong, Heartbeat: 3},
		"runaway clock":    {From: 1, Kind: Pong, Heartbeat: 1 << 60},
		"last moment pong": {From: 1, Kind: Pong, Heartbeat: offset + 10},
	}
	for name, m := range signs {
		t.Run(name, func(t *testing.T) {
			d := fallenSilent(t)
			out := receive(t, d, m)
			if want := []Verdict{{Member: 1, State: Live}}; !slices.Equal(out.Verdicts, want) {
				t.Errorf("the verdicts are %+v, want %+v", out.Verdicts, want)
			}
			if out := ticks(d, 12, 13); len(out.Verdicts) != 0 {
				t.Errorf("after the sign of life: %+v", out.Verdicts)
			}
		})
	}
}

func TestPingIsAnsweredByPong(t *testing.T) {
	d := newDetector(t, 4, 2)
	out := receive(t, d, Message{From: 1, To: 2, Kind: Ping, Heartbeat: offset})
	if len(out.Send) != 1 || out.Send[0].Kind != Pong || out.Send[0].To != 1 || out.Send[0].Heartbeat != offset {
		t.Errorf("the answer to a ping is %+v", out)
	}
}

func TestReportProbesAtOnce(t *testing.T) {
	d := newDetector(t, 4, 0)
	ticks(d, 0, 12)
	out := d.Report(3)
	if len(out.Send) != 1 || out.Send[0].Kind != Ping || out.Send[0].To != 3 || d.State(3) != Suspect {
		t.Fatalf("after a report, the detector returned %+v", out)
	}
	if again := d.Report(3); len(again.Send)+len(again.Verdicts) != 0 {
		t.Errorf("a second report: %+v", again)
	}
	receive(t, d, Message{From: 3, To: 0, Kind: Table, Heartbeat: offset + 12, Table: make([]uint64, 4)})
	if d.State(3) != Suspect {
		t.Error("a message that may have been sent before the report cleared the suspect")
	}
	// News that may be older than the report does not clear a suspect; newer news does.
	receive(t, d, Message{From: 1, To: 0, Kind: Table, Heartbeat: offset + 12, Table: []uint64{0, 0, 0, offset + 12}})
	if d.State(3) != Suspect {
		t.Error("old news cleared the suspect")
	}
	receive(t, d, Message{From: 1, To: 0, Kind: Table, Heartbeat: offset + 13, Table: []uint64{0, 0, 0, offset + 13}})
	if d.State(3) != Suspect {
		t.Error("a heartbeat of a period that began before the report cleared the suspect")
	}
	ticks(d, 12, 13)
	receive(t, d, Message{From: 1, To: 0, Kind: Table, Heartbeat: offset + 14, Table: []uint64{0, 0, 0, offset + 14}})
	if d.State(3) != Live {
		t.Error("a heartbeat newer than the report did not clear the suspect")
	}
}

func TestReportedMemberFailsWithinTwoPeriods(t *testing.T) {
	d := newDetector(t, 64, 0)
	ticks(d, 0, 9)
	d.Tick(9*simPeriod + simPeriod/3)
	d.Report(7)
	d.Report(0)  // this member
	d.Report(64) // outside the group
	d.Report(-1)
	ticks(d, 10, 12)
	if d.State(7) != Failed {
		t.Errorf("the reported member is %v, want failed", d.State(7))
	}
}

func TestV3StoppedObserverProbesAgain(t *testing.T) {
	d := fallenSilent(t)
	d.Tick(12*simPeriod + simPeriod/2) // two questions have been sent
	if out := d.Tick(90 * simPeriod); len(out.Verdicts) != 0 {
		t.Fatalf("a member failed when this member woke up: %+v", out.Verdicts)
	}
	if got, want := d.Heartbeat(), uint64(offset+90); got != want {
		t.Errorf("the heartbeat is %d, want %d: rounds must stay aligned", got, want)
	}
	if ticks(d, 90, 91); d.State(1) != Failed {
		t.Errorf("the silent member is %v a period later, want failed", d.State(1))
	}
}

func TestO4WrongMessagesChangeNothing(t *testing.T) {
	tests := map[string]Message{
		"short table":        {From: 1, To: 0, Kind: Table, Table: make([]uint64, 3)},
		"long table":         {From: 1, To: 0, Kind: Table, Table: make([]uint64, 5)},
		"no table":           {From: 1, To: 0, Kind: Table},
		"table in a pong":    {From: 1, To: 0, Kind: Pong, Table: make([]uint64, 4)},
		"no kind":            {From: 1, To: 0},
		"unknown kind":       {From: 1, To: 0, Kind: Accuse + 1},
		"about no member":    {From: 1, To: 0, Kind: Ask, About: 4},
		"about -1":           {From: 1, To: 0, Kind: Confirm, About: -1},
		"about its sender":   {From: 1, To: 0, Kind: Accuse, About: 1},
		"ping about":         {From: 1, To: 0, Kind: Ping, About: 2},
		"unknown tree":       {From: 1, To: 0, Kind: Accuse, About: 2, Tree: 2},
		"endless reach":      {From: 1, To: 0, Kind: Accuse, About: 2, Reach: 4},
		"reach of an ask":    {From: 1, To: 0, Kind: Ask, About: 2, Reach: 1},
		"from itself":        {From: 0, To: 0, Kind: Ping},
		"from outside":       {From: 4, To: 0, Kind: Ping},
		"negative sender":    {From: -1, To: 0, Kind: Ping},
		"for another member": {From: 1, To: 2, Kind: Ping},
	}
	for name, m := range tests {
		d := newDetector(t, 4, 0)
		if out, err := d.Receive(d.now, m); err == nil || len(out.Send)+len(out.Verdicts) != 0 {
			t.Errorf("%s: %+v, %v; want an error", name, out, err)
		}
	}
}

func TestMergeTakesTheBoundedMaximum(t *testing.T) {
	d := newDetector(t, 4, 0)
	ticks(d, 0, 5)
	far := uint64(offset+5) + d.slack()
	receive(t, d, Message{From: 1, To: 0, Kind: Table, Heartbeat: offset + 5, Table: []uint64{far, offset + 5, far + 1, far}})
	receive(t, d, Message{From: 1, To: 0, Kind: Table, Heartbeat: offset + 5, Table: []uint64{0, 0, 0, 0}})
	m, ok := d.table()
	if want := []uint64{offset + 5, offset + 5, offset, far}; !ok || !slices.Equal(m.Table, want) {
		t.Errorf("the table is %v, want %v: this member, member 1, a heartbeat too far ahead, the greatest plausible one", m.Table, want)
	}
}

func TestLaggingMemberCatchesUpSlowly(t *testing.T) {
	d := newDetector(t, 2, 0)
	for k := range 160 {
		ticks(d, k, k+1)
		receive(t, d, Message{From: 1, To: 0, Kind: Pong, Heartbeat: 1 << 61}) // a lying member
	}
	if got, want := d.Heartbeat(), uint64(offset+160+10); got > want || got < want-1 {
		t.Errorf("the heartbeat is %d after 160 periods, want about %d", got, want)
	}
}

package limits

import (
	"math"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		settings []string
		want     Limits
		wrong    string
	}{
		"nothing":             {},
		"all":                 {settings: []string{"memory=512MiB", "cpu=50%", " disk = 1GiB", "processes=64", "files=1024", "time=12h", "upload=1MiB/s"}, want: Limits{512 << 20, 50, 1 << 30, 64, 1024, 12 * time.Hour, 1 << 20}},
		"none":                {settings: None},
		"last setting counts": {settings: []string{"cpu=50%", "cpu=150%"}, want: Limits{CPU: 150}},
		"unknown":             {settings: []string{"ram=1GiB"}, wrong: `"ram=1GiB": want memory=, cpu=, disk=, processes=, files=, time= or upload=`},
		"no value":            {settings: []string{"memory"}, wrong: `memory "": want a size such as 512MiB, or none`},
		"too small":           {settings: []string{"memory=1MiB"}, wrong: `memory "1MiB": want 16 MiB or more, or none`},
		"too large":           {settings: []string{"disk=16EiB"}, wrong: `disk "16EiB": want a size such as 512MiB, or none`},
		"negative":            {settings: []string{"processes=-1"}, wrong: `processes "-1": want 16 or more, or none`},
		"not a percentage":    {settings: []string{"cpu=2"}, wrong: `cpu "2": want a part of one processor such as 50%, or none`},
		"time without a unit": {settings: []string{"time=12"}, wrong: `time "12": want a time such as 12h, or none`},
		"two wrong settings":  {settings: []string{"files=x", "cpu=y"}, wrong: "files \"x\": want a number, or none\ncpu \"y\": want a part of one processor such as 50%, or none"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(c.settings)
			switch {
			case c.wrong != "" && (err == nil || err.Error() != c.wrong):
				t.Errorf("got error %v, want %s", err, c.wrong)
			case c.wrong == "" && (err != nil || got != c.want):
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
	if _, err := ParseJob([]string{"files=64"}); err == nil {
		t.Error("a job has a limit of files")
	}
}

func TestMinOfEachLimit(t *testing.T) {
	a := Limits{Memory: 1, CPU: 0, Disk: 3, Processes: 9, Files: 5, Time: 7, Upload: 0}
	b := Limits{Memory: 2, CPU: 50, Disk: 0, Processes: 4, Files: 5, Time: 6, Upload: 0}
	want := Limits{Memory: 1, CPU: 50, Disk: 3, Processes: 4, Files: 5, Time: 6, Upload: 0}
	for _, got := range []Limits{Min(a, b), Min(b, a), Min(want, a), Min(want, b)} {
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	g := Grant{Slot: a, Job: b}
	if got := g.Min(Grant{Slot: b, Job: a}); got.Slot != want || got.Job != want {
		t.Errorf("Min returned %+v", got)
	}
}

func TestDefaults(t *testing.T) {
	cases := map[string]struct {
		machine Machine
		slots   int
		memory  int64
		disk    int64
	}{
		"1 GiB, one slot":  {Machine{1 << 30, 8 << 30}, 1, 768 << 20, 2 << 30},
		"1 GiB, two slots": {Machine{1 << 30, 8 << 30}, 2, 384 << 20, 1 << 30},
		"a large machine":  {Machine{64 << 30, 1 << 40}, 8, 6 << 30, 16 << 30},
		"a full disk":      {Machine{1 << 30, 0}, 1, 768 << 20, 256 << 20},
		"not known":        {Machine{0, -1}, 1, 0, 0},
		"no slots":         {Machine{1 << 30, 8 << 30}, 0, 768 << 20, 2 << 30},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := Default(c.machine, c.slots)
			want := Grant{Slot: Limits{c.memory, 100, c.disk, 512, 4096, 168 * time.Hour, 0}}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	g, err := Default(Machine{1 << 30, 8 << 30}, 1).With([]string{"memory=none"}, []string{"upload=1MiB"})
	if err != nil || g.Slot.Memory != 0 || g.Slot.CPU != 100 || g.Job != (Limits{Upload: 1 << 20}) {
		t.Errorf("With returned %+v, %v", g, err)
	}
}

func TestExceeded(t *testing.T) {
	g := Grant{
		Slot: Limits{Memory: 512 << 20, Disk: 1 << 30, Processes: 64, Files: 1024, Time: time.Hour},
		Job:  Limits{Memory: 600 << 20, Processes: 100},
	}
	cases := map[string]struct {
		usage Usage
		want  string
	}{
		"nothing":                 {Usage{}, ""},
		"just enough":             {Usage{Memory: 512 << 20, Disk: 1 << 30, Processes: 64, Files: 1023, Time: time.Hour - 1}, ""},
		"memory":                  {Usage{Memory: 513 << 20}, "exceeded the limit of 512 MiB memory: used 513 MiB"},
		"out of memory":           {Usage{Memory: 512 << 20, Killed: true}, "exceeded the limit of 512 MiB memory: used all of it and requested more"},
		"memory of a job":         {Usage{Memory: 100 << 20, Killed: true, Full: true}, "exceeded the limit of 600 MiB memory for all processes of the job on this peer: used all of it and requested more"},
		"job at its memory limit": {Usage{Memory: 511 << 20, Killed: true, Full: true}, "exceeded the limit of 600 MiB memory for all processes of the job on this peer: used all of it and requested more"},
		"disk":                    {Usage{Disk: 1<<30 + 1<<28}, "exceeded the limit of 1.0 GiB disk: used 1.3 GiB"},
		"processes":               {Usage{Processes: 64, Refused: true}, "exceeded the limit of 64 processes and threads: used all of it and requested more"},
		"processes of a job":      {Usage{Processes: 20, Refused: true}, "exceeded the limit of 100 processes and threads for all processes of the job on this peer: used all of it and requested more"},
		"processes counted":       {Usage{Processes: 65}, "exceeded the limit of 64 processes and threads: used 65"},
		"files":                   {Usage{Files: 1024}, "exceeded the limit of 1024 open files: used all of it and requested more"},
		"time":                    {Usage{Time: time.Hour}, "exceeded the limit of 1h0m0s time: used all of it and requested more"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			x, exceeded := g.Exceeded(c.usage)
			if exceeded != (c.want != "") || exceeded && x.String() != c.want {
				t.Errorf("got %v %q, want %q", exceeded, x, c.want)
			}
			if x, exceeded := (Grant{}).Exceeded(c.usage); exceeded {
				t.Errorf("without limits, %v is exceeded", x)
			}
		})
	}
}

func TestUnmeasurableLimitsAreNotExceeded(t *testing.T) {
	g := Grant{Slot: Limits{Memory: 512 << 20, Processes: 64}, Job: Limits{Memory: 1 << 30}}
	cases := map[string]struct {
		usage Usage
		kind  Kind // exceeded limit, or empty if none is exceeded
	}{
		"killed far below":      {Usage{Memory: 50 << 20, Killed: true}, ""},
		"killed at the limit":   {Usage{Memory: 511 << 20, Killed: true}, Memory},
		"killed, peak unknown":  {Usage{Killed: true}, Memory},
		"refused far below":     {Usage{Processes: 3, Refused: true}, ""},
		"refused at the limit":  {Usage{Processes: 64, Refused: true}, Processes},
		"refused, peak unknown": {Usage{Refused: true}, Processes},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if x, exceeded := g.Exceeded(c.usage); exceeded != (c.kind != "") || x.Kind != c.kind {
				t.Errorf("got %t, %q; want %q", exceeded, x.Kind, c.kind)
			}
		})
	}
}

func TestPauseShrinksNearTheLimit(t *testing.T) {
	for left, want := range map[int64]time.Duration{
		math.MaxInt64: time.Second, 1 << 30: 125 * time.Millisecond, 1 << 31: 250 * time.Millisecond, 0: time.Millisecond, -1: time.Millisecond,
	} {
		if got := Pause(left); got != want {
			t.Errorf("with %d left: got %v, want %v", left, got, want)
		}
	}
}

func TestPlus(t *testing.T) {
	plus := Usage{Memory: 1, Disk: 2, Files: 7, Time: 9}.Plus(Usage{Memory: 3, Disk: 4, Processes: 1, Files: 5, Time: 8})
	if want := (Usage{Memory: 4, Disk: 6, Processes: 1, Files: 7, Time: 9}); plus != want {
		t.Errorf("got %+v, want %+v", plus, want)
	}
}

func TestDefaultLimitsOfStrangers(t *testing.T) {
	for _, c := range []struct {
		machine Machine
		slots   int
		memory  int64
	}{
		{Machine{16 << 30, -1}, 4, 1 << 30},
		{Machine{2 << 30, -1}, 8, 256 << 20}, // no useful program fits into less
		{Machine{0, -1}, 2, 0},
		{Machine{4 << 30, -1}, 0, 1 << 30},
	} {
		want := Limits{Memory: c.memory, Disk: 1 << 30, Time: 12 * time.Hour}
		if got := Strangers(c.machine, c.slots); got != want {
			t.Errorf("%+v with %d slots: got %+v, want %+v", c.machine, c.slots, got, want)
		}
	}
}

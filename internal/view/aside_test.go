package view

import "testing"

// after applies steps to a view. Each step must change the view.
func after(t *testing.T, v View, steps ...func(View) (View, bool)) View {
	t.Helper()
	for i, step := range steps {
		next, changed := step(v)
		if !changed || next.Epoch != v.Epoch+1 {
			t.Fatalf("step %d: epoch %d after %d, changed %v", i, next.Epoch, v.Epoch, changed)
		}
		if err := next.Valid(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		v = next
	}
	return v
}

func aside(k int) func(View) (View, bool) {
	return func(v View) (View, bool) { return v.SetAside(Process{0, k}, v.AsideChanged(Process{0, k})) }
}

func with(k int, s State) func(View) (View, bool) {
	return func(v View) (View, bool) { return v.With(Process{0, k}, s) }
}

func returned(k int, since, term uint64) func(View) (View, bool) {
	return func(v View) (View, bool) { return v.Return(Process{0, k}, since, term) }
}

func joined(v View) (View, bool) {
	next, _, changed := v.Join(0)
	return next, changed
}

// TestR4ReplicaSetAsideNeverBecomesMaster checks that, after a master has failed, no replica that may lack
// outcomes becomes master.
func TestR4ReplicaSetAsideNeverBecomesMaster(t *testing.T) {
	type steps = []func(View) (View, bool)
	for name, c := range map[string]struct {
		r      int
		steps  steps
		states string // of rank 0, by first letter: live, finished, failed (x)
		master int    // -1 if the rank has no master
	}{
		"no other replica is left":             {2, steps{aside(1), with(0, Failed)}, "xx", -1},
		"another replica is left":              {3, steps{aside(1), with(0, Failed)}, "xll", 2},
		"the replica counts again":             {2, steps{aside(1), returned(1, 2, 1), with(0, Failed)}, "xl", 1},
		"the master has finished":              {2, steps{aside(1), with(0, Finished)}, "fl", 1},
		"another replica had finished":         {3, steps{aside(1), with(2, Finished), with(0, Failed)}, "xlf", 1},
		"the replica fails":                    {2, steps{aside(1), with(1, Failed)}, "lx", 0},
		"two are aside":                        {3, steps{aside(1), aside(2), with(0, Failed)}, "xxx", -1},
		"a replica that has joined takes over": {2, steps{aside(1), joined, with(0, Failed)}, "xll", 2},
		"the joined replica also fails":        {2, steps{aside(1), joined, with(0, Failed), with(2, Failed)}, "xxx", -1},
	} {
		t.Run(name, func(t *testing.T) {
			v := after(t, New(1, c.r), c.steps...)
			states := ""
			for k := range v.R {
				states += map[State]string{Live: "l", Finished: "f", Failed: "x"}[v.State(Process{0, k})]
			}
			master, ok := v.Master(0)
			if states != c.states || ok != (c.master >= 0) || ok && master.Replica != c.master {
				t.Errorf("the states are %s, the master is %v %v; want %s, %d", states, master, ok, c.states, c.master)
			}
			for _, p := range v.Processes() {
				if _, changed := v.Promote(p); changed && v.AsideSince(p) != 0 {
					t.Errorf("%v, which is aside, was promoted", p)
				}
			}
		})
	}
}

// TestR4StaleStatementsRestoreNoProcess checks that a process counts again only after a statement of its rank's
// present master about the epoch in which the process was set aside.
func TestR4StaleStatementsRestoreNoProcess(t *testing.T) {
	p := Process{0, 1}
	once := after(t, New(1, 3), aside(1))
	again := after(t, once, aside(1))
	moved := after(t, once, with(0, Failed))
	for name, c := range map[string]struct {
		v           View
		since, term uint64
		want        bool
	}{
		"the present epoch and term": {once, 2, 1, true},
		"another epoch":              {once, 1, 1, false},
		"never set aside":            {New(1, 3), 0, 1, false},
		"set aside again since":      {again, 2, 1, false},
		"the later epoch":            {again, 3, 1, true},
		"term of a failed master":    {moved, 2, 1, false},
		"term of its successor":      {moved, 2, 3, true},
	} {
		next, changed := c.v.Return(p, c.since, c.term)
		if changed != c.want || changed != (next.Epoch == c.v.Epoch+1) || next.Counts(p) == (c.v.AsideSince(p) != 0 && !c.want) {
			t.Errorf("%s: changed %v, want %v", name, changed, c.want)
		}
	}
	if once.AsideSince(p) != 2 || once.Counts(p) || New(1, 3).AsideSince(p) != 0 {
		t.Error("SetAside or Return changed its receiver")
	}
}

// TestV4ProcessIsSetAsideOnce checks that a change that sets a process aside cannot be used again.
func TestV4ProcessIsSetAsideOnce(t *testing.T) {
	p := Process{0, 1}
	once := after(t, New(1, 3), aside(1))
	back := after(t, once, returned(1, 2, 1))
	twice := after(t, back, aside(1), joined)
	for name, c := range map[string]struct {
		v    View
		at   uint64
		want bool
	}{
		"never set aside":                      {New(1, 3), 0, true},
		"the same request again":               {once, 0, false},
		"a request for the present epoch":      {once, 2, true},
		"the first request, after the return":  {back, 0, false},
		"the second request, after the return": {back, 2, false},
		"a new request after the return":       {back, 3, true},
		"after a second time aside":            {twice, 4, true},
		"an old request, then":                 {twice, 3, false},
	} {
		if _, changed := c.v.SetAside(p, c.at); changed != c.want {
			t.Errorf("%s: changed %v, want %v", name, changed, c.want)
		}
	}
}

func TestOnlyEligibleProcessesAreSetAside(t *testing.T) {
	v := after(t, New(2, 2), with(1, Failed))
	for _, p := range []Process{{0, 0}, {0, 1}, {2, 0}, {1, 7}} {
		if _, changed := v.SetAside(p, 0); changed {
			t.Errorf("%v was set aside, although it is a master, failed or unknown", p)
		}
	}
}

func TestAsideIsValid(t *testing.T) {
	good := after(t, New(1, 2), aside(1))
	for name, change := range map[string]func(v *View){
		"too few in Aside":     func(v *View) { v.Aside = v.Aside[:1] },
		"too few in Returned":  func(v *View) { v.Returned = nil },
		"returned later":       func(v *View) { v.Returned[1] = 9 },
		"a master":             func(v *View) { v.Aside[0] = 1 },
		"since a later epoch":  func(v *View) { v.Aside[1] = 9 },
		"a process that ended": func(v *View) { v.States[1] = Failed },
	} {
		v := good.next()
		if change(&v); v.Valid() == nil {
			t.Errorf("%s: %+v is valid", name, v)
		}
	}
}

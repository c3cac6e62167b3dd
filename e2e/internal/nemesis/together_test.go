package nemesis

import (
	"reflect"
	"testing"
	"time"
)

func TestStrikesThatAreTooMuchTogether(t *testing.T) {
	here, there := Process{0, 0}, Process{1, 0}
	at := func(k Kind, p Process, at time.Duration) Strike {
		return Strike{Kind: k, Victim: p, At: at, For: time.Second}
	}
	first := at(Blink, here, 0)
	for name, c := range map[string]struct {
		before []Strike
		last   Strike
		want   []Strike
	}{
		"alone":                              {nil, first, nil},
		"twice":                              {[]Strike{first}, at(Blink, here, 2*time.Second), []Strike{at(Blink, here, 2*time.Second), first}},
		"twice, elsewhere":                   {[]Strike{first}, at(PausePeer, there, 0), nil},
		"twice, long after":                  {[]Strike{first}, at(PausePeer, here, 4*time.Second), nil},
		"packets are lost after the silence": {[]Strike{first}, at(Loss, there, 2*time.Second), []Strike{first}},
		"packets are late":                   {[]Strike{at(Late, there, 0)}, at(PausePeer, here, time.Second), []Strike{at(PausePeer, here, time.Second)}},
		"no machine was silent":              {[]Strike{at(Late, there, 0)}, at(Loss, there, 0), nil},
		"the clock":                          {[]Strike{first}, at(Clock, here, 0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.last.TooMuch(c.before, func(a, b Strike) bool { return a.Victim == b.Victim })
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("the strikes that are too much together are %v, want %v", got, c.want)
			}
		})
	}
}

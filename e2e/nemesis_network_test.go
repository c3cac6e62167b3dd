package e2e

import (
	"github.com/p2pmpi/p2pmpi/e2e/internal/ether"
	"github.com/p2pmpi/p2pmpi/e2e/internal/nemesis"
)

// A disturbance returns the fate of frames from one machine to another.
type disturbance func(from, to int) ether.Link

// disturb applies a disturbance to the network, in addition to others, until mend is called.
func (f *field) disturb(d disturbance) (mend func()) {
	f.disturbed++
	number := f.disturbed
	f.disturbances[number] = d
	f.apply()
	return func() {
		delete(f.disturbances, number)
		f.apply()
	}
}

// apply sets the combined effect of all disturbances at the switch.
func (f *field) apply() {
	for from := range f.machines {
		for to := range f.machines {
			var sum ether.Link
			for _, d := range f.disturbances {
				link := d(from, to)
				sum.Cut = sum.Cut || link.Cut
				sum.Loss = max(sum.Loss, link.Loss)
				sum.Late = max(sum.Late, link.Late)
				sum.By = max(sum.By, link.By)
				sum.Delay += link.Delay
			}
			f.network.Set(from, to, sum)
		}
	}
}

// disturbance returns the disturbance of a strike.
func (b *battle) disturbance(s nemesis.Strike) disturbance {
	victim, other := b.machine(s.Victim), b.machine(s.Other)
	cut := func(those bool) ether.Link { return ether.Link{Cut: those} }
	switch s.Kind {
	case nemesis.Blink, nemesis.Unplug:
		return func(from, to int) ether.Link { return cut(from == victim || to == victim) }
	case nemesis.BlinkSubmitter, nemesis.UnplugSubmitter:
		return func(from, to int) ether.Link { return cut(from == 0 || to == 0) }
	case nemesis.Mute:
		return func(from, _ int) ether.Link { return cut(from == victim) }
	case nemesis.Deaf:
		return func(_, to int) ether.Link { return cut(to == victim) }
	case nemesis.OneWay:
		return func(from, to int) ether.Link { return cut(from == victim && to == other) }
	case nemesis.Split:
		away := func(machine int) bool { return machine == victim || machine == other }
		return func(from, to int) ether.Link { return cut(away(from) != away(to)) }
	case nemesis.Loss:
		return func(int, int) ether.Link { return ether.Link{Loss: s.Much} }
	case nemesis.Delay:
		return func(int, int) ether.Link { return ether.Link{Delay: s.By} }
	case nemesis.Late:
		return func(int, int) ether.Link { return ether.Link{Late: s.Much, By: s.By} }
	}
	panic("not of the network: " + string(s.Kind))
}

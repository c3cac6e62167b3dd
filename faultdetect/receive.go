package faultdetect

import "fmt"

// Receive takes a message of another member. Its sender must have been
// authenticated: From is believed. A message that no right member sends is
// refused whole, with an error, and changes nothing. What a failed member says
// is ignored.
func (d *Detector) Receive(m Message) (Output, error) {
	if err := d.check(m); err != nil {
		return Output{}, fmt.Errorf("faultdetect: message of member %d: %w", m.From, err)
	}
	var out Output
	if d.members[m.From].state == Failed {
		return out, nil
	}
	d.heardFrom(&out, m)
	switch m.Kind {
	case Table:
		for i, h := range m.Table {
			d.learn(&out, i, h)
		}
	case Ping:
		out.Send = append(out.Send, d.message(m.From, Pong))
	}
	return out, nil
}

func (d *Detector) check(m Message) error {
	switch {
	case m.From < 0 || m.From >= d.n || m.From == d.self:
		return fmt.Errorf("not another member of %d", d.n)
	case m.To != d.self:
		return fmt.Errorf("meant for member %d", m.To)
	case m.Kind < Table || m.Kind > Pong:
		return fmt.Errorf("unknown kind %d", m.Kind)
	case m.Kind == Table && len(m.Table) != d.n:
		return fmt.Errorf("table of %d heartbeats in a group of %d", len(m.Table), d.n)
	case m.Kind != Table && len(m.Table) != 0:
		return fmt.Errorf("table of %d heartbeats in a ping or pong", len(m.Table))
	}
	return nil
}

// heardFrom takes a message as its sender's sign of life, now, whatever its
// counter says. Only an answer clears one that was reported in this very
// period: anything else may have been under way since before.
func (d *Detector) heardFrom(out *Output, m Message) {
	if m.Heartbeat >= d.heartbeat+2 { // one ahead is only another phase of the period
		d.behind = true
	}
	d.learn(out, m.From, m.Heartbeat)
	from := &d.members[m.From]
	from.showsLife(d.periods)
	if from.state == Suspect && (from.heard >= from.refute || m.Kind == Pong) {
		d.enter(out, m.From, Live)
	}
}

// learn merges one heartbeat of member i into the table. As counters are
// aligned, the difference to this member's own is the heartbeat's age, and
// tells when i was alive rather than when the news came in.
//
// Nobody knows this member's heartbeat better than itself, and failed is
// final. A heartbeat too far ahead is refused: a member that lags so much
// behind the others would have been failed by them, so it is made up, and
// would hide the true ones for as long.
func (d *Detector) learn(out *Output, i int, heartbeat uint64) {
	m := &d.members[i]
	if i == d.self || m.state == Failed || heartbeat <= m.heartbeat || heartbeat > d.heartbeat+d.slack() {
		return
	}
	m.heartbeat = heartbeat
	age := 0
	if heartbeat < d.heartbeat {
		age = int(min(d.heartbeat-heartbeat, uint64(d.periods+startGrace)))
	}
	m.showsLife(d.periods - age)
	if m.state == Suspect && m.heard >= m.refute {
		d.enter(out, i, Live)
	}
}

// slack is by how much a heartbeat may be ahead of this member's own: the
// longest silence that the others tolerate, and the latest start.
func (d *Detector) slack() uint64 { return uint64(Rounds(d.n) + 1 + startGrace) }

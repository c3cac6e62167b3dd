package engine

import "github.com/p2pmpi/p2pmpi/internal/view"

// Count adds to w the numbers of frames sent to and received from each rank.
func (d *direct) Count(w *Waiting) {
	for rank, link := range d.inflows {
		if o := d.e.conns.outlets[rank]; o != nil && o.seq > o.uncounted {
			w.Sent[rank] = o.seq - o.uncounted
		}
		if link != nil && link.seq > link.uncounted {
			w.Received[rank] = link.seq - link.uncounted
		}
	}
}

// SendUncounted sends a message eagerly, regardless of credit, as a frame that Count does not count.
func (d *direct) SendUncounted(context uint32, dest int, payload []byte) {
	o := d.e.conns.outlet(view.Process{Rank: dest})
	o.uncounted++
	d.sendEagerly(o, context, 0, payload)
}

// ReceivedUncounted records that Count should not count one frame from source.
func (d *direct) ReceivedUncounted(source int) { d.inflows[source].uncounted++ }

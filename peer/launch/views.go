package launch

import (
	"fmt"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/peer/internal/jobpb"
)

// adopt takes a newer view: processes hear of it, one that has failed in it is
// killed (R5), its channels break, and whoever speaks now sends its output.
func (j *job) adopt(m *jobpb.View) error {
	v, err := m.View()
	if err != nil {
		return err
	}
	if v.N != j.spec.N || v.R < j.spec.R {
		return fmt.Errorf("view with n=%d r=%d of a job with n=%d r=%d", v.N, v.R, j.spec.N, j.spec.R)
	}
	if v.Epoch <= j.view.Epoch {
		return nil
	}
	j.view = v
	j.log.Debug().Uint64("epoch", v.Epoch).Msg("view")
	for _, id := range j.order {
		j.local[id].adopt(v)
	}
	for id, breakOff := range j.channels {
		if !v.Has(id.from) || !v.Has(id.to) {
			breakOff()
			delete(j.channels, id)
		}
	}
	return nil
}

// adopt tells the process of a view and does with it what the view says. One that
// is yet to join has nothing to do with it.
func (p *process) adopt(v view.View) {
	if v.State(p.id) == view.Vacant {
		return
	}
	if v.State(p.id) == view.Failed {
		p.expelled, p.speaks = true, false
		p.kill()
		return
	}
	if p.greeted {
		p.tell(proclink.Message{Type: proclink.Update, View: &v}, nil)
	}
	if speaks := v.Speaks(p.id); speaks != p.speaks {
		p.speaks = speaks
		for s := range p.out {
			p.out[s].box.Rewind()
		}
	}
}

package e2e

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSubmitterKilledWhileItHoldsSlots kills a p2prun that holds slots and has redeemed none, because it
// waits for the answer of a peer that hangs. When the leases have expired, the slots must be free, and
// another job must get them (S2, S4).
func TestSubmitterKilledWhileItHoldsSlots(t *testing.T) {
	t.Parallel()
	peers := grid(t, 3, "--slots", "1")
	responsive, hangs := peers[:2], peers[2]
	run := []string{"--supernode", responsive[0].addr, "-w", "100"}
	ring := filepath.Join(bin, "ring")
	victim := submit(t, t.TempDir(), append(run, "-n", "4", ring)...) // one slot more than there are
	victim.waitFor("phase reserving", func(e event) bool { return e.Phase == "reserving" })
	hangs.signal(syscall.SIGSTOP)
	defer hangs.signal(syscall.SIGCONT)
	for awaitHeld(t, responsive[0]); ; awaitHeld(t, responsive[0]) {
		victim.cmd.Process.Signal(syscall.SIGSTOP)
		if s, err := responsive[0].status(); err == nil && s.Slots.Held > 0 {
			break
		}
		victim.cmd.Process.Signal(syscall.SIGCONT) // the victim has just released the slots
	}
	victim.cmd.Process.Kill()
	expectNothingLeft(t, responsive)
	if s := submit(t, t.TempDir(), append(run, "-n", "2", ring)...).wait(); s != 0 {
		t.Errorf("a job without the victim: exit status %d", s)
	}
}

// awaitHeld waits until slots of a peer are held.
func awaitHeld(t *testing.T, p *peerProcess) {
	t.Helper()
	eventually(t, "peer "+p.id, func() error {
		s, err := p.status()
		if err == nil && s.Slots.Held == 0 {
			err = fmt.Errorf("slots: %+v", s.Slots)
		}
		return err
	})
}

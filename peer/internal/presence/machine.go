package presence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
)

// A Machine is what is read. It is not safe for concurrent use. Close it after use.
type Machine struct {
	root string // of /sys and /proc
	bus  *dbus.Conn
	last times
}

// NewMachine returns this machine.
func NewMachine() *Machine { return &Machine{root: "/"} }

// Read says how it stands. Of the load it tells the time since it was last called.
func (m *Machine) Read(wanted []Rule) (r Reading) {
	for _, rule := range wanted {
		switch rule {
		case Active:
			idle, ok := m.property("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager.IdleHint").(bool)
			r.Active = ok && !idle
		case Battery:
			r.Battery = onBattery(filepath.Join(m.root, "sys/class/power_supply"))
		case Load:
			now := readTimes(filepath.Join(m.root, "proc/stat"))
			r.Load = now.share(m.last)
			m.last = now
		case Metered:
			kind, _ := m.property("org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager.Metered").(uint32)
			r.Metered = kind == 1 || kind == 3 // yes, and guessed so
		}
	}
	return r
}

// Close lets go of the system's bus.
func (m *Machine) Close() {
	if m.bus != nil {
		m.bus.Close()
		m.bus = nil
	}
}

// property asks a service on the system's bus; nil where there is no bus, or no such service.
func (m *Machine) property(service, path, name string) any {
	if m.bus != nil && !m.bus.Connected() {
		m.Close()
	}
	if m.bus == nil {
		bus, err := dbus.ConnectSystemBus()
		if err != nil {
			return nil
		}
		m.bus = bus
	}
	v, err := m.bus.Object(service, dbus.ObjectPath(path)).GetProperty(name)
	if err != nil {
		return nil
	}
	return v.Value()
}

// onBattery reports whether a battery of the machine, not one of a mouse, is being used up.
func onBattery(folder string) bool {
	supplies, _ := filepath.Glob(filepath.Join(folder, "*"))
	on := false
	for _, s := range supplies {
		is := func(file, value string) bool {
			text, _ := os.ReadFile(filepath.Join(s, file))
			return strings.TrimSpace(string(text)) == value
		}
		switch {
		case is("scope", "Device"):
		case !is("type", "Battery") && is("online", "1"):
			return false
		case is("type", "Battery") && is("status", "Discharging"):
			on = true
		}
	}
	return on
}

// times are those of all processors since the machine started, in ticks.
type times struct{ usual, all uint64 }

// readTimes reads the first line of /proc/stat. Programs of jobs are nice, so what users' programs
// take of usual priority is the owner's.
func readTimes(file string) (t times) {
	text, _ := os.ReadFile(file)
	var n [8]uint64 // user, nice, system, idle, iowait, irq, softirq, steal
	if _, err := fmt.Sscanf(string(text), "cpu %d %d %d %d %d %d %d %d", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]); err != nil {
		return times{}
	}
	for _, ticks := range n {
		t.all += ticks
	}
	t.usual = n[0]
	return t
}

// share is what work of usual priority has had since before.
func (t times) share(before times) float64 {
	if before.all == 0 || t.all <= before.all || t.usual < before.usual {
		return 0
	}
	return float64(t.usual-before.usual) / float64(t.all-before.all)
}

package presence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// A Machine reads the state of this machine. It is not safe for concurrent use. Close it after use.
type Machine struct {
	root    string // contains sys and proc
	timeout time.Duration
	own     func() uint64 // returns this process's user time at normal priority, in ticks
	bus     *dbus.Conn
	last    times
}

// busTimeout bounds the wait for a service on the system bus, which may hang.
const busTimeout = 3 * time.Second

// NewMachine returns a Machine that reads sys and proc below root. It uses the system bus at
// DBUS_SYSTEM_BUS_ADDRESS, or else at the standard address.
func NewMachine(root string) *Machine {
	m := &Machine{root: root, own: ownTicks, timeout: busTimeout}
	if isNice() {
		m.own = func() uint64 { return 0 }
	}
	return m
}

// Read reads the state that the wanted rules need, as far as it is available before ctx ends. The load
// covers the time since the last call.
func (m *Machine) Read(ctx context.Context, wanted []Rule) (r Reading) {
	for _, rule := range wanted {
		var err error
		switch rule {
		case Active:
			r.Active, err = m.active(ctx)
		case Battery:
			r.Battery, err = onBattery(filepath.Join(m.root, "sys/class/power_supply"))
		case Load:
			r.Load, err = m.load()
		case Metered:
			r.Metered, err = m.metered(ctx)
		}
		if err != nil {
			r.Unread = append(r.Unread, Unread{rule, err.Error()})
		}
	}
	return r
}

func (m *Machine) active(ctx context.Context) (bool, error) {
	v, err := m.property(ctx, "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "IdleHint")
	idle, ok := v.(bool)
	if err == nil && !ok {
		err = fmt.Errorf("logind returns %.40q as idle hint", fmt.Sprint(v))
	}
	return ok && !idle, err
}

func (m *Machine) metered(ctx context.Context) (bool, error) {
	const yes, no, guessYes, guessNo = 1, 2, 3, 4
	v, err := m.property(ctx, "org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager", "org.freedesktop.NetworkManager", "Metered")
	if err != nil {
		return false, err
	}
	switch kind, _ := v.(uint32); kind {
	case yes, guessYes:
		return true, nil
	case no, guessNo:
		return false, nil
	}
	return false, errors.New("NetworkManager does not know whether the link is metered; there may be no link")
}

func (m *Machine) load() (float64, error) {
	now, err := readTimes(filepath.Join(m.root, "proc/stat"))
	now.peers = m.own()
	share := now.share(m.last)
	m.last = now
	return share, err
}

// Close closes the connection to the system bus.
func (m *Machine) Close() {
	if m.bus != nil {
		m.bus.Close()
		m.bus = nil
	}
}

// property reads a property of a service on the system bus. It returns an error if there is no bus, no such
// service, or no answer in time. It does not start a service that is not running.
func (m *Machine) property(ctx context.Context, service, path, of, name string) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if err := m.connect(ctx); err != nil {
		return nil, err
	}
	var v dbus.Variant
	err := m.bus.Object(service, dbus.ObjectPath(path)).
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", dbus.FlagNoAutoStart, of, name).Store(&v)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", service, err)
	}
	return v.Value(), nil
}

// connect connects to the system bus before ctx ends; the connection outlives ctx.
func (m *Machine) connect(ctx context.Context) error {
	if m.bus != nil && !m.bus.Connected() {
		m.Close()
	}
	if m.bus != nil {
		return nil
	}
	life, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, end)
	defer stop()
	bus, err := dbus.ConnectSystemBus(dbus.WithContext(life))
	if err != nil {
		end()
		return fmt.Errorf("connect to the system bus: %w", err)
	}
	m.bus = bus
	return nil
}

// onBattery reports whether the machine runs on battery power. It ignores batteries of devices such as a
// mouse.
func onBattery(folder string) (on bool, err error) {
	supplies, err := os.ReadDir(folder)
	if err != nil {
		return false, err
	}
	for _, s := range supplies {
		read := func(file string) string {
			text, failed := os.ReadFile(filepath.Join(folder, s.Name(), file))
			if failed != nil && !errors.Is(failed, fs.ErrNotExist) { // no supply has all files
				err = failed
			}
			return strings.TrimSpace(string(text))
		}
		switch kind := read("type"); {
		case read("scope") == "Device":
		case kind != "Battery" && read("online") == "1":
			return false, nil
		case kind == "Battery" && read("status") == "Discharging":
			on = true
		}
	}
	return on, err
}

// times are processor times since the machine started, in ticks. usual is the user time at normal priority,
// peers the part of it that this process has used, and all the total.
type times struct{ usual, peers, all uint64 }

// ownTicks returns the user time of this process, in ticks. The peer itself does work for jobs, such as
// encryption, which is not load of the owner.
func ownTicks() uint64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return uint64(time.Duration(u.Utime.Nano()) / tick)
}

// isNice reports whether this process has a lower than normal priority, as jobs have.
func isNice() bool {
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	return err == nil && raw < rawUsual
}

// rawUsual is the value of the system call on Linux for niceness 0. Only Linux has a /proc/stat.
const rawUsual = 20

// tick is the unit of /proc/stat, which does not depend on the kernel's own tick.
const tick = 10 * time.Millisecond

// readTimes reads the first line of /proc/stat. The programs of jobs run with a higher niceness, so user
// time at normal priority belongs to the owner's programs.
func readTimes(file string) (t times, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return times{}, err
	}
	var n [8]uint64 // user, nice, system, idle, iowait, irq, softirq, steal
	if _, err := fmt.Sscanf(string(text), "cpu %d %d %d %d %d %d %d %d", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]); err != nil {
		return times{}, fmt.Errorf("%s: %w", file, err)
	}
	for _, ticks := range n {
		t.all += ticks
	}
	t.usual = n[0]
	return t, nil
}

// share returns the share of normal-priority work since before.
func (t times) share(before times) float64 {
	if before.all == 0 || t.all <= before.all {
		return 0
	}
	usual := float64(t.usual) - float64(before.usual) - float64(t.peers-before.peers)
	return max(0, usual/float64(t.all-before.all))
}

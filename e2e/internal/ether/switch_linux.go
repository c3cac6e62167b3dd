package ether

import (
	"container/heap"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Switch moves frames between devices.
type Switch struct {
	readers sync.WaitGroup
	timer   *time.Timer // runs flush when the next late frame is due

	mu    sync.Mutex
	core  *core
	ports []*os.File
	late  queue
	sent  uint64 // number of late frames so far, which orders frames that are due at the same time
}

// New returns a switch without ports. The seed determines which frames are lost and late, provided
// that they arrive in the same order.
func New(seed uint64) *Switch {
	s := &Switch{core: newCore(seed)}
	s.timer = time.AfterFunc(time.Hour, s.flush)
	s.timer.Stop()
	return s
}

// Plug creates a TAP device of this name in the network namespace of the calling thread and connects
// it. The switch owns the device and removes it in Close.
func (s *Switch) Plug(name string) (port int, err error) {
	device, err := openTAP(name)
	if err != nil {
		return 0, fmt.Errorf("plug %s into a switch: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	port = len(s.ports)
	s.ports = append(s.ports, device)
	s.core.ports = len(s.ports)
	s.readers.Go(func() { s.read(port, device) }) // ends with the device
	return port, nil
}

// openTAP creates a TAP device in the network namespace of the calling thread.
func openTAP(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("open /dev/net/tun", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("ioctl TUNSETIFF", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Set sets the Link from one port to another. Frames in transit are not affected.
func (s *Switch) Set(from, to int, link Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.core.set(from, to, link)
}

// Close removes all devices, and returns when all readers have ended.
func (s *Switch) Close() {
	s.mu.Lock()
	for _, device := range s.ports {
		device.Close()
	}
	s.late = nil
	s.timer.Stop()
	s.mu.Unlock()
	s.readers.Wait()
}

// maxFrame is longer than any frame of a device with the default MTU.
const maxFrame = 2048

// read receives the frames that a machine sends.
func (s *Switch) read(port int, device *os.File) {
	frame := make([]byte, maxFrame)
	for {
		n, err := device.Read(frame)
		if err != nil {
			return
		}
		s.pass(port, frame[:n])
	}
}

// maxLate bounds the frames in transit, like the memory of a real switch.
const maxLate = 1 << 14

// pass delivers a frame, now or later.
func (s *Switch) pass(from int, frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var kept []byte // shared by all late deliveries
	for _, d := range s.core.forward(from, frame) {
		switch {
		case d.after == 0:
			s.ports[d.to].Write(frame) // an inactive device refuses the frame: it is lost
		case len(s.late) < maxLate:
			if kept == nil {
				kept = slices.Clone(frame)
			}
			s.sent++
			heap.Push(&s.late, waiting{time.Now().Add(d.after), s.sent, d.to, kept})
			if s.late[0].number == s.sent {
				s.timer.Reset(d.after)
			}
		}
	}
}

// flush delivers the late frames that are due.
func (s *Switch) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.late) > 0 {
		if wait := time.Until(s.late[0].due); wait > 0 {
			s.timer.Reset(wait)
			return
		}
		w := heap.Pop(&s.late).(waiting)
		s.ports[w.to].Write(w.frame)
	}
}

// A waiting is a late frame.
type waiting struct {
	due    time.Time
	number uint64
	to     int
	frame  []byte
}

// A queue is a heap of late frames; the first is the next one due.
type queue []waiting

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if !q[i].due.Equal(q[j].due) {
		return q[i].due.Before(q[j].due)
	}
	return q[i].number < q[j].number
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(waiting)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

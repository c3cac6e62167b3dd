package peer

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// parts are the components that a peer has to close, in the order in which they were started.
type parts struct {
	all  []part
	once sync.Once
	err  error
}

// A part is a component that Close has to close.
type part struct {
	name  string
	close func() error
}

// add adds a component, which is closed before those added earlier.
func (p *parts) add(name string, close func() error) { p.all = append(p.all, part{name, close}) }

// close closes all components, the first time it is called. If that takes longer than timeout, it returns an
// error that names the component that has not closed, and the rest is closed in the background.
func (p *parts) close(timeout time.Duration) error {
	p.once.Do(func() { p.err = p.closeAll(timeout) })
	return p.err
}

func (p *parts) closeAll(timeout time.Duration) error {
	done := make(chan error, 1)
	at := make(chan string, len(p.all))
	go func() { // ends when all components have closed
		var errs []error
		for i := len(p.all) - 1; i >= 0; i-- {
			at <- p.all[i].name
			if err := p.all[i].close(); err != nil {
				errs = append(errs, fmt.Errorf("close %s: %w", p.all[i].name, err))
			}
		}
		done <- errors.Join(errs...)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(timeout):
		var last string
		for len(at) > 0 {
			last = <-at
		}
		return fmt.Errorf("close %s: not done after %v", last, timeout)
	}
}

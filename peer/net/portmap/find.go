package portmap

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// Find searches for a router that maps ports until ctx ends; some seconds suffice.
func Find(ctx context.Context) Router {
	r, err := find(ctx)
	if err != nil {
		return Router{}
	}
	at, err := outsideOf(ctx, r)
	if err != nil {
		return Router{}
	}
	return Router{r.how(), at}
}

// outsideOf returns the external address of a router. It may be a private one, of an enclosing network. It
// may not be an address like 0.0.0.0 of a router without a connection, since for other machines that is
// their own machine.
func outsideOf(ctx context.Context, r router) (netip.Addr, error) {
	at, err := r.address(ctx)
	if err == nil && (!at.Is4() || !at.IsGlobalUnicast()) {
		err = fmt.Errorf("its external address is not public: %v", at)
	}
	return at, err
}

// find searches with both protocols, and returns the first router that answers.
func find(ctx context.Context) (router, error) {
	type answer struct {
		router router
		err    error
	}
	ways := []func(context.Context) (router, error){findPMP, findUPnP}
	answers := make(chan answer, len(ways))
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, way := range ways {
		asking.Go(func() { // ends with ctx, or within pmpTimeout
			r, err := way(ctx)
			answers <- answer{r, err}
		})
	}
	var errs []error
	for range ways {
		a := <-answers
		if a.err == nil {
			return a.router, nil
		}
		errs = append(errs, a.err)
	}
	return nil, errors.Join(errs...)
}

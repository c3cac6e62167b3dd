package portmap

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// Find searches for a router that maps ports, until ctx ends at the latest. A few seconds are enough. It returns
// the zero Router if it finds none.
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

// outsideOf returns the external address of a router. A private address is valid, since the router may be behind
// another router. An address such as 0.0.0.0 is not: a router without a connection reports it, and it would lead
// other machines to themselves.
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
	searches := []func(context.Context) (router, error){findPMP, findUPnP}
	answers := make(chan answer, len(searches))
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, search := range searches {
		asking.Go(func() { // ends with ctx, or within pmpTimeout
			r, err := search(ctx)
			answers <- answer{r, err}
		})
	}
	var errs []error
	for range searches {
		a := <-answers
		if a.err == nil {
			return a.router, nil
		}
		errs = append(errs, a.err)
	}
	return nil, errors.Join(errs...)
}

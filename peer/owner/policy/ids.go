package policy

import (
	"errors"
	"fmt"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// ParseIDs parses a list of peer IDs; option names the list in errors.
func ParseIDs(option string, list []string) ([]p2ppeer.ID, error) {
	var ids []p2ppeer.ID
	var errs []error
	for _, s := range list {
		id, err := p2ppeer.Decode(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: not a peer ID", option, s))
			continue
		}
		ids = append(ids, id)
	}
	return ids, errors.Join(errs...)
}

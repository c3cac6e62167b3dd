package peer

import (
	"fmt"
	"strings"

	p2ppeer "github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
)

// noListen is the value of --listen for a host that does not listen.
const noListen = "none"

// An addressList is the value of an option that lists multiaddrs. The addresses are parsed when the option is
// set, so that an error names the option, the variable or the file with the wrong address. The first use on the
// command line replaces the default. Further uses add addresses.
type addressList struct {
	texts []string             // the addresses as given; nil until the option is set
	parse func([]string) error // parses the texts and stores the result
}

// Set adds the addresses in text, which commas separate.
func (l *addressList) Set(text string) error { return l.Replace(append(l.texts, splitList(text)...)) }

// Append adds one address.
func (l *addressList) Append(text string) error { return l.Replace(append(l.texts, text)) }

// Replace sets the addresses.
func (l *addressList) Replace(texts []string) error {
	l.texts = texts
	return l.parse(texts)
}

// GetSlice returns the addresses as they were given.
func (l *addressList) GetSlice() []string { return l.texts }

// String returns a text that Set accepts. It is empty until the option is set.
func (l *addressList) String() string { return strings.Join(l.texts, ",") }

// Type returns the name of the value's type in error messages.
func (l *addressList) Type() string { return "list of multiaddrs" }

// splitList returns the elements of a list, which commas separate.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

func (c *Config) setListen(texts []string) (err error) {
	if len(texts) == 1 && texts[0] == noListen {
		texts = nil
	}
	c.Listen, err = parseAddresses(texts, "/ip4/0.0.0.0/tcp/4001")
	return err
}

// setSupernodes sets Supernodes to the addresses in texts. It merges addresses of the same peer.
func (c *Config) setSupernodes(texts []string) error {
	const example = "/ip4/192.0.2.1/tcp/4001/p2p/PEER-ID"
	addrs, err := parseAddresses(texts, example)
	if err != nil {
		return err
	}
	for i, a := range addrs {
		if _, err := p2ppeer.AddrInfoFromP2pAddr(a); err != nil {
			return notAnAddress(texts[i], example)
		}
	}
	c.Supernodes, err = p2ppeer.AddrInfosFromP2pAddrs(addrs...)
	return err
}

// parseAddresses parses multiaddrs. Its error shows the example.
func parseAddresses(texts []string, example string) (addrs []ma.Multiaddr, err error) {
	for _, text := range texts {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return nil, notAnAddress(text, example)
		}
		addrs = append(addrs, a)
	}
	return addrs, nil
}

func notAnAddress(text, example string) error {
	return fmt.Errorf("%q is not a multiaddr such as %s", text, example)
}

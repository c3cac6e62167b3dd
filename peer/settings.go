package peer

import (
	"cmp"
	"net"

	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/launch"
	"github.com/p2pmpi/p2pmpi/peer/net/networks"
)

// NetworkChoice returns the network that the owner has chosen.
func (c Config) NetworkChoice() networks.Choice {
	return networks.Choice{Name: c.Network, Open: c.Open, Token: c.Token, Home: cmp.Or(c.MemberOf, c.Home)}
}

// dataListen returns the address for direct connections in the launcher's form, or "" if there is none.
func (c Config) dataListen() string {
	switch c.DataListen {
	case "none":
		return ""
	case "":
	default:
		return c.DataListen
	}
	address := ""
	for _, a := range c.Listen {
		ip, err := manet.ToIP(a)
		switch {
		case err != nil:
		case ip.IsUnspecified():
			return ":0"
		case address == "":
			address = net.JoinHostPort(ip.String(), "0")
		}
	}
	return address
}

// chooseEngine returns the engine that runs WebAssembly modules here, and logs its name. It is the
// configured engine if that works, else the built-in one.
func (c Config) chooseEngine(home string, sandbox launch.Sandbox, log zerolog.Logger) launch.Engine {
	engine := launch.BuiltIn()
	if path := c.WasmEngine; path != "" {
		other, err := launch.ExamineEngine(home, path, sandbox)
		if err == nil {
			engine = other
		} else {
			log.Warn().Err(err).Msg("WebAssembly modules run in the built-in engine")
		}
	}
	log.Info().Str("engine", engine.Name).Msg("chose the engine for WebAssembly modules")
	return engine
}

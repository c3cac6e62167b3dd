package peer

import (
	"os"
	"path/filepath"

	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// builtIn is the value of Config.WasmEngine for none but the engine that is built in.
const builtIn = "wazero"

// engineBeside is the name of the engine that is looked for beside this program.
const engineBeside = "p2pmpi-wasmtime"

// chooseEngine finds the engine that runs modules here, and says which one it is.
func (p *Peer) chooseEngine() launch.Engine {
	engine := launch.BuiltIn()
	if path := p.cfg.engine(); path != "" {
		other, err := launch.ExamineEngine(string(p.home), path, p.walls)
		if err == nil {
			engine = other
		} else {
			p.log.Warn().Err(err).Msg("WebAssembly modules are run by the engine that is built in")
		}
	}
	p.log.Info().Str("engine", engine.Name).Msg("runs WebAssembly modules")
	return engine
}

// engine is the executable of the engine to try; empty is none.
func (c Config) engine() string {
	switch c.WasmEngine {
	case builtIn:
		return ""
	case "":
	default:
		return c.WasmEngine
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	path := filepath.Join(filepath.Dir(self), engineBeside)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

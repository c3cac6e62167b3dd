package peer

import "github.com/p2pmpi/p2pmpi/peer/launch"

// chooseEngine returns the engine that runs WebAssembly modules here, and logs its name. It is the
// configured engine if that works, else the built-in one.
func (p *Peer) chooseEngine() launch.Engine {
	engine := launch.BuiltIn()
	if path := p.cfg.WasmEngine; path != "" {
		other, err := launch.ExamineEngine(string(p.home), path, p.walls)
		if err == nil {
			engine = other
		} else {
			p.log.Warn().Err(err).Msg("WebAssembly modules run in the built-in engine")
		}
	}
	p.log.Info().Str("engine", engine.Name).Msg("runs WebAssembly modules")
	return engine
}

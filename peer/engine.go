package peer

import (
	"github.com/rs/zerolog"

	"github.com/p2pmpi/p2pmpi/peer/launch"
)

// chooseEngine returns the engine that runs WebAssembly modules here, and logs its name. It is the
// configured engine if that works, else the built-in one.
func (c Config) chooseEngine(home string, walls launch.Walls, log zerolog.Logger) launch.Engine {
	engine := launch.BuiltIn()
	if path := c.WasmEngine; path != "" {
		other, err := launch.ExamineEngine(home, path, walls)
		if err == nil {
			engine = other
		} else {
			log.Warn().Err(err).Msg("WebAssembly modules run in the built-in engine")
		}
	}
	log.Info().Str("engine", engine.Name).Msg("runs WebAssembly modules")
	return engine
}

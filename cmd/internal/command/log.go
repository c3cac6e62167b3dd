package command

import (
	"io"
	"log/slog"
	"time"

	"github.com/libp2p/go-libp2p/gologshim"
	"github.com/rs/zerolog"
)

// Logger returns a logger of the given level that writes to w: human-readable text if w is a terminal,
// otherwise one JSON object per line.
func Logger(w io.Writer, level string) (zerolog.Logger, error) {
	l, err := zerolog.ParseLevel(level)
	if err != nil {
		return zerolog.Nop(), UsageError("log-level %q: want trace, debug, info, warn or error", level)
	}
	if IsTerminal(w) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly}
	}
	log := zerolog.New(w).Level(l).With().Timestamp().Logger()
	captureLibp2p(log)
	return log, nil
}

// captureLibp2p redirects libp2p's log messages, which would go to standard error in another format, to
// log. Unless log's level is debug or lower, it discards them, because problems that concern the owner
// are also returned as errors.
func captureLibp2p(log zerolog.Logger) {
	handler := slog.DiscardHandler
	if log.GetLevel() <= zerolog.DebugLevel {
		handler = zerolog.NewSlogHandler(log)
	}
	gologshim.SetDefaultHandler(handler)
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	return Width(w) > 0
}

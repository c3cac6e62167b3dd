package peer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// maxLog bounds the log of a detached peer, in bytes; what was before is kept in as many more.
const maxLog = 8 << 20

// OpenLog opens the file for the messages of a detached peer, to append to,
// and makes the home if need be. The error is a *HomeError.
func OpenLog(dir string) (*os.File, error) {
	h, err := openHome(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(string(h), "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, &HomeError{string(h), plainPathError(err)}
	}
	return f, nil
}

// BoundLog returns a writer to w, or, if that is the log of a home as OpenLog opens it, one that keeps it from
// filling the disk: once it has 8 MiB, it becomes log.old. Several goroutines may write to it. What others write
// to the file, as the runtime does when the program crashes, stays in it.
func BoundLog(dir string, w io.Writer) io.Writer {
	f, ok := w.(*os.File)
	if !ok {
		return w
	}
	path := filepath.Join(dir, "log")
	there, err := os.Stat(path)
	if err != nil {
		return w
	}
	if is, err := f.Stat(); err != nil || !os.SameFile(there, is) {
		return w
	}
	return &boundLog{file: f, old: path + ".old", most: maxLog}
}

type boundLog struct {
	old  string
	most int64

	mu   sync.Mutex
	file *os.File
}

func (l *boundLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is, err := l.file.Stat(); err == nil && is.Size()+int64(len(line)) > l.most {
		if err := l.begin(is.Size()); err != nil {
			fmt.Fprintf(l.file, "{\"level\":\"warn\",\"error\":%q,\"message\":\"what was in the log is lost\"}\n", err)
		}
	}
	return l.file.Write(line)
}

// begin makes what has been written the old log, and begins anew in any case.
func (l *boundLog) begin(size int64) error {
	text := make([]byte, min(size, l.most))
	_, err := l.file.ReadAt(text, size-int64(len(text)))
	if err == nil {
		err = atomicfile.Write(l.old, text)
	}
	return errors.Join(err, l.file.Truncate(0))
}

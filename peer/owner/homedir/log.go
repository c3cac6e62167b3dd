package homedir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/p2pmpi/p2pmpi/internal/atomicfile"
)

// maxLog bounds the log of a detached peer, in bytes; log.old may take as many.
const maxLog = 8 << 20

// OpenLog opens the log file of a detached peer for appending. It creates the home if necessary. The error
// is a *Error.
func OpenLog(dir string) (*os.File, error) {
	h, err := Open(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(string(h), "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, &Error{string(h), PlainPathError(err)}
	}
	return f, nil
}

// BoundLog returns a writer that rotates the log if w is the log file of the home dir: a log that has
// reached 8 MiB becomes log.old. Otherwise it returns w. Several goroutines of one process may use the
// writer. Output that another process writes during the rotation is lost.
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
	own, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0) // independent of the mode in which w was opened
	if err != nil {
		return w
	}
	return &boundLog{file: own, old: path + ".old", most: maxLog}
}

// A boundLog rotates a log file. It stays open as long as this process runs.
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
			why, _ := json.Marshal(err.Error())
			fmt.Fprintf(l.file, `{"level":"warn","error":%s,"message":"the log cannot be rotated"}`+"\n", why)
		}
	}
	return l.file.Write(line)
}

// begin copies the log to log.old and truncates it. It truncates the log even if the copy fails.
func (l *boundLog) begin(size int64) error {
	text := make([]byte, min(size, l.most))
	_, err := l.file.ReadAt(text, size-int64(len(text)))
	if err == nil {
		err = atomicfile.Write(l.old, text)
	}
	wrong := l.file.Truncate(0)
	if wrong != nil {
		l.most = math.MaxInt64 // avoids a new attempt for each line
	}
	return errors.Join(err, wrong)
}

package channel

import "errors"

// LocalPipe returns both ends of a pipe within this process.
func LocalPipe() (*PipeWriter, *PipeReader, error) {
	w, r, err := newLocalPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := useHeap(w, r); err != nil {
		return nil, nil, errors.Join(err, w.Close(), r.Close())
	}
	return w, r, nil
}

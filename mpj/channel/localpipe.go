package channel

import "errors"

// LocalPipe returns both ends of a pipe within this process.
func LocalPipe() (*PipeWriter, *PipeReader, error) {
	in, out, err := NewPipe(true)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	defer out.Close()
	w, err := OpenPipeWriter(in)
	if err != nil {
		return nil, nil, err
	}
	r, err := OpenPipeReader(out, false)
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	if err := useHeap(w, r); err != nil {
		return nil, nil, errors.Join(err, w.Close(), r.Close())
	}
	return w, r, nil
}

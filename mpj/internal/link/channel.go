package link

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// takeBoard maps the board f, if the peer has one, and closes f.
func (l *Link) takeBoard(f *os.File, cell int) (err error) {
	if f == nil {
		return nil
	}
	defer f.Close()
	if l.board, err = channel.MapBoard(f); err != nil {
		return err
	}
	l.bell, err = l.board.Bell(cell)
	return err
}

// bellOf returns the bell of the process that m is about.
func (l *Link) bellOf(m proclink.Message) (*channel.Bell, error) {
	if l.board == nil {
		return nil, errors.New("shared memory without a board")
	}
	return l.board.Bell(m.Cell)
}

// sender returns the writing end of the channel that message m and descriptor f describe, and
// closes f.
func (l *Link) sender(ctx context.Context, m proclink.Message, f *os.File) (channel.Sender, error) {
	defer f.Close()
	switch m.Kind {
	case proclink.Shm:
		other, err := l.bellOf(m)
		if err != nil {
			return nil, err
		}
		return channel.OpenShmSender(f, l.bell, other)
	case proclink.TCP:
		conn, err := channel.OpenTCP(f)
		if err != nil {
			return nil, err
		}
		return channel.OpenTCPSender(ctx, conn, l.identity, m.Key)
	case proclink.Stream:
		pipe, err := channel.OpenPipeWriter(f)
		if err != nil {
			return nil, err
		}
		return channel.NewPipeSender(pipe), nil
	}
	return nil, errKind(m.Kind)
}

// receiver returns the reading end of the channel that message m and descriptor f describe, and
// closes f.
func (l *Link) receiver(m proclink.Message, f *os.File) (channel.Receiver, error) {
	defer f.Close()
	switch m.Kind {
	case proclink.Shm:
		other, err := l.bellOf(m)
		if err != nil {
			return nil, err
		}
		return channel.OpenShmReceiver(f, l.bell, other)
	case proclink.TCP:
		conn, err := channel.OpenTCP(f)
		if err != nil {
			return nil, err
		}
		return channel.OpenTCPReceiver(conn, l.identity, m.Key), nil
	case proclink.Stream:
		pipe, err := channel.OpenPipeReader(f, true)
		if err != nil {
			return nil, err
		}
		return channel.NewStreamReceiver(pipe), nil
	}
	return nil, errKind(m.Kind)
}

func errKind(k proclink.Kind) error { return fmt.Errorf("channel of unknown kind %.20q", string(k)) }

package engine
import ("context";"errors")
const (AnySource=-1;AnyTag=-1)
type Engine struct{}
type Request struct{}
type Status struct{Source int; Tag int32; Size int}
type TruncateError struct{}
func (*TruncateError) Error() string {return ""}
var ErrClosed=errors.New("closed")
func (e *Engine) Send(context uint32, dest int, tag int32, payload []byte) error {return nil}
func (e *Engine) Isend(context uint32, dest int, tag int32, payload []byte) (*Request, error) {return nil,nil}
func (e *Engine) Recv(context uint32, source int, tag int32, buf []byte) (Status, error) {return Status{},nil}
func (e *Engine) Irecv(context uint32, source int, tag int32, buf []byte) (*Request, error) {return nil,nil}
func (e *Engine) RecvWhole(context uint32, source int, tag int32) ([]byte,Status,error) {return nil,Status{},nil}
func (e *Engine) Probe(context uint32, source int, tag int32) (Status, error) {return Status{},nil}
func (e *Engine) Iprobe(context uint32, source int, tag int32) (Status, bool, error) {return Status{},false,nil}
func (e *Engine) Wait(r *Request) (Status, error) {return Status{},nil}
func (e *Engine) Waitany(rs []*Request) (int, error) {return 0,nil}
func (e *Engine) Waitsome(rs []*Request) ([]int, error) {return nil,nil}
func (e *Engine) Testall(rs []*Request) (bool, error) {return false,nil}
func (e *Engine) Testany(rs []*Request) (int, error) {return 0,nil}
func (e *Engine) Testsome(rs []*Request) ([]int, error) {return nil,nil}
func (e *Engine) Wtime() (float64,error) {return 0,nil}
func (e *Engine) Flush() error {return nil}
func (e *Engine) Close() {}
func (e *Engine) Context() context.Context {return nil}

package guest

import "unsafe"

// The host's functions, documented in package hostcall.

//go:wasmimport p2pmpi_1 join
func hostJoin(info unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 finalize
func hostFinalize(later uint32) int32

//go:wasmimport p2pmpi_1 abort
func hostAbort(code int32, text unsafe.Pointer, size uint32)

//go:wasmimport p2pmpi_1 fail
func hostFail()

//go:wasmimport p2pmpi_1 close
func hostClose()

//go:wasmimport p2pmpi_1 next
func hostNext(timeout int64, event unsafe.Pointer) int32

//go:wasmimport p2pmpi_1 error_text
func hostErrorText(buf unsafe.Pointer, size uint32) uint32

//go:wasmimport p2pmpi_1 take
func hostTake(bytes uint32, buf unsafe.Pointer, size uint32) int32

//go:wasmimport p2pmpi_1 send
func hostSend(context uint32, dest, tag int32, buf unsafe.Pointer, size uint32, mode uint32, later uint32) int32

//go:wasmimport p2pmpi_1 isend
func hostIsend(context uint32, dest, tag int32, buf unsafe.Pointer, size uint32, mode uint32, request unsafe.Pointer) int32

//go:wasmimport p2pmpi_1 recv
func hostRecv(context uint32, source, tag int32, buf unsafe.Pointer, size uint32, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 irecv
func hostIrecv(context uint32, source, tag int32, buf unsafe.Pointer, size uint32, request unsafe.Pointer) int32

//go:wasmimport p2pmpi_1 recv_whole
func hostRecvWhole(context uint32, source, tag int32, bytes, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 sendrecv
func hostSendrecv(context uint32, dest, sendTag int32, send unsafe.Pointer, sendSize uint32, source, recvTag int32, recv unsafe.Pointer, recvSize uint32, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 swap
func hostSwap(context uint32, tag, dest int32, send unsafe.Pointer, sendSize uint32, source int32, recv unsafe.Pointer, recvSize uint32, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 exchange
func hostExchange(context uint32, tag int32, out unsafe.Pointer, outs uint32, in unsafe.Pointer, ins uint32, later uint32) int32

//go:wasmimport p2pmpi_1 wait
func hostWait(request uint32, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 waitany
func hostWaitany(requests unsafe.Pointer, n uint32, index unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 waitsome
func hostWaitsome(requests unsafe.Pointer, n uint32, indices, count unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 testany
func hostTestany(requests unsafe.Pointer, n uint32, index unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 testsome
func hostTestsome(requests unsafe.Pointer, n uint32, indices, count unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 testall
func hostTestall(requests unsafe.Pointer, n uint32, done unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 wait_until
func hostWaitUntil(request uint32, done unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 probe_until
func hostProbeUntil(context uint32, source, tag int32, found, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 give_up
func hostGiveUp(later uint32)

//go:wasmimport p2pmpi_1 cancel
func hostCancel(request uint32) int32

//go:wasmimport p2pmpi_1 begin
func hostBegin() uint32

//go:wasmimport p2pmpi_1 finish
func hostFinish(request uint32)

//go:wasmimport p2pmpi_1 probe
func hostProbe(context uint32, source, tag int32, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 iprobe
func hostIprobe(context uint32, source, tag int32, found, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 mprobe
func hostMprobe(context uint32, source, tag int32, message, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 improbe
func hostImprobe(context uint32, source, tag int32, message, status unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 imrecv
func hostImrecv(message uint32, buf unsafe.Pointer, size uint32, request unsafe.Pointer) int32

//go:wasmimport p2pmpi_1 choose
func hostChoose(context uint32, value int64, out unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 wtime
func hostWtime(out unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 random_seed
func hostRandomSeed(out unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 flush
func hostFlush(later uint32) int32

//go:wasmimport p2pmpi_1 unmatched
func hostUnmatched(bytes, size unsafe.Pointer) int32

//go:wasmimport p2pmpi_1 forget
func hostForget(context uint32)

//go:wasmimport p2pmpi_1 abandon
func hostAbandon(context uint32)

//go:wasmimport p2pmpi_1 checkpoint
func hostCheckpoint(step unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 checkpoint_end
func hostCheckpointEnd(outcome uint32, buf unsafe.Pointer, size uint32, step unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 checkpoint_write
func hostCheckpointWrite(buf unsafe.Pointer, size uint32) int32

//go:wasmimport p2pmpi_1 checkpoint_read
func hostCheckpointRead(buf unsafe.Pointer, size uint32) int32

//go:wasmimport p2pmpi_1 printed
func hostPrinted(records unsafe.Pointer, later uint32) int32

//go:wasmimport p2pmpi_1 skip
func hostSkip(records unsafe.Pointer, later uint32) int32

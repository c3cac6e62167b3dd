#include "textflag.h"

// func storeLines(to, from *byte, lines int)
TEXT ·storeLines(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ lines+16(FP), CX
loop:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVNTO X0, (DI)
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	DECQ CX
	JNZ  loop
	SFENCE // non-temporal stores are not ordered otherwise
	RET

// func vendor() (b, d, c uint32)
TEXT ·vendor(SB), NOSPLIT, $0-12
	XORL AX, AX
	CPUID
	MOVL BX, b+0(FP)
	MOVL DX, d+4(FP)
	MOVL CX, c+8(FP)
	RET

#include "textflag.h"

// A step of the loop takes 64 bytes: two vectors of four pairs each. Y8 and Y10 add up products of the first sum. Y9 and
// Y11 add up those of the second sum, which takes the words of the key from 8 bytes further on.

// func vectorNH(words *keyWords, b *byte, n int) (s0, s1 uint64)
TEXT ·vectorNH(SB), NOSPLIT, $0-40
	MOVQ  words+0(FP), DI
	MOVQ  b+8(FP), SI
	MOVQ  n+16(FP), CX
	VPXOR Y8, Y8, Y8
	VPXOR Y9, Y9, Y9
	VPXOR Y10, Y10, Y10
	VPXOR Y11, Y11, Y11

loop:
	VMOVDQU  (SI), Y0
	VMOVDQU  32(SI), Y5
	VPADDD   (DI), Y0, Y1
	VPADDD   8(DI), Y0, Y2
	VPADDD   32(DI), Y5, Y6
	VPADDD   40(DI), Y5, Y7
	VPSRLQ   $32, Y1, Y3
	VPSRLQ   $32, Y2, Y4
	VPSRLQ   $32, Y6, Y12
	VPSRLQ   $32, Y7, Y13
	VPMULUDQ Y1, Y3, Y3
	VPMULUDQ Y2, Y4, Y4
	VPMULUDQ Y6, Y12, Y12
	VPMULUDQ Y7, Y13, Y13
	VPADDQ   Y3, Y8, Y8
	VPADDQ   Y4, Y9, Y9
	VPADDQ   Y12, Y10, Y10
	VPADDQ   Y13, Y11, Y11
	ADDQ     $64, SI
	ADDQ     $64, DI
	SUBQ     $64, CX
	JNZ      loop

	VPADDQ       Y10, Y8, Y8
	VPADDQ       Y11, Y9, Y9
	VEXTRACTI128 $1, Y8, X0
	VEXTRACTI128 $1, Y9, X1
	VPADDQ       X0, X8, X8
	VPADDQ       X1, X9, X9
	VPSRLDQ      $8, X8, X0
	VPSRLDQ      $8, X9, X1
	VPADDQ       X0, X8, X8
	VPADDQ       X1, X9, X9
	VMOVQ        X8, AX
	VMOVQ        X9, BX
	VZEROUPPER
	MOVQ         AX, s0+24(FP)
	MOVQ         BX, s1+32(FP)
	RET

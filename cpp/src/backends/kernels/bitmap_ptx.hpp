// Made by tools/make_ptx.py of bitmap.cu with CUDA 13.0: not to be edited.
#pragma once

namespace arrowdl {

// clang-format off
inline constexpr char kExpandPtx[] = R"ptx(
.version 6.0
.target sm_52
.address_size 64
)ptx"
    R"ptx(.visible .entry expand_bits(
	.param .u64 expand_bits_param_0,
	.param .u64 expand_bits_param_1,
	.param .u64 expand_bits_param_2,
	.param .u64 expand_bits_param_3,
	.param .u64 expand_bits_param_4
)
{
	.reg .pred 	%p<10>;
	.reg .b16 	%rs<4>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<38>;
	ld.param.u64 	%rd19, [expand_bits_param_0];
	ld.param.u64 	%rd15, [expand_bits_param_1];
	ld.param.u64 	%rd16, [expand_bits_param_2];
	ld.param.u64 	%rd17, [expand_bits_param_3];
	ld.param.u64 	%rd18, [expand_bits_param_4];
	cvta.to.global.u64 	%rd1, %rd19;
	cvta.to.global.u64 	%rd2, %rd16;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd20, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd21, %r2;
	add.s64 	%rd34, %rd20, %rd21;
	setp.ge.s64 	%p1, %rd34, %rd15;
	@%p1 bra 	$L__BB0_10;
	setp.eq.s64 	%p2, %rd16, 0;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd22, %r3;
	mul.lo.s64 	%rd5, %rd22, %rd3;
	@%p2 bra 	$L__BB0_9;
	setp.eq.s64 	%p3, %rd18, 1;
	@%p3 bra 	$L__BB0_7;
	bra.uni 	$L__BB0_3;
$L__BB0_7:
	cvt.u32.u64 	%r18, %rd3;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd17;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
$L__BB0_8:
	.pragma "nounroll";
	add.s64 	%rd29, %rd17, %rd34;
	shr.s64 	%rd30, %rd29, 3;
	add.s64 	%rd31, %rd2, %rd30;
	ld.global.u8 	%r21, [%rd31];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p7, %r25, 0;
	selp.u16 	%rs2, 1, 0, %p7;
	add.s64 	%rd32, %rd1, %rd34;
	st.global.u8 	[%rd32], %rs2;
	add.s32 	%r26, %r26, %r5;
	add.s64 	%rd34, %rd34, %rd5;
	setp.lt.s64 	%p8, %rd34, %rd15;
	@%p8 bra 	$L__BB0_8;
	bra.uni 	$L__BB0_10;
$L__BB0_9:
	.pragma "nounroll";
	add.s64 	%rd33, %rd1, %rd34;
	mov.u16 	%rs3, 1;
	st.global.u8 	[%rd33], %rs3;
	add.s64 	%rd34, %rd34, %rd5;
	setp.lt.s64 	%p9, %rd34, %rd15;
	@%p9 bra 	$L__BB0_9;
	bra.uni 	$L__BB0_10;
$L__BB0_3:
	.pragma "nounroll";
	or.b64  	%rd23, %rd34, %rd18;
	and.b64  	%rd24, %rd23, -4294967296;
	setp.eq.s64 	%p4, %rd24, 0;
	@%p4 bra 	$L__BB0_5;
	div.s64 	%rd35, %rd34, %rd18;
	bra.uni 	$L__BB0_6;
$L__BB0_5:
	cvt.u32.u64 	%r9, %rd18;
	cvt.u32.u64 	%r10, %rd34;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd35, %r11;
$L__BB0_6:
	add.s64 	%rd25, %rd35, %rd17;
	shr.s64 	%rd26, %rd25, 3;
	add.s64 	%rd27, %rd2, %rd26;
	ld.global.u8 	%r12, [%rd27];
	cvt.u32.u64 	%r13, %rd25;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p5, %r17, 0;
	selp.u16 	%rs1, 1, 0, %p5;
	add.s64 	%rd28, %rd1, %rd34;
	st.global.u8 	[%rd28], %rs1;
	add.s64 	%rd34, %rd34, %rd5;
	setp.lt.s64 	%p6, %rd34, %rd15;
	@%p6 bra 	$L__BB0_3;
$L__BB0_10:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_1(
	.param .u64 fill_unset_1_param_0,
	.param .u64 fill_unset_1_param_1,
	.param .u64 fill_unset_1_param_2,
	.param .u64 fill_unset_1_param_3,
	.param .u64 fill_unset_1_param_4,
	.param .u8 fill_unset_1_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<34>;
	ld.param.u8 	%rs1, [fill_unset_1_param_5];
	ld.param.u64 	%rd16, [fill_unset_1_param_0];
	ld.param.u64 	%rd13, [fill_unset_1_param_1];
	ld.param.u64 	%rd17, [fill_unset_1_param_2];
	ld.param.u64 	%rd14, [fill_unset_1_param_3];
	ld.param.u64 	%rd15, [fill_unset_1_param_4];
	cvta.to.global.u64 	%rd1, %rd16;
	cvta.to.global.u64 	%rd2, %rd17;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd18, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd19, %r2;
	add.s64 	%rd31, %rd18, %rd19;
	setp.ge.s64 	%p1, %rd31, %rd13;
	@%p1 bra 	$L__BB1_13;
	setp.eq.s64 	%p2, %rd15, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd20, %r3;
	mul.lo.s64 	%rd5, %rd20, %rd3;
	@%p2 bra 	$L__BB1_9;
	bra.uni 	$L__BB1_2;
$L__BB1_9:
	cvt.u32.u64 	%r18, %rd3;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd14;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
$L__BB1_10:
	.pragma "nounroll";
	add.s64 	%rd27, %rd14, %rd31;
	shr.s64 	%rd28, %rd27, 3;
	add.s64 	%rd29, %rd2, %rd28;
	ld.global.u8 	%r21, [%rd29];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p6, %r25, 0;
	@%p6 bra 	$L__BB1_12;
	add.s64 	%rd30, %rd1, %rd31;
	st.global.u8 	[%rd30], %rs1;
$L__BB1_12:
	add.s64 	%rd31, %rd31, %rd5;
	add.s32 	%r26, %r26, %r5;
	setp.lt.s64 	%p7, %rd31, %rd13;
	@%p7 bra 	$L__BB1_10;
	bra.uni 	$L__BB1_13;
$L__BB1_2:
	cvt.u32.u64 	%r9, %rd15;
$L__BB1_3:
	.pragma "nounroll";
	or.b64  	%rd21, %rd31, %rd15;
	and.b64  	%rd22, %rd21, -4294967296;
	setp.eq.s64 	%p3, %rd22, 0;
	@%p3 bra 	$L__BB1_5;
	div.s64 	%rd32, %rd31, %rd15;
	bra.uni 	$L__BB1_6;
$L__BB1_5:
	cvt.u32.u64 	%r10, %rd31;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd32, %r11;
$L__BB1_6:
	add.s64 	%rd23, %rd32, %rd14;
	shr.s64 	%rd24, %rd23, 3;
	add.s64 	%rd25, %rd2, %rd24;
	ld.global.u8 	%r12, [%rd25];
	cvt.u32.u64 	%r13, %rd23;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p4, %r17, 0;
	@%p4 bra 	$L__BB1_8;
	add.s64 	%rd26, %rd1, %rd31;
	st.global.u8 	[%rd26], %rs1;
$L__BB1_8:
	add.s64 	%rd31, %rd31, %rd5;
	setp.lt.s64 	%p5, %rd31, %rd13;
	@%p5 bra 	$L__BB1_3;
$L__BB1_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_2(
	.param .u64 fill_unset_2_param_0,
	.param .u64 fill_unset_2_param_1,
	.param .u64 fill_unset_2_param_2,
	.param .u64 fill_unset_2_param_3,
	.param .u64 fill_unset_2_param_4,
	.param .u16 fill_unset_2_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b16 	%rs<2>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<44>;
	ld.param.u64 	%rd24, [fill_unset_2_param_0];
	ld.param.u64 	%rd21, [fill_unset_2_param_1];
	ld.param.u64 	%rd25, [fill_unset_2_param_2];
	ld.param.u64 	%rd22, [fill_unset_2_param_3];
	ld.param.u64 	%rd23, [fill_unset_2_param_4];
	ld.param.u16 	%rs1, [fill_unset_2_param_5];
	cvta.to.global.u64 	%rd1, %rd24;
	cvta.to.global.u64 	%rd2, %rd25;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd26, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd27, %r2;
	add.s64 	%rd40, %rd26, %rd27;
	setp.ge.s64 	%p1, %rd40, %rd21;
	@%p1 bra 	$L__BB2_13;
	setp.eq.s64 	%p2, %rd23, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd28, %r3;
	mul.lo.s64 	%rd5, %rd28, %rd3;
	@%p2 bra 	$L__BB2_9;
	bra.uni 	$L__BB2_2;
$L__BB2_9:
	cvt.u32.u64 	%r18, %rd3;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd22;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
	shl.b64 	%rd35, %rd40, 1;
	add.s64 	%rd42, %rd1, %rd35;
	shl.b64 	%rd16, %rd5, 1;
$L__BB2_10:
	.pragma "nounroll";
	add.s64 	%rd36, %rd22, %rd40;
	shr.s64 	%rd37, %rd36, 3;
	add.s64 	%rd38, %rd2, %rd37;
	ld.global.u8 	%r21, [%rd38];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p6, %r25, 0;
	@%p6 bra 	$L__BB2_12;
	st.global.u16 	[%rd42], %rs1;
$L__BB2_12:
	add.s32 	%r26, %r26, %r5;
	add.s64 	%rd42, %rd42, %rd16;
	add.s64 	%rd40, %rd40, %rd5;
	setp.lt.s64 	%p7, %rd40, %rd21;
	@%p7 bra 	$L__BB2_10;
	bra.uni 	$L__BB2_13;
$L__BB2_2:
	shl.b64 	%rd29, %rd40, 1;
	add.s64 	%rd39, %rd1, %rd29;
	shl.b64 	%rd7, %rd5, 1;
	cvt.u32.u64 	%r9, %rd23;
$L__BB2_3:
	.pragma "nounroll";
	or.b64  	%rd30, %rd40, %rd23;
	and.b64  	%rd31, %rd30, -4294967296;
	setp.eq.s64 	%p3, %rd31, 0;
	@%p3 bra 	$L__BB2_5;
	div.s64 	%rd41, %rd40, %rd23;
	bra.uni 	$L__BB2_6;
$L__BB2_5:
	cvt.u32.u64 	%r10, %rd40;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd41, %r11;
$L__BB2_6:
	add.s64 	%rd32, %rd41, %rd22;
	shr.s64 	%rd33, %rd32, 3;
	add.s64 	%rd34, %rd2, %rd33;
	ld.global.u8 	%r12, [%rd34];
	cvt.u32.u64 	%r13, %rd32;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p4, %r17, 0;
	@%p4 bra 	$L__BB2_8;
	st.global.u16 	[%rd39], %rs1;
$L__BB2_8:
	add.s64 	%rd39, %rd39, %rd7;
	add.s64 	%rd40, %rd40, %rd5;
	setp.lt.s64 	%p5, %rd40, %rd21;
	@%p5 bra 	$L__BB2_3;
$L__BB2_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_4(
	.param .u64 fill_unset_4_param_0,
	.param .u64 fill_unset_4_param_1,
	.param .u64 fill_unset_4_param_2,
	.param .u64 fill_unset_4_param_3,
	.param .u64 fill_unset_4_param_4,
	.param .u32 fill_unset_4_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b32 	%r<28>;
	.reg .b64 	%rd<44>;
	ld.param.u64 	%rd24, [fill_unset_4_param_0];
	ld.param.u64 	%rd21, [fill_unset_4_param_1];
	ld.param.u64 	%rd25, [fill_unset_4_param_2];
	ld.param.u64 	%rd22, [fill_unset_4_param_3];
	ld.param.u64 	%rd23, [fill_unset_4_param_4];
	ld.param.u32 	%r8, [fill_unset_4_param_5];
	cvta.to.global.u64 	%rd1, %rd24;
	cvta.to.global.u64 	%rd2, %rd25;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r9, %ntid.x;
	cvt.u64.u32 	%rd3, %r9;
	mul.wide.u32 	%rd26, %r1, %r9;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd27, %r2;
	add.s64 	%rd40, %rd26, %rd27;
	setp.ge.s64 	%p1, %rd40, %rd21;
	@%p1 bra 	$L__BB3_13;
	setp.eq.s64 	%p2, %rd23, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd28, %r3;
	mul.lo.s64 	%rd5, %rd28, %rd3;
	@%p2 bra 	$L__BB3_9;
	bra.uni 	$L__BB3_2;
$L__BB3_9:
	cvt.u32.u64 	%r19, %rd3;
	mad.lo.s32 	%r20, %r19, %r1, %r2;
	cvt.u32.u64 	%r21, %rd22;
	add.s32 	%r27, %r20, %r21;
	mul.lo.s32 	%r5, %r19, %r3;
	shl.b64 	%rd35, %rd40, 2;
	add.s64 	%rd42, %rd1, %rd35;
	shl.b64 	%rd16, %rd5, 2;
$L__BB3_10:
	.pragma "nounroll";
	add.s64 	%rd36, %rd22, %rd40;
	shr.s64 	%rd37, %rd36, 3;
	add.s64 	%rd38, %rd2, %rd37;
	ld.global.u8 	%r22, [%rd38];
	and.b32  	%r23, %r27, 7;
	mov.u32 	%r24, 1;
	shl.b32 	%r25, %r24, %r23;
	and.b32  	%r26, %r25, %r22;
	setp.ne.s32 	%p6, %r26, 0;
	@%p6 bra 	$L__BB3_12;
	st.global.u32 	[%rd42], %r8;
$L__BB3_12:
	add.s32 	%r27, %r27, %r5;
	add.s64 	%rd42, %rd42, %rd16;
	add.s64 	%rd40, %rd40, %rd5;
	setp.lt.s64 	%p7, %rd40, %rd21;
	@%p7 bra 	$L__BB3_10;
	bra.uni 	$L__BB3_13;
$L__BB3_2:
	shl.b64 	%rd29, %rd40, 2;
	add.s64 	%rd39, %rd1, %rd29;
	shl.b64 	%rd7, %rd5, 2;
	cvt.u32.u64 	%r10, %rd23;
$L__BB3_3:
	.pragma "nounroll";
	or.b64  	%rd30, %rd40, %rd23;
	and.b64  	%rd31, %rd30, -4294967296;
	setp.eq.s64 	%p3, %rd31, 0;
	@%p3 bra 	$L__BB3_5;
	div.s64 	%rd41, %rd40, %rd23;
	bra.uni 	$L__BB3_6;
$L__BB3_5:
	cvt.u32.u64 	%r11, %rd40;
	div.u32 	%r12, %r11, %r10;
	cvt.u64.u32 	%rd41, %r12;
$L__BB3_6:
	add.s64 	%rd32, %rd41, %rd22;
	shr.s64 	%rd33, %rd32, 3;
	add.s64 	%rd34, %rd2, %rd33;
	ld.global.u8 	%r13, [%rd34];
	cvt.u32.u64 	%r14, %rd32;
	and.b32  	%r15, %r14, 7;
	mov.u32 	%r16, 1;
	shl.b32 	%r17, %r16, %r15;
	and.b32  	%r18, %r17, %r13;
	setp.ne.s32 	%p4, %r18, 0;
	@%p4 bra 	$L__BB3_8;
	st.global.u32 	[%rd39], %r8;
$L__BB3_8:
	add.s64 	%rd39, %rd39, %rd7;
	add.s64 	%rd40, %rd40, %rd5;
	setp.lt.s64 	%p5, %rd40, %rd21;
	@%p5 bra 	$L__BB3_3;
$L__BB3_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_8(
	.param .u64 fill_unset_8_param_0,
	.param .u64 fill_unset_8_param_1,
	.param .u64 fill_unset_8_param_2,
	.param .u64 fill_unset_8_param_3,
	.param .u64 fill_unset_8_param_4,
	.param .u64 fill_unset_8_param_5
)
{
	.reg .pred 	%p<8>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<45>;
	ld.param.u64 	%rd25, [fill_unset_8_param_0];
	ld.param.u64 	%rd21, [fill_unset_8_param_1];
	ld.param.u64 	%rd26, [fill_unset_8_param_2];
	ld.param.u64 	%rd22, [fill_unset_8_param_3];
	ld.param.u64 	%rd23, [fill_unset_8_param_4];
	ld.param.u64 	%rd24, [fill_unset_8_param_5];
	cvta.to.global.u64 	%rd1, %rd25;
	cvta.to.global.u64 	%rd2, %rd26;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd27, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd28, %r2;
	add.s64 	%rd41, %rd27, %rd28;
	setp.ge.s64 	%p1, %rd41, %rd21;
	@%p1 bra 	$L__BB4_13;
	setp.eq.s64 	%p2, %rd23, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd29, %r3;
	mul.lo.s64 	%rd5, %rd29, %rd3;
	@%p2 bra 	$L__BB4_9;
	bra.uni 	$L__BB4_2;
$L__BB4_9:
	cvt.u32.u64 	%r18, %rd3;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd22;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
	shl.b64 	%rd36, %rd41, 3;
	add.s64 	%rd43, %rd1, %rd36;
	shl.b64 	%rd16, %rd5, 3;
$L__BB4_10:
	.pragma "nounroll";
	add.s64 	%rd37, %rd22, %rd41;
	shr.s64 	%rd38, %rd37, 3;
	add.s64 	%rd39, %rd2, %rd38;
	ld.global.u8 	%r21, [%rd39];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p6, %r25, 0;
	@%p6 bra 	$L__BB4_12;
	st.global.u64 	[%rd43], %rd24;
$L__BB4_12:
	add.s32 	%r26, %r26, %r5;
	add.s64 	%rd43, %rd43, %rd16;
	add.s64 	%rd41, %rd41, %rd5;
	setp.lt.s64 	%p7, %rd41, %rd21;
	@%p7 bra 	$L__BB4_10;
	bra.uni 	$L__BB4_13;
$L__BB4_2:
	shl.b64 	%rd30, %rd41, 3;
	add.s64 	%rd40, %rd1, %rd30;
	shl.b64 	%rd7, %rd5, 3;
	cvt.u32.u64 	%r9, %rd23;
$L__BB4_3:
	.pragma "nounroll";
	or.b64  	%rd31, %rd41, %rd23;
	and.b64  	%rd32, %rd31, -4294967296;
	setp.eq.s64 	%p3, %rd32, 0;
	@%p3 bra 	$L__BB4_5;
	div.s64 	%rd42, %rd41, %rd23;
	bra.uni 	$L__BB4_6;
$L__BB4_5:
	cvt.u32.u64 	%r10, %rd41;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd42, %r11;
$L__BB4_6:
	add.s64 	%rd33, %rd42, %rd22;
	shr.s64 	%rd34, %rd33, 3;
	add.s64 	%rd35, %rd2, %rd34;
	ld.global.u8 	%r12, [%rd35];
	cvt.u32.u64 	%r13, %rd33;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p4, %r17, 0;
	@%p4 bra 	$L__BB4_8;
	st.global.u64 	[%rd40], %rd24;
$L__BB4_8:
	add.s64 	%rd40, %rd40, %rd7;
	add.s64 	%rd41, %rd41, %rd5;
	setp.lt.s64 	%p5, %rd41, %rd21;
	@%p5 bra 	$L__BB4_3;
$L__BB4_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry fill_unset_16(
	.param .u64 fill_unset_16_param_0,
	.param .u64 fill_unset_16_param_1,
	.param .u64 fill_unset_16_param_2,
	.param .u64 fill_unset_16_param_3,
	.param .u64 fill_unset_16_param_4,
	.param .align 16 .b8 fill_unset_16_param_5[16]
)
{
	.reg .pred 	%p<8>;
	.reg .b32 	%r<27>;
	.reg .b64 	%rd<46>;
	ld.param.u64 	%rd26, [fill_unset_16_param_0];
	ld.param.u64 	%rd21, [fill_unset_16_param_1];
	ld.param.u64 	%rd27, [fill_unset_16_param_2];
	ld.param.u64 	%rd22, [fill_unset_16_param_3];
	ld.param.u64 	%rd23, [fill_unset_16_param_4];
	ld.param.u64 	%rd25, [fill_unset_16_param_5+8];
	ld.param.u64 	%rd24, [fill_unset_16_param_5];
	cvta.to.global.u64 	%rd1, %rd26;
	cvta.to.global.u64 	%rd2, %rd27;
	mov.u32 	%r1, %ctaid.x;
	mov.u32 	%r8, %ntid.x;
	cvt.u64.u32 	%rd3, %r8;
	mul.wide.u32 	%rd28, %r1, %r8;
	mov.u32 	%r2, %tid.x;
	cvt.u64.u32 	%rd29, %r2;
	add.s64 	%rd42, %rd28, %rd29;
	setp.ge.s64 	%p1, %rd42, %rd21;
	@%p1 bra 	$L__BB5_13;
	setp.eq.s64 	%p2, %rd23, 1;
	mov.u32 	%r3, %nctaid.x;
	cvt.u64.u32 	%rd30, %r3;
	mul.lo.s64 	%rd5, %rd30, %rd3;
	@%p2 bra 	$L__BB5_9;
	bra.uni 	$L__BB5_2;
$L__BB5_9:
	cvt.u32.u64 	%r18, %rd3;
	shl.b64 	%rd37, %rd42, 4;
	add.s64 	%rd44, %rd1, %rd37;
	shl.b64 	%rd16, %rd5, 4;
	mad.lo.s32 	%r19, %r18, %r1, %r2;
	cvt.u32.u64 	%r20, %rd22;
	add.s32 	%r26, %r19, %r20;
	mul.lo.s32 	%r5, %r18, %r3;
$L__BB5_10:
	.pragma "nounroll";
	add.s64 	%rd38, %rd22, %rd42;
	shr.s64 	%rd39, %rd38, 3;
	add.s64 	%rd40, %rd2, %rd39;
	ld.global.u8 	%r21, [%rd40];
	and.b32  	%r22, %r26, 7;
	mov.u32 	%r23, 1;
	shl.b32 	%r24, %r23, %r22;
	and.b32  	%r25, %r24, %r21;
	setp.ne.s32 	%p6, %r25, 0;
	@%p6 bra 	$L__BB5_12;
	st.global.v2.u64 	[%rd44], {%rd24, %rd25};
$L__BB5_12:
	add.s64 	%rd44, %rd44, %rd16;
	add.s32 	%r26, %r26, %r5;
	add.s64 	%rd42, %rd42, %rd5;
	setp.lt.s64 	%p7, %rd42, %rd21;
	@%p7 bra 	$L__BB5_10;
	bra.uni 	$L__BB5_13;
$L__BB5_2:
	shl.b64 	%rd31, %rd42, 4;
	add.s64 	%rd41, %rd1, %rd31;
	shl.b64 	%rd7, %rd5, 4;
	cvt.u32.u64 	%r9, %rd23;
$L__BB5_3:
	.pragma "nounroll";
	or.b64  	%rd32, %rd42, %rd23;
	and.b64  	%rd33, %rd32, -4294967296;
	setp.eq.s64 	%p3, %rd33, 0;
	@%p3 bra 	$L__BB5_5;
	div.s64 	%rd43, %rd42, %rd23;
	bra.uni 	$L__BB5_6;
$L__BB5_5:
	cvt.u32.u64 	%r10, %rd42;
	div.u32 	%r11, %r10, %r9;
	cvt.u64.u32 	%rd43, %r11;
$L__BB5_6:
	add.s64 	%rd34, %rd43, %rd22;
	shr.s64 	%rd35, %rd34, 3;
	add.s64 	%rd36, %rd2, %rd35;
	ld.global.u8 	%r12, [%rd36];
	cvt.u32.u64 	%r13, %rd34;
	and.b32  	%r14, %r13, 7;
	mov.u32 	%r15, 1;
	shl.b32 	%r16, %r15, %r14;
	and.b32  	%r17, %r16, %r12;
	setp.ne.s32 	%p4, %r17, 0;
	@%p4 bra 	$L__BB5_8;
	st.global.v2.u64 	[%rd41], {%rd24, %rd25};
$L__BB5_8:
	add.s64 	%rd41, %rd41, %rd7;
	add.s64 	%rd42, %rd42, %rd5;
	setp.lt.s64 	%p5, %rd42, %rd21;
	@%p5 bra 	$L__BB5_3;
$L__BB5_13:
	ret;
}
)ptx"
    R"ptx(.visible .entry and_bits(
	.param .u64 and_bits_param_0,
	.param .u64 and_bits_param_1,
	.param .u64 and_bits_param_2,
	.param .u64 and_bits_param_3,
	.param .u64 and_bits_param_4,
	.param .u64 and_bits_param_5,
	.param .u64 and_bits_param_6,
	.param .u64 and_bits_param_7,
	.param .u64 and_bits_param_8
)
{
	.reg .pred 	%p<38>;
	.reg .b16 	%rs<9>;
	.reg .b32 	%r<96>;
	.reg .b64 	%rd<81>;
	ld.param.u64 	%rd30, [and_bits_param_0];
	ld.param.u64 	%rd31, [and_bits_param_1];
	ld.param.u64 	%rd32, [and_bits_param_2];
	ld.param.u64 	%rd33, [and_bits_param_3];
	ld.param.u64 	%rd34, [and_bits_param_4];
	ld.param.u64 	%rd35, [and_bits_param_5];
	ld.param.u64 	%rd36, [and_bits_param_6];
	ld.param.u64 	%rd37, [and_bits_param_7];
	ld.param.u64 	%rd38, [and_bits_param_8];
	cvta.to.global.u64 	%rd1, %rd36;
	cvta.to.global.u64 	%rd2, %rd33;
	add.s64 	%rd39, %rd31, %rd32;
	add.s64 	%rd40, %rd39, 7;
	shr.s64 	%rd41, %rd40, 63;
	shr.u64 	%rd42, %rd41, 61;
	add.s64 	%rd43, %rd40, %rd42;
	shr.s64 	%rd3, %rd43, 3;
	mov.u32 	%r21, %ctaid.x;
	mov.u32 	%r22, %ntid.x;
	cvt.u64.u32 	%rd4, %r22;
	mul.wide.u32 	%rd44, %r21, %r22;
	mov.u32 	%r23, %tid.x;
	cvt.u64.u32 	%rd45, %r23;
	add.s64 	%rd75, %rd44, %rd45;
	setp.ge.s64 	%p1, %rd75, %rd3;
	@%p1 bra 	$L__BB6_44;
	mov.u32 	%r24, %nctaid.x;
	cvt.u64.u32 	%rd46, %r24;
	mul.lo.s64 	%rd6, %rd46, %rd4;
	neg.s64 	%rd7, %rd31;
	cvta.to.global.u64 	%rd8, %rd30;
$L__BB6_2:
	.pragma "nounroll";
	shl.b64 	%rd10, %rd75, 3;
	sub.s64 	%rd11, %rd10, %rd31;
	setp.eq.s64 	%p2, %rd33, 0;
	@%p2 bra 	$L__BB6_31;
	setp.eq.s64 	%p3, %rd35, 1;
	@%p3 bra 	$L__BB6_19;
	bra.uni 	$L__BB6_4;
$L__BB6_19:
	mov.u32 	%r87, 0;
	mov.u32 	%r86, %r87;
$L__BB6_20:
	.pragma "nounroll";
	cvt.u64.u32 	%rd57, %r87;
	add.s64 	%rd79, %rd11, %rd57;
	setp.lt.s64 	%p15, %rd79, 0;
	setp.ge.s64 	%p16, %rd79, %rd32;
	or.pred  	%p17, %p15, %p16;
	@%p17 bra 	$L__BB6_30;
	add.s64 	%rd58, %rd79, %rd34;
	shr.s64 	%rd59, %rd58, 3;
	add.s64 	%rd60, %rd2, %rd59;
	ld.global.u8 	%r49, [%rd60];
	cvt.u32.u64 	%r50, %rd58;
	and.b32  	%r51, %r50, 7;
	mov.u32 	%r52, 1;
	shl.b32 	%r53, %r52, %r51;
	and.b32  	%r54, %r53, %r49;
	setp.eq.s32 	%p18, %r54, 0;
	@%p18 bra 	$L__BB6_30;
	setp.eq.s64 	%p19, %rd36, 0;
	mov.u16 	%rs8, 1;
	@%p19 bra 	$L__BB6_28;
	setp.eq.s64 	%p20, %rd38, 1;
	@%p20 bra 	$L__BB6_27;
	or.b64  	%rd61, %rd79, %rd38;
	and.b64  	%rd62, %rd61, -4294967296;
	setp.eq.s64 	%p21, %rd62, 0;
	@%p21 bra 	$L__BB6_26;
	div.s64 	%rd79, %rd79, %rd38;
	bra.uni 	$L__BB6_27;
$L__BB6_26:
	cvt.u32.u64 	%r55, %rd38;
	cvt.u32.u64 	%r56, %rd79;
	div.u32 	%r57, %r56, %r55;
	cvt.u64.u32 	%rd79, %r57;
$L__BB6_27:
	add.s64 	%rd63, %rd79, %rd37;
	shr.s64 	%rd64, %rd63, 3;
	add.s64 	%rd65, %rd1, %rd64;
	ld.global.u8 	%r58, [%rd65];
	cvt.u32.u64 	%r59, %rd63;
	and.b32  	%r60, %r59, 7;
	mov.u32 	%r61, 1;
	shl.b32 	%r62, %r61, %r60;
	and.b32  	%r63, %r62, %r58;
	setp.ne.s32 	%p22, %r63, 0;
	selp.u16 	%rs8, 1, 0, %p22;
$L__BB6_28:
	setp.eq.s16 	%p23, %rs8, 0;
	@%p23 bra 	$L__BB6_30;
	mov.u32 	%r64, 1;
	shl.b32 	%r65, %r64, %r87;
	or.b32  	%r86, %r65, %r86;
$L__BB6_30:
	add.s32 	%r87, %r87, 1;
	setp.eq.s32 	%p24, %r87, 8;
	@%p24 bra 	$L__BB6_43;
	bra.uni 	$L__BB6_20;
$L__BB6_31:
	setp.eq.s64 	%p25, %rd36, 0;
	@%p25 bra 	$L__BB6_41;
	mov.u32 	%r90, 0;
	mov.u32 	%r86, %r90;
$L__BB6_33:
	.pragma "nounroll";
	cvt.u64.u32 	%rd66, %r90;
	add.s64 	%rd80, %rd11, %rd66;
	setp.lt.s64 	%p26, %rd80, 0;
	setp.ge.s64 	%p27, %rd80, %rd32;
	or.pred  	%p28, %p26, %p27;
	@%p28 bra 	$L__BB6_40;
	setp.eq.s64 	%p29, %rd38, 1;
	@%p29 bra 	$L__BB6_38;
	or.b64  	%rd67, %rd80, %rd38;
	and.b64  	%rd68, %rd67, -4294967296;
	setp.eq.s64 	%p30, %rd68, 0;
	@%p30 bra 	$L__BB6_37;
	div.s64 	%rd80, %rd80, %rd38;
	bra.uni 	$L__BB6_38;
$L__BB6_37:
	cvt.u32.u64 	%r68, %rd38;
	cvt.u32.u64 	%r69, %rd80;
	div.u32 	%r70, %r69, %r68;
	cvt.u64.u32 	%rd80, %r70;
$L__BB6_38:
	add.s64 	%rd69, %rd80, %rd37;
	shr.s64 	%rd70, %rd69, 3;
	add.s64 	%rd71, %rd1, %rd70;
	ld.global.u8 	%r71, [%rd71];
	cvt.u32.u64 	%r72, %rd69;
	and.b32  	%r73, %r72, 7;
	mov.u32 	%r74, 1;
	shl.b32 	%r75, %r74, %r73;
	and.b32  	%r76, %r75, %r71;
	setp.eq.s32 	%p31, %r76, 0;
	@%p31 bra 	$L__BB6_40;
	shl.b32 	%r78, %r74, %r90;
	or.b32  	%r86, %r78, %r86;
$L__BB6_40:
	add.s32 	%r90, %r90, 1;
	setp.eq.s32 	%p32, %r90, 8;
	@%p32 bra 	$L__BB6_43;
	bra.uni 	$L__BB6_33;
$L__BB6_4:
	add.s64 	%rd76, %rd7, %rd10;
	mov.u32 	%r84, 0;
	mov.u32 	%r86, %r84;
$L__BB6_5:
	.pragma "nounroll";
	setp.ge.s64 	%p4, %rd76, %rd32;
	setp.lt.s64 	%p5, %rd76, 0;
	or.pred  	%p6, %p5, %p4;
	@%p6 bra 	$L__BB6_18;
	or.b64  	%rd47, %rd76, %rd35;
	and.b64  	%rd48, %rd47, -4294967296;
	setp.eq.s64 	%p7, %rd48, 0;
	@%p7 bra 	$L__BB6_8;
	div.s64 	%rd77, %rd76, %rd35;
	bra.uni 	$L__BB6_9;
$L__BB6_8:
	cvt.u32.u64 	%r27, %rd35;
	cvt.u32.u64 	%r28, %rd76;
	div.u32 	%r29, %r28, %r27;
	cvt.u64.u32 	%rd77, %r29;
$L__BB6_9:
	add.s64 	%rd49, %rd77, %rd34;
	shr.s64 	%rd50, %rd49, 3;
	add.s64 	%rd51, %rd2, %rd50;
	ld.global.u8 	%r30, [%rd51];
	cvt.u32.u64 	%r31, %rd49;
	and.b32  	%r32, %r31, 7;
	mov.u32 	%r33, 1;
	shl.b32 	%r34, %r33, %r32;
	and.b32  	%r35, %r34, %r30;
	setp.eq.s32 	%p8, %r35, 0;
	@%p8 bra 	$L__BB6_18;
	setp.eq.s64 	%p9, %rd36, 0;
	mov.u16 	%rs7, 1;
	@%p9 bra 	$L__BB6_16;
	setp.eq.s64 	%p10, %rd38, 1;
	mov.u64 	%rd78, %rd76;
	@%p10 bra 	$L__BB6_15;
	or.b64  	%rd52, %rd76, %rd38;
	and.b64  	%rd53, %rd52, -4294967296;
	setp.eq.s64 	%p11, %rd53, 0;
	@%p11 bra 	$L__BB6_14;
	div.s64 	%rd78, %rd76, %rd38;
	bra.uni 	$L__BB6_15;
$L__BB6_14:
	cvt.u32.u64 	%r36, %rd38;
	cvt.u32.u64 	%r37, %rd76;
	div.u32 	%r38, %r37, %r36;
	cvt.u64.u32 	%rd78, %r38;
$L__BB6_15:
	add.s64 	%rd54, %rd78, %rd37;
	shr.s64 	%rd55, %rd54, 3;
	add.s64 	%rd56, %rd1, %rd55;
	ld.global.u8 	%r39, [%rd56];
	cvt.u32.u64 	%r40, %rd54;
	and.b32  	%r41, %r40, 7;
	mov.u32 	%r42, 1;
	shl.b32 	%r43, %r42, %r41;
	and.b32  	%r44, %r43, %r39;
	setp.ne.s32 	%p12, %r44, 0;
	selp.u16 	%rs7, 1, 0, %p12;
$L__BB6_16:
	setp.eq.s16 	%p13, %rs7, 0;
	@%p13 bra 	$L__BB6_18;
	mov.u32 	%r45, 1;
	shl.b32 	%r46, %r45, %r84;
	or.b32  	%r86, %r46, %r86;
$L__BB6_18:
	add.s64 	%rd76, %rd76, 1;
	add.s32 	%r84, %r84, 1;
	setp.eq.s32 	%p14, %r84, 8;
	@%p14 bra 	$L__BB6_43;
	bra.uni 	$L__BB6_5;
$L__BB6_41:
	mov.u32 	%r93, 0;
	mov.u32 	%r86, %r93;
$L__BB6_42:
	.pragma "nounroll";
	cvt.u64.u32 	%rd72, %r93;
	add.s64 	%rd73, %rd11, %rd72;
	setp.lt.s64 	%p33, %rd73, 0;
	setp.ge.s64 	%p34, %rd73, %rd32;
	or.pred  	%p35, %p33, %p34;
	mov.u32 	%r81, 1;
	shl.b32 	%r82, %r81, %r93;
	selp.b32 	%r83, 0, %r82, %p35;
	or.b32  	%r86, %r86, %r83;
	add.s32 	%r93, %r93, 1;
	setp.ne.s32 	%p36, %r93, 8;
	@%p36 bra 	$L__BB6_42;
$L__BB6_43:
	add.s64 	%rd74, %rd8, %rd75;
	st.global.u8 	[%rd74], %r86;
	add.s64 	%rd75, %rd75, %rd6;
	setp.lt.s64 	%p37, %rd75, %rd3;
	@%p37 bra 	$L__BB6_2;
$L__BB6_44:
	ret;
}
)ptx";
// clang-format on

}  // namespace arrowdl
